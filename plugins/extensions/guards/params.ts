import { memberOf, membersOf, withMembers } from '../../../protocol/json.ts'

/** A member of params, with its value as JSON text. */
export interface Param { readonly name: string, readonly text: string }

/** Returns the members of an object in JSON text; of members with the same name, the last one. */
export const parseParams = (text: string): Param[] =>
  [...new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))]
    .map(([name, text]) => ({ name, text }))

/** Returns the JSON text of an object with these members. */
export const stringifyParams = (members: readonly Param[]): string =>
  `{${members.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`

/** Removes the progress token, which is valid only between client and gateway. */
export const paramWithoutProgressToken = (name: string, text: string): string =>
  name === '_meta' && memberOf(text, 'progressToken') !== undefined
    ? withMembers(text, { progressToken: undefined })
    : text

/** Returns the members of params to replace, by name. A renamed member is removed and added under its new name. */
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
