import { isPlainObject } from '../schemas/unknown-members.ts'
import { isIntegerName, rememberOrder } from './order.ts'

/**
 * An array or object whose end the scan has not reached yet. `object`: the parsed object; undefined if its members are
 * not examined. `names`: the member names read so far.
 */
interface Level {
  readonly object: Record<string, unknown> | undefined
  readonly names: string[]
}

/**
 * Records the order that object members have in a JSON text, for `orderedEntries`. The text is scanned only if an
 * integer-like name shows that JavaScript may not keep this order.
 * @param value the result of `JSON.parse` for the text
 * @param levels the number of outer object levels to examine; objects in arrays are not examined
 * @returns the value itself
 */
export function rememberTextOrder<Value> (text: string, value: Value, levels: number): Value {
  if (hasReorderedMembers(value, levels)) scanMembers(text, value, levels, rememberOrder)
  return value
}

/**
 * Finds the names of object members in a JSON text, in their order, with those that are repeated.
 * @param value the result of `JSON.parse` for the text
 * @param levels the number of outer object levels to examine; objects in arrays are not examined
 * @param onObject called at the end of each object with the parsed object; if the name of an object is repeated, it is
 *   called for each text of it with the object that JSON.parse keeps, the last one
 */
export function scanMembers (
  text: string, value: unknown, levels: number, onObject: (object: object, names: readonly string[]) => void
): void {
  const open: Level[] = []
  let [depth, start, end] = [0, 0, 0]
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"':
        start = at
        at = endOfString(text, at)
        end = at + 1
        break
      case '{': case '[':
        if (depth++ < levels) {
          open.push({ object: text[at] === '{' ? objectAt(open.at(-1), value) : undefined, names: [] })
        }
        break
      case '}': case ']':
        if (depth-- <= levels) {
          const closed = open.pop()
          if (closed?.object) onObject(closed.object, closed.names)
        }
        break
      case ':':
        if (depth <= levels && open.at(-1)?.object) {
          open.at(-1)?.names.push(JSON.parse(text.slice(start, end)) as string)
        }
    }
  }
}

/**
 * Whether a value or an object within it has an integer-like member name, on the outer `levels` levels. JavaScript
 * sorts such names first, so that checking the first name of each object is enough.
 */
function hasReorderedMembers (value: unknown, levels: number): boolean {
  let objects = [value].filter(isPlainObject)
  for (let level = 1; level <= levels && objects.length > 0; level++) {
    const within: typeof objects = []
    for (const object of objects) {
      const names = Object.keys(object)
      if (names[0] !== undefined && isIntegerName(names[0])) return true
      if (level < levels) for (const name of names) if (isPlainObject(object[name])) within.push(object[name])
    }
    objects = within
  }
  return false
}

/**
 * Returns the position of the closing quote of a string in a valid JSON text.
 * @param start the position of its opening quote
 */
function endOfString (text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let slash = at - 1
    while (text[slash] === '\\') slash--
    if ((at - slash) % 2 === 1) return at
  }
}

/**
 * Returns the parsed object that begins at the current position of the scan: the value of the last name that was read
 * in the enclosing object. For a repeated name, it is the value that JSON.parse keeps, the last one. Undefined if the
 * value is not an object, or is not examined.
 * @param around the enclosing level; undefined at the outermost value
 */
function objectAt (around: Level | undefined, outermost: unknown): Record<string, unknown> | undefined {
  const name = around?.names.at(-1) ?? ''
  const value = !around
    ? outermost
    : around.object && Object.hasOwn(around.object, name) ? around.object[name] : undefined
  return isPlainObject(value) ? value : undefined
}
