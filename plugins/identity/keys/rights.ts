import type { Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { teamOfKeyOwner } from '../../settings/index.ts'
import { keyExpiryOf } from './expiry.ts'

type Users = Snapshot['users']

const isAdmin = (users: Users, username: string): boolean => users.get(username)?.isAdmin === true

/**
 * Whether a key is active: it is enabled, has not expired, and the users on whom it depends have the required rights.
 * The creator and the owner of a system key, if set, must be admins. The owner of a user key, a user or a team, must
 * exist, and its creator, if set and not the owner, must be an admin.
 */
export const isActiveKey = (key: BearerKey, snapshot: Pick<Snapshot, 'teams' | 'users'>): boolean =>
  keyInactivityReason(key, snapshot) === undefined

/** Returns why a key is inactive, as a clause in which "it" is the key; undefined if the key is active. */
export function keyInactivityReason (
  key: BearerKey, { teams, users }: Pick<Snapshot, 'teams' | 'users'>
): string | undefined {
  if (key.enabled === false) return 'it is disabled'
  if (key.expiresAt !== undefined && keyExpiryOf(key) <= Date.now()) return `it expired at ${key.expiresAt}`
  const { kind, owner } = key
  if (kind === 'user' && (owner === undefined || !(users.has(owner) || teamOfKeyOwner({ teams, users }, owner)))) {
    return owner === undefined ? 'it has no owner' : `its owner ${JSON.stringify(owner)} does not exist`
  }
  const nonAdmin = requiredAdminsOf(key).find((name) => !isAdmin(users, name))
  return nonAdmin && `${JSON.stringify(nonAdmin)}, who ${nonAdmin === owner ? 'owns' : 'created'} it, is not an admin`
}

/** Returns the users who must be admins for a key to be active. */
export function requiredAdminsOf ({ kind, createdBy, owner }: BearerKey): string[] {
  const people = kind !== 'user' ? [createdBy, owner] : createdBy === owner ? [] : [createdBy]
  return [...new Set(people)].filter((name) => name !== undefined)
}

/** Whether a change gives a key more rights: the key becomes enabled, expires later, or its scope is extended. */
export function widensRights (before: BearerKey, after: BearerKey): boolean {
  const isEnabled = (key: BearerKey): boolean => key.enabled !== false
  return (isEnabled(after) && !isEnabled(before)) || keyExpiryOf(after) > keyExpiryOf(before) ||
    !includesScope(before, after)
}

/** Whether the scope of one key includes the whole scope of another key. */
function includesScope (wide: BearerKey, narrow: BearerKey): boolean {
  if ((wide.accessType ?? 'all') === 'all') return true
  if ((narrow.accessType ?? 'all') === 'all') return false
  const isWithin = (type: 'groups' | 'servers', list: 'allowedGroups' | 'allowedServers'): boolean => {
    const usesList = ({ accessType }: BearerKey): boolean => accessType === type || accessType === 'custom'
    const listed = (key: BearerKey): string[] => usesList(key) ? key[list] ?? [] : []
    const known = new Set(listed(wide))
    return listed(narrow).every((name) => known.has(name))
  }
  return isWithin('groups', 'allowedGroups') && isWithin('servers', 'allowedServers')
}
