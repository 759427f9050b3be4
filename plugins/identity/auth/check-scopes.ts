import type { Principal } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import type { Effect } from '../../base/scopes/index.ts'

/** The scope that a route of the management API needs, by its effect (DECISIONS §3); reading needs none. */
const scopeOf = { read: undefined, run: 'mcp', change: 'manage' } as const

/** Checks what an access token may do on the management API. Other credentials have no scopes. @throws InsufficientScope */
export function checkScopes ({ scopes }: Principal, effect: Effect = 'change'): void {
  const needed = scopeOf[effect]
  if (scopes !== undefined && needed !== undefined && !scopes.includes(needed)) throw new errors.InsufficientScope(needed)
}
