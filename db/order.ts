/**
 * The recorded order of member names, for objects that cannot have this order: JavaScript sorts integer-like names such
 * as `7` before all others. The order of servers matters, since it decides which of two servers gets a name that both
 * use. The recorded order comes from JSON text (`rememberTextOrder`), or from the positions of database rows.
 */
const orders = new WeakMap<object, readonly string[]>()

/** Returns the members of an object in their recorded order; in JavaScript's order if none is recorded. */
export function orderedEntries<Value> (object: Readonly<Record<string, Value>>): Array<[name: string, value: Value]> {
  // Not Object.entries, which takes four times as long for 10,000 members.
  return (orders.get(object) ?? Object.keys(object)).map((name) => [name, object[name] as Value])
}

/** Creates an object from entries, and records their order for this object, but not for copies of it. */
export function createOrderedObject<Value> (
  entries: ReadonlyArray<readonly [name: string, value: Value]>
): Record<string, Value> {
  const object = Object.fromEntries(entries)
  rememberOrder(object, entries.map(([name]) => name))
  return object
}

/**
 * Records the order of an object's members, if JavaScript's own order differs from it.
 * @param names the names of all members in order; of a repeated name, the first position counts
 */
export function rememberOrder (object: object, names: readonly string[]): void {
  const keys = Object.keys(object)
  const isInOrder = keys.length === names.length && keys.every((name, at) => name === names[at])
  const ordered = isInOrder ? keys : [...new Set(names)]
  if (isInOrder || keys.every((name, at) => name === ordered[at])) orders.delete(object)
  else orders.set(object, ordered)
}

/** Whether a member name is integer-like, so that JavaScript sorts it before other names. */
export const isIntegerName = (name: string): boolean => /^(0|[1-9][0-9]{0,9})$/.test(name) && Number(name) < 2 ** 32 - 1
