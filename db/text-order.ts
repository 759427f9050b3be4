import { isObject } from '../schemas/unknown-members.ts'
import { isIndex, noteOrder } from './order.ts'

/** Characters that one step reads, and objects that one looks at: less than a millisecond. */
const stepSize = 64 * 1024
const stepObjects = 2_000

/** An array or object whose end was not read yet. `object`: undefined where its members are not looked at. */
interface Level {
  readonly object: Record<string, unknown> | undefined
  readonly names: string[]
}

/**
 * Notes in which order a JSON text has the members of objects, for `orderedEntries`. Costs next to nothing where
 * JavaScript has moved none.
 * @param value made of the text, as `JSON.parse` makes it
 * @param levels how many levels of objects are looked at; those in arrays never are
 * @returns the value itself
 */
export function inTextOrder<Value> (text: string, value: Value, levels: number): Value {
  const steps = textOrderSteps(text, value, levels)
  while (steps.next().done !== true);
  return value
}

/** The same in steps, for a large text. */
export function * textOrderSteps (text: string, value: unknown, levels: number): Generator<undefined, void> {
  if (!(yield * isMovedIn(value, levels))) return
  const open: Level[] = []
  let [depth, start, end, read] = [0, 0, 0, 0]
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
        if (depth-- <= levels) close(open.pop())
        break
      case ':':
        if (depth <= levels && open.at(-1)?.object) {
          open.at(-1)?.names.push(JSON.parse(text.slice(start, end)) as string)
        }
    }
    if (at - read > stepSize) {
      read = at
      yield
    }
  }
}

/**
 * Whether an object, or one within it, has names that JavaScript puts before others: it is enough to look at the first.
 */
function * isMovedIn (value: unknown, levels: number): Generator<undefined, boolean> {
  let objects = [value].filter(isObject)
  for (let level = 1; level <= levels && objects.length > 0; level++) {
    const within: typeof objects = []
    for (const [at, object] of objects.entries()) {
      const names = Object.keys(object)
      if (names[0] !== undefined && isIndex(names[0])) return true
      if (level < levels) for (const name of names) if (isObject(object[name])) within.push(object[name])
      if (at % stepObjects === stepObjects - 1) yield
    }
    objects = within
  }
  return false
}

/** Where the closing quote of a string is. @param start where its opening one is */
export function endOfString (text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let slash = at - 1
    while (text[slash] === '\\') slash--
    if ((at - slash) % 2 === 1) return at
  }
}

/**
 * The object that begins after the last name of the level around it. Of members of one name, it is that of the last,
 * which is in force.
 */
function objectAt (around: Level | undefined, outermost: unknown): Record<string, unknown> | undefined {
  const name = around?.names.at(-1) ?? ''
  const value = !around
    ? outermost
    : around.object && Object.hasOwn(around.object, name) ? around.object[name] : undefined
  return isObject(value) ? value : undefined
}

/** An object is noted each time that its name is repeated: the last time tells its own names. */
function close (level: Level | undefined): void {
  if (level?.object) noteOrder(level.object, level.names)
}
