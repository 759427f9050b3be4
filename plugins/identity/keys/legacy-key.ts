import { randomUUID } from 'node:crypto'
import type { Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { maskToken, sha256 } from '../../base/secrets/index.ts'
import { type Principal, responsibleUsersOf } from '../../settings/index.ts'
import { keyCreatorOf } from './key-input.ts'

/** The warning that `routing.bearerAuthKey` was converted, for the log and for the client that sent this member. */
export const legacyKeyConvertedWarning =
  'routing.bearerAuthKey became the bearer key "default". It gives access to every MCP route, and to the management ' +
  'API with admin rights. To limit it, set its "accessType" to "groups", "servers" or "custom" (PUT ' +
  '/api/auth/keys/:id), or remove it and create other keys'

/** The warning that `routing.bearerAuthKey` is ignored, since it is converted only once. */
export const legacyKeyIgnoredWarning =
  '"routing.bearerAuthKey" was ignored: this gateway already has bearer keys, and that member is migrated only ' +
  'once, if there are none. Create a key with POST /api/auth/keys'

/** The warning for a guest that `routing.bearerAuthKey` is ignored, since a guest has no account. */
export const guestLegacyKeyWarning =
  '"routing.bearerAuthKey" was ignored: a bearer key has the rights of the account that creates it, and there is no ' +
  'account behind your credential. Create a key with POST /api/auth/keys, and name its "owner"'

/**
 * Returns the owner and the creator of the bearer key that replaces a legacy key in settings sent by a principal. They
 * are the users on whose rights the principal's own credential depends.
 */
export function legacyKeyOwnerAndCreator (
  users: Snapshot['users'], principal: Principal
): Pick<BearerKey, 'owner' | 'createdBy'> {
  const sponsors = responsibleUsersOf(users, principal)
  const owner = sponsors.length > 1 ? principal.username : undefined
  return { owner, createdBy: sponsors.length === 0 ? undefined : keyCreatorOf(sponsors, owner) }
}

/**
 * Converts a legacy key to a bearer key.
 * @param users the owner and the creator of the key; none if the operator wrote the legacy key into a file
 */
export const convertLegacyKey = (token: string, users: Pick<BearerKey, 'owner' | 'createdBy'> = {}): BearerKey => ({
  id: randomUUID(),
  name: 'default',
  tokenHash: sha256(token),
  tokenMask: maskToken(token),
  kind: 'system',
  ...users,
  accessType: 'all',
  allowedGroups: [],
  allowedServers: [],
  enabled: true,
  createdAt: new Date().toISOString()
})
