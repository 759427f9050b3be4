import { createHash } from 'node:crypto'
import { cut } from '../../protocol/text.ts'

/** Max length of a name in agents' model APIs. */
const longest = 64

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** The text before the own names of a section's items on merged routes. @param label empty: the items have no prefix */
export const prefixOf = (label: string, separator: string): string => label === '' ? '' : `${label}${separator}`

/**
 * The name under which a merged route shows an item: `<label><separator><own name>`, or its own name without a label. A longer one is
 * cut to 64 characters, ending in a hash. The same configuration always gives the same name.
 */
export function exposedName (label: string, separator: string, name: string): string {
  const whole = `${prefixOf(label, separator)}${name}`
  return whole.length <= longest ? whole : withHash(whole, whole)
}

/** Whether a name may have been cut, or made by `otherName`. */
export const looksHashed = (name: string): boolean => name.at(-9) === '_' && /_[0-9a-f]{8}$/.test(name)

/** Another name for an item whose name is taken. @param identity distinguishes it from the item that has the name */
export const otherName = (name: string, identity: string): string => withHash(name, identity)

/** Another name for an item, from the name under which it would be shown. @param server that lists it, under the name `key` */
export const itemOtherName = (name: string, server: string, key: string): string => otherName(name, `${server}\n${key}`)

function withHash (name: string, identity: string): string {
  return `${cut(name, longest - 9)}_${hashOf(identity)}`
}
