// The names of tools and prompts on routes that merge several servers. The listed names are valid in the model APIs
// that agents use.
import { createHash } from 'node:crypto'
import {
  isModelSafeName, maxModelSafeNameLength, toModelSafeText, toModelSafeSeparator
} from '../../../schemas/names.ts'

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

const withHash = (name: string, identity: string): string =>
  `${name.slice(0, maxModelSafeNameLength - 9)}_${hashOf(identity)}`

/**
 * Converts a server's name, or its alias in a group, to the characters that model APIs accept. If letters are lost, a
 * hash is appended, so that names in other scripts stay distinct.
 */
function modelLabel (label: string): string {
  if (isModelSafeName(label)) return label
  const name = toModelSafeText(label)
  const isLossy = /[^\p{ASCII}\p{M}]/u.test(label.normalize('NFKD'))
  return isLossy ? withHash(name.replace(/^_+|_+$/g, ''), label) : name
}

/** Returns the prefix of a server's items on merged routes. @param label the server's name or alias; '': no prefix */
export const prefixOf = (label: string, separator: string): string =>
  label === '' ? '' : `${modelLabel(label)}${toModelSafeSeparator(separator)}`

/** Returns the prefix with the label and separator as configured. Calls accept names with this prefix, too. */
export const unconvertedPrefixOf = (label: string, separator: string): string =>
  label === '' ? '' : `${label}${separator}`

/** Returns the prefixes that calls accept for the items of a server. */
export function acceptedPrefixesOf (label: string, separator: string): string[] {
  return [...new Set([prefixOf(label, separator), unconvertedPrefixOf(label, separator)])]
}

/**
 * Returns the name under which a merged route lists an item, from the prefix and the item's own name. A name that model
 * APIs would reject gets `_` in place of invalid characters, is truncated to 64 characters, and ends in a hash, so that
 * no two items ever get the same name. The result depends on the configuration alone.
 */
export function prefixedName (prefix: string, name: string): string {
  const whole = `${prefix}${name}`
  return isModelSafeName(whole) ? whole : withHash(toModelSafeText(whole), whole)
}

/** Returns the name under which a merged route lists an item, from the label of its server. */
export const exposedName = (label: string, separator: string, name: string): string =>
  prefixedName(prefixOf(label, separator), name)

/**
 * Whether a merged route could list an item as `shown`, a name that ends in a hash. Compares only the part before the
 * hash, so that most items need not be hashed.
 */
export function canBeShownAs (shown: string, prefix: string, name: string): boolean {
  const whole = `${prefix}${name}`
  return (isModelSafeName(whole) ? whole : toModelSafeText(whole)).startsWith(shown.slice(0, -9))
}

/** Whether a name has the form of a name that ends in a hash. */
export const hasHashSuffix = (name: string): boolean => name.at(-9) === '_' && /_[0-9a-f]{8}$/.test(name)

/**
 * Creates an alternative name for an item whose name is taken.
 * @param identity a text that distinguishes the item from the item that has the name
 */
export const alternativeName = (name: string, identity: string): string => withHash(name, identity)

/**
 * Creates an alternative name for an item, derived from the name under which it would be listed.
 * @param server the name of the server that lists the item under the name `key`
 */
export const alternativeItemName = (name: string, server: string, key: string): string =>
  alternativeName(name, `${server}\n${key}`)

/**
 * Maps each name that a call may use for a server's item (the listed name, or the name with the unconverted prefix) to
 * the item's own name.
 */
export function mapToOwnNames (label: string, separator: string, names: Iterable<string>): Map<string, string> {
  const [prefix, unconverted] = [prefixOf(label, separator), unconvertedPrefixOf(label, separator)]
  const found = new Map<string, string>()
  for (const name of names) {
    for (const accepted of [prefixedName(prefix, name), `${unconverted}${name}`]) {
      if (!found.has(accepted)) found.set(accepted, name)
    }
  }
  return found
}
