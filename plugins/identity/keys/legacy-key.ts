import { randomUUID } from 'node:crypto'
import type { Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { maskToken, sha256 } from '../../base/secrets/index.ts'
import { type Principal, sponsorsOf } from '../../settings/index.ts'
import { makerOf } from './new-key.ts'

/** What becomes of the one key of old settings, for the operator and for the client whose change did it. */
export const legacyKeyWarning =
  'routing.bearerAuthKey became the bearer key "default". It opens every MCP route, and the management API with the ' +
  'rights of an admin. To narrow it, set its "accessType" to "groups", "servers" or "custom" (PUT ' +
  '/api/auth/keys/:id), or remove it and create other keys'

/** The same for one that is not taken. */
export const legacyKeyIgnored =
  '"routing.bearerAuthKey" was ignored: this gateway has bearer keys of its own, and that member becomes one only ' +
  'once, where there are none. Create a key with POST /api/auth/keys'

/** The same for one that a guest sends, who is nobody on whose rights a key could rest. */
export const legacyKeyOfGuest =
  '"routing.bearerAuthKey" was ignored: a bearer key rests on the rights of who makes it, and there is no account ' +
  'behind your credential. Create a key with POST /api/auth/keys, and name its "owner"'

/** The people of the key that a principal makes of such a key: those on whose rights the principal acts. */
export function legacyPeople (users: Snapshot['users'], principal: Principal): Pick<BearerKey, 'owner' | 'createdBy'> {
  const sponsors = sponsorsOf(users, principal)
  const owner = sponsors.length > 1 ? principal.username : undefined
  return { owner, createdBy: sponsors.length === 0 ? undefined : makerOf(sponsors, owner) }
}

/** The bearer key that such a key becomes. @param people absent: it is the operator's, by a file */
export const legacyKeyOf = (token: string, people: Pick<BearerKey, 'owner' | 'createdBy'> = {}): BearerKey => ({
  id: randomUUID(),
  name: 'default',
  tokenHash: sha256(token),
  tokenMask: maskToken(token),
  kind: 'system',
  ...people,
  accessType: 'all',
  allowedGroups: [],
  allowedServers: [],
  enabled: true,
  createdAt: new Date().toISOString()
})
