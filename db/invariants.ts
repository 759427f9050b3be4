import { firstSchemaProblem } from '../schemas/problem.ts'
import { SystemConfig } from '../schemas/settings.ts'
import { entities } from './entities.ts'
import { InvalidChangeError, type Change, type Snapshot } from './store.ts'

/** Folds a username for comparison by NFKC and case folding: `ß` becomes `ss`, U+212A (the Kelvin sign) becomes `k`. */
export const foldUsername = (name: string): string =>
  name.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')

/**
 * Checks that changed values match their schemas. The configs of servers are not checked, since an invalid one can be
 * stored; the server then has a `problem`.
 * @throws InvalidChangeError
 */
export function checkChangedValues (changes: readonly Change[]): void {
  for (const change of changes) {
    if (change.entity === 'mcpServers') {
      // A group cannot have a member with an empty name.
      if (change.rename === '') throw new InvalidChangeError('A server needs a name.')
      continue
    }
    if (change.entity === 'order' || change.value === undefined) continue
    const schema = change.entity === 'systemConfig' ? SystemConfig : entities[change.entity].schema
    const problem = firstSchemaProblem(schema, change.value)
    if (problem) {
      throw new InvalidChangeError(
        `This cannot be stored in "${change.entity}": ` +
        `${problem.path === '' ? '' : `"${problem.path}": `}${problem.message}.`
      )
    }
  }
}

/**
 * Checks the snapshot that a commit would create: an admin remains, and new names of users and groups are unique.
 * Violations that exist in the former snapshot do not prevent other changes. Ids need no check, since they are the keys
 * of a Map.
 * @throws InvalidChangeError
 */
export function checkInvariants (former: Snapshot, next: Snapshot): void {
  if (next.users !== former.users) {
    if (countAdmins(former) > 0 && countAdmins(next) === 0) {
      throw new InvalidChangeError('At least one admin must remain.')
    }
    const taken = firstClash(next.users.keys(), (name) => name, foldUsername, (name) => !former.users.has(name))
    if (taken !== undefined) throw new InvalidChangeError(`The username ${JSON.stringify(taken)} is taken.`)
  }
  if (next.groups !== former.groups) {
    const taken = firstClash(
      next.groups.values(),
      ({ name }) => name,
      (name) => name,
      ({ id, name }) => former.groups.get(id)?.name !== name
    )
    if (taken !== undefined) throw new InvalidChangeError(`The group name ${JSON.stringify(taken)} is taken.`)
  }
}

const countAdmins = ({ users }: Snapshot): number =>
  [...users.values()].filter(({ isAdmin }) => isAdmin === true).length

/** Returns the name of the first new item whose folded name another item has, too; undefined if there is none. */
function firstClash<Item> (
  items: Iterable<Item>,
  nameOf: (item: Item) => string,
  fold: (name: string) => string,
  isNew: (item: Item) => boolean
): string | undefined {
  const all = [...items]
  const added = all.filter(isNew)
  if (added.length === 0) return undefined
  const count = new Map<string, number>()
  for (const item of all) {
    const name = fold(nameOf(item))
    count.set(name, (count.get(name) ?? 0) + 1)
  }
  const clash = added.find((item) => (count.get(fold(nameOf(item))) ?? 0) > 1)
  return clash && nameOf(clash)
}
