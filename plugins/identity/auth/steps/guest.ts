import type { Snapshot } from '../../../../db/store.ts'
import type { Principal } from '../../../settings/index.ts'
import type { AuthStep } from '../chain.ts'

/** With `routing.skipAuth`, every caller of the management API is the guest, an admin. It does not affect MCP. */
export const guest: AuthStep = (_credentials, routes, snapshot) => routes === 'api' ? principalOf(snapshot) : undefined

const principalOf = ({ system }: Snapshot): Principal | undefined => system.routing?.skipAuth === true
  ? { key: 'guest', kind: 'guest', user: 'guest', username: 'guest', isAdmin: true, standing: principalOf }
  : undefined
