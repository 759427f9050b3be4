import type { SubscriptionCredential } from '../../../db/ports/event-webhooks.ts'
import type { Snapshot } from '../../../db/store.ts'
import type { Principal } from '../../settings/index.ts'
import { rightsMarkOf } from '../users/account.ts'
import { allowedScopesAmong } from './steps/access-token.ts'
import { principalOfKey } from './steps/bearer-key.ts'

/**
 * Returns a reference to a principal's credential that can be stored after the request has ended. It contains no
 * secret. Returns undefined for callers without credentials, and for all credentials but keys and access tokens.
 */
export function lastingCredentialOf (principal: Principal, { users }: Snapshot): SubscriptionCredential | undefined {
  const { kind, credential, username, scopes, audience } = principal
  if (credential === undefined) return undefined
  if (kind === 'system-key' || kind === 'user-key') return { keyId: credential.id }
  const user = username === undefined ? undefined : users.get(username)
  if (kind !== 'access-token' || user === undefined || scopes === undefined) return undefined
  const { id: family, name: clientId } = credential
  return { family, clientId, username: user.username, mark: rightsMarkOf(user), scopes, audience }
}

/**
 * Returns the current principal of a stored credential; undefined if the settings no longer allow the credential. The
 * caller must check whether an OAuth authorization was revoked, which is not part of the settings.
 */
export function principalOfCredential (credential: SubscriptionCredential, snapshot: Snapshot): Principal | undefined {
  if ('keyId' in credential) return principalOfKey(credential.keyId, snapshot)
  const { family, clientId, username, mark, scopes, audience } = credential
  const user = snapshot.users.get(username)
  if (snapshot.system.oauthServer?.enabled !== true || !user || mark !== rightsMarkOf(user)) return undefined
  return {
    key: `token ${family}`,
    kind: 'access-token',
    user: username,
    username,
    isAdmin: user.isAdmin === true,
    credential: { id: family, ...clientId !== undefined && { name: clientId } },
    scopes: allowedScopesAmong(scopes, snapshot.system),
    ...audience !== undefined && { audience },
    inSnapshot: (later) => principalOfCredential(credential, later)
  }
}
