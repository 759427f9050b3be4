// The names of tools and prompts on routes that merge several servers. Agents' model APIs must take each of them.
import { createHash } from 'node:crypto'
import {
  isModelName, longestModelName as longest, toModelCharacters, toModelSeparator
} from '../../../schemas/names.ts'

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

const withHash = (name: string, identity: string): string => `${name.slice(0, longest - 9)}_${hashOf(identity)}`

/**
 * A server's name, or its alias in a group, with the characters that model APIs take; with a hash where letters are
 * lost, so that names in other scripts differ.
 */
function modelLabel (label: string): string {
  if (isModelName(label)) return label
  const name = toModelCharacters(label)
  const isLossy = /[^\p{ASCII}\p{M}]/u.test(label.normalize('NFKD'))
  return isLossy ? withHash(name.replace(/^_+|_+$/g, ''), label) : name
}

/** The text before the own names of a section's items on merged routes. @param label empty: the items have no prefix */
export const prefixOf = (label: string, separator: string): string =>
  label === '' ? '' : `${modelLabel(label)}${toModelSeparator(separator)}`

/** The same with label and separator as they are written: calls take names that begin so, too. */
export const writtenPrefixOf = (label: string, separator: string): string => label === '' ? '' : `${label}${separator}`

/** The texts before the own names of a section's items that calls take. */
export function prefixesOf (label: string, separator: string): string[] {
  const [prefix, written] = [prefixOf(label, separator), writtenPrefixOf(label, separator)]
  return prefix === written ? [prefix] : [prefix, written]
}

/**
 * The name under which a merged route shows an item, from its prefix and own name. One that model APIs would not take
 * has `_` in the place of other characters, is cut to 64, and ends in a hash: no other item ever becomes the same. The
 * same configuration always gives the same name.
 */
export function nameAfter (prefix: string, name: string): string {
  const whole = `${prefix}${name}`
  return isModelName(whole) ? whole : withHash(toModelCharacters(whole), whole)
}

/** The same, from the label of its section. */
export const exposedName = (label: string, separator: string, name: string): string =>
  nameAfter(prefixOf(label, separator), name)

/**
 * Whether a merged route may show an item under a name that ends in a hash. Only names for which it is true are worth
 * hashing.
 */
export function maybeShownAs (shown: string, prefix: string, name: string): boolean {
  const whole = `${prefix}${name}`
  return (isModelName(whole) ? whole : toModelCharacters(whole)).startsWith(shown.slice(0, -9))
}

/** Whether a name may have been given a hash. */
export const looksHashed = (name: string): boolean => name.at(-9) === '_' && /_[0-9a-f]{8}$/.test(name)

/** Another name for an item whose name is taken. @param identity distinguishes it from the item that has the name */
export const otherName = (name: string, identity: string): string => withHash(name, identity)

/**
 * Another name for an item, from the name under which it would be shown.
 * @param server that lists it, under the name `key`
 */
export const itemOtherName = (name: string, server: string, key: string): string => otherName(name, `${server}\n${key}`)

/**
 * The names that calls take for the items of a server on merged routes, as shown and as written, each with the item's
 * own name.
 */
export function ownNames (label: string, separator: string, names: Iterable<string>): Map<string, string> {
  const [prefix, written] = [prefixOf(label, separator), writtenPrefixOf(label, separator)]
  const found = new Map<string, string>()
  for (const name of names) {
    for (const other of [nameAfter(prefix, name), `${written}${name}`]) if (!found.has(other)) found.set(other, name)
  }
  return found
}
