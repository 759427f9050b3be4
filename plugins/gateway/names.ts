import { createHash } from 'node:crypto'
import { cut } from '../../protocol/text.ts'

/** The longest name that agents' model APIs take. */
const longest = 64

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/**
 * The name under which a merged route shows an item: `<label><separator><own name>`, cut to 64 characters with a hash where it
 * is longer. The same configuration always gives the same name.
 */
export function exposedName (label: string, separator: string, name: string): string {
  const whole = `${label}${separator}${name}`
  return whole.length <= longest ? whole : withHash(whole, whole)
}

/** Whether a name may be one that was cut. */
export const isCut = (name: string): boolean => name.length === longest && /_[0-9a-f]{8}$/.test(name)

/** Another name for what met a name that was taken: `identity` tells it apart from the one that took it. */
export const otherName = (name: string, identity: string): string => withHash(name, identity)

function withHash (name: string, identity: string): string {
  return `${cut(name, longest - 9)}_${hashOf(identity)}`
}
