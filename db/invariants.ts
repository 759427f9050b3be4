import { problemOf } from '../schemas/problem.ts'
import { BearerKey, Group, SystemConfig, User } from '../schemas/settings.ts'
import { Invalid, type Change, type Snapshot } from './store.ts'

const schemas = { users: User, groups: Group, bearerKeys: BearerKey, systemConfig: SystemConfig }

/** What two usernames have in common when they are one: NFKC and case folding (`ß` is `ss`, `K` the Kelvin sign is `k`). */
export const foldName = (name: string): string => name.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')

/**
 * What is written must be readable again. Servers are not looked at: one that cannot be used is kept, with its problem.
 * @throws Invalid
 */
export function checkValues (changes: readonly Change[]): void {
  for (const change of changes) {
    if (change.entity === 'mcpServers') {
      // A group could not hold such a member.
      if (change.rename === '') throw new Invalid('A server needs a name.')
      continue
    }
    if (change.value === undefined) continue
    const problem = problemOf(schemas[change.entity], change.value)
    if (problem) {
      throw new Invalid(
        `This cannot be stored under "${change.entity}": ${problem.path === '' ? '' : `"${problem.path}": `}${problem.message}.`
      )
    }
  }
}

/**
 * What must always hold, of the snapshot that a commit would make. Only what the commit itself breaks counts: what the former one
 * already violated does not stand in the way of other changes. The ids of keys and groups are unique by being the keys of a Map.
 * @throws Invalid with a sentence
 */
export function checkInvariants (former: Snapshot, next: Snapshot): void {
  if (next.users !== former.users) {
    if (adminsOf(former) > 0 && adminsOf(next) === 0) throw new Invalid('At least one admin must remain.')
    const taken = firstClash(next.users.keys(), (name) => name, foldName, (name) => !former.users.has(name))
    if (taken !== undefined) throw new Invalid(`The username ${JSON.stringify(taken)} is taken.`)
  }
  if (next.groups !== former.groups) {
    const taken = firstClash(
      next.groups.values(),
      ({ name }) => name,
      (name) => name,
      ({ id, name }) => former.groups.get(id)?.name !== name
    )
    if (taken !== undefined) throw new Invalid(`The group name ${JSON.stringify(taken)} is taken.`)
  }
}

const adminsOf = ({ users }: Snapshot): number => [...users.values()].filter(({ isAdmin }) => isAdmin === true).length

/** The name of the first new item that another item also bears. */
function firstClash<Item> (
  items: Iterable<Item>,
  nameOf: (item: Item) => string,
  fold: (name: string) => string,
  isNew: (item: Item) => boolean
): string | undefined {
  const all = [...items]
  const news = all.filter(isNew)
  if (news.length === 0) return undefined
  const count = new Map<string, number>()
  for (const item of all) {
    const name = fold(nameOf(item))
    count.set(name, (count.get(name) ?? 0) + 1)
  }
  const clash = news.find((item) => (count.get(fold(nameOf(item))) ?? 0) > 1)
  return clash && nameOf(clash)
}
