import { timingSafeEqual } from 'node:crypto'
import type { Snapshot } from '../../../../db/store.ts'
import type { Principal } from '../../../settings/index.ts'
import { accountMarkOf, principalOfUser } from '../../users/account.ts'
import type { AuthStep } from '../chain.ts'

/** The claims of a login token: the username, and the mark of the account at the login (`accountMarkOf`). */
export interface LoginClaims { sub: string, mark: string }

/** The claims of a verified token, which also has its expiry, in s since 1970. */
export type VerifiedClaims = LoginClaims & { readonly exp: number }

/**
 * Authenticates by a login token in `x-auth-token`; on the management API also in the query parameter `token`. (On open
 * routes, that parameter is an argument of the tool.) The user is read from the current settings: a demotion, a
 * deletion or a new password takes effect at once.
 */
export const loginTokenStep = (claimsOf: (token: string) => VerifiedClaims | undefined): AuthStep =>
  ({ headers, query }, routes, snapshot) => {
    if (routes === 'mcp') return undefined
    for (const token of [headers['x-auth-token'], routes === 'api' ? query.token : undefined]) {
      const claims = typeof token === 'string' ? claimsOf(token) : undefined
      const principal = claims && principalOf(claims, snapshot)
      if (principal) return principal
    }
    return undefined
  }

function principalOf (claims: VerifiedClaims, { users }: Snapshot): Principal | undefined {
  const user = users.get(claims.sub)
  if (!user || !isSameMark(claims.mark, accountMarkOf(user))) return undefined
  return {
    ...principalOfUser(user, (snapshot) => principalOf(claims, snapshot)),
    expiresAt: claims.exp * 1_000
  }
}

const isSameMark = (one: unknown, other: string): boolean =>
  typeof one === 'string' && one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
