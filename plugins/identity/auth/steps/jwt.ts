import { timingSafeEqual } from 'node:crypto'
import type { Snapshot } from '../../../../db/store.ts'
import type { Principal } from '../../../settings/index.ts'
import { markOf, subjectOf } from '../../users/mark.ts'
import type { AuthStep } from '../chain.ts'

/** The claims of a login token: the user, and the `mark` of the account at the login. */
export interface LoginClaims { sub: string, mark: string }

/**
 * A login token, in `x-auth-token`; on the management API also in `?token=`, which on the open routes is an argument of the tool. The user
 * is read from the settings: demotion, deletion and another password take effect at once.
 */
export const loginToken = (claimsOf: (token: string) => LoginClaims | undefined): AuthStep => ({ headers, query }, routes, snapshot) => {
  if (routes === 'mcp') return undefined
  for (const token of [headers['x-auth-token'], routes === 'api' ? query.token : undefined]) {
    const claims = typeof token === 'string' ? claimsOf(token) : undefined
    const principal = claims && principalOf(claims, snapshot)
    if (principal) return principal
  }
  return undefined
}

function principalOf (claims: LoginClaims, { users }: Snapshot): Principal | undefined {
  const user = users.get(claims.sub)
  if (!user || !sameMark(claims.mark, markOf(user))) return undefined
  return {
    // Of the account: what belongs to a principal is not that of a later account of the same name.
    key: `user ${subjectOf(user)}`,
    kind: 'user',
    user: user.username,
    username: user.username,
    isAdmin: user.isAdmin === true,
    standing: (snapshot) => principalOf(claims, snapshot)
  }
}

const sameMark = (one: unknown, other: string): boolean =>
  typeof one === 'string' && one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
