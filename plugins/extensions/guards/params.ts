import { memberOf, membersOf, withMembers } from '../../../protocol/json.ts'

/** A member of params, with its value as JSON text. */
export interface Param { readonly name: string, readonly text: string }

/** Returns the members of an object, given as JSON text. Of members with the same name, the last one is returned. */
export const parseParams = (text: string): Param[] =>
  [...new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))]
    .map(([name, text]) => ({ name, text }))

/** Returns the JSON text of an object with these members. */
export const stringifyParams = (members: readonly Param[]): string =>
  `{${members.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`

/**
 * Returns the value of a member of params, as JSON text; `_meta` without the progress token, which is valid only
 * between client and gateway.
 */
export const paramWithoutProgressToken = (name: string, text: string): string =>
  name === '_meta' && memberOf(text, 'progressToken') !== undefined
    ? withMembers(text, { progressToken: undefined })
    : text

/**
 * Returns the changes that turn the given members of params into others: by name, the new value as JSON text, or
 * undefined for a member to remove.
 * @param members the members to use, in the order of `given`; names may differ
 */
export function diffParams (given: readonly Param[], members: readonly Param[]): Map<string, string | undefined> {
  const changed = new Map<string, string | undefined>()
  for (const [at, { name, text }] of members.entries()) {
    const former = given[at]
    if (name === former?.name && text === former.text) continue
    if (former !== undefined && name !== former.name) changed.set(former.name, undefined)
    changed.set(name, text)
  }
  return changed
}
