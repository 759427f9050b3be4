import type { Static } from '@sinclair/typebox'
import type { Snapshot } from '../../../db/store.ts'
import type { SocialSession } from '../../../schemas/social.ts'
import type { Principal } from '../../settings/index.ts'
import { accountMarkOf } from '../users/account.ts'
import type { LoginAccount } from './better-auth.ts'

/** A session of a social login as the API returns it, without its token. */
export type ShownSocialSession = NonNullable<Static<typeof SocialSession>>

/** Returns the id by which `Principal.credential` refers to a social session. */
export const sessionCredentialId = ({ id }: { id: string }): string => `social ${id}`

/**
 * Returns the principal of a social session; undefined if the account was removed, replaced, or got another password.
 */
export function principalOfSession (
  session: LoginAccount & { readonly id: string, readonly expiresAt: Date }, { users }: Snapshot
): Principal | undefined {
  const user = users.get(session.username)
  if (!user || accountMarkOf(user) !== session.mark) return undefined
  return {
    key: sessionCredentialId(session),
    kind: 'social-session',
    user: user.username,
    username: user.username,
    isAdmin: user.isAdmin === true,
    credential: { id: sessionCredentialId(session) },
    expiresAt: session.expiresAt.getTime(),
    inSnapshot: (later) => principalOfSession(session, later)
  }
}
