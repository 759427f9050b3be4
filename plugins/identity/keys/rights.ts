import type { Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { expiryOf } from './state.ts'

type Users = Snapshot['users']

const isAdmin = (users: Users, username: string): boolean => users.get(username)?.isAdmin === true

/**
 * Whether a key counts now: it is enabled, and has not expired. A system key has an admin's rights from its maker, and
 * from its owner where it has one: it counts while they are admins. A user key that somebody else than its owner made
 * counts while that maker is an admin. Without a maker it is the operator's.
 */
export const counts = (key: BearerKey, snapshot: Pick<Snapshot, 'users'>): boolean =>
  inactivityOf(key, snapshot) === undefined

/** The reason why a key does not count now, for those who manage it; undefined: it counts. */
export function inactivityOf (key: BearerKey, { users }: Pick<Snapshot, 'users'>): string | undefined {
  if (key.enabled === false) return 'it is disabled'
  if (key.expiresAt !== undefined && expiryOf(key) <= Date.now()) return `it expired at ${key.expiresAt}`
  const { kind, owner } = key
  if (kind === 'user' && (owner === undefined || !users.has(owner))) {
    return owner === undefined ? 'it has no owner' : `its owner ${JSON.stringify(owner)} does not exist`
  }
  const former = peopleOf(key).find((name) => !isAdmin(users, name))
  return former && `${JSON.stringify(former)}, who ${former === owner ? 'owns' : 'made'} it, is no admin`
}

/** Those who have to be admins for a key to count. */
export function peopleOf ({ kind, createdBy, owner }: BearerKey): string[] {
  const people = kind !== 'user' ? [createdBy, owner] : createdBy === owner ? [] : [createdBy]
  return [...new Set(people)].filter((name) => name !== undefined)
}

/** Whether a key opens more after a change than before: another scope, a later expiry, or anything at all. */
export function givesMore (before: BearerKey, after: BearerKey): boolean {
  const isEnabled = (key: BearerKey): boolean => key.enabled !== false
  return (isEnabled(after) && !isEnabled(before)) || expiryOf(after) > expiryOf(before) || !includes(before, after)
}

/** Whether the scope of one key includes that of another. */
function includes (wide: BearerKey, narrow: BearerKey): boolean {
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
