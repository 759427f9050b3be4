import type { User } from '../../../schemas/settings.ts'
import { foldName } from '../../../db/invariants.ts'
import type { Change, Snapshot } from '../../../db/store.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import { knownName } from './rules.ts'

export const put = (user: User): Change => ({ entity: 'users', key: user.username, value: user })

export const find = ({ users }: Snapshot, username: string): User | undefined => users.get(knownName(users, username))

/** @throws NoSuch */
export function existing (snapshot: Snapshot, username: string): User {
  const user = find(snapshot, username)
  if (!user) throw noSuchError('user', username)
  return user
}

/** @throws InvalidInput when a user has this name, compared case-insensitively */
export function mustBeFree ({ users }: Snapshot, username: string): void {
  const folded = foldName(username)
  for (const other of users.keys()) {
    if (other === username || foldName(other) === folded) {
      throw new errors.InvalidInput(`The username ${JSON.stringify(username)} is taken`)
    }
  }
}

/** A user as the API returns it. */
export interface ShownUser { username: string, isAdmin: boolean }

export const shown = ({ username, isAdmin }: User): ShownUser => ({ username, isAdmin: isAdmin === true })
