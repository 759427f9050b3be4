import type { User } from '../../../schemas/settings.ts'
import { foldUsername } from '../../../db/invariants.ts'
import type { Change, Snapshot } from '../../../db/store.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import { storedUsernameOf } from './rules.ts'

export const userChangeOf = (user: User): Change => ({ entity: 'users', key: user.username, value: user })

export const findUser = ({ users }: Snapshot, username: string): User | undefined =>
  users.get(storedUsernameOf(users, username))

/** Returns the user with this name, in any spelling with the same canonical form. @throws NoSuch */
export function requireUser (snapshot: Snapshot, username: string): User {
  const user = findUser(snapshot, username)
  if (!user) throw noSuchError('user', username)
  return user
}

/** Checks that no user has this name, compared case-insensitively. @throws InvalidInput */
export function assertUsernameFree ({ users }: Snapshot, username: string): void {
  const folded = foldUsername(username)
  for (const other of users.keys()) {
    if (other === username || foldUsername(other) === folded) {
      throw new errors.InvalidInput(`The username ${JSON.stringify(username)} is taken`)
    }
  }
}

/** A user as the API returns it. */
export interface ShownUser { username: string, isAdmin: boolean }

export const toShownUser = ({ username, isAdmin }: User): ShownUser => ({ username, isAdmin: isAdmin === true })
