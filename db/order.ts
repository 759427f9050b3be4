/**
 * The order of members for objects that do not keep it themselves: JavaScript moves names like `7` before all others,
 * while the order of servers decides which of two keeps a name. JSON texts keep it (`inTextOrder` reads it from them),
 * and so do the positions of rows in a database.
 */
const orders = new WeakMap<object, readonly string[]>()

/** The members of an object in their order of configuration. */
export function orderedEntries<Value> (object: Readonly<Record<string, Value>>): Array<[name: string, value: Value]> {
  // Not Object.entries: of 10,000 members that takes four times as long.
  return (orders.get(object) ?? Object.keys(object)).map((name) => [name, object[name] as Value])
}

/** Reverses `orderedEntries`. The order stays known for as long as the object itself is handed on. */
export function orderedObject<Value> (
  entries: ReadonlyArray<readonly [name: string, value: Value]>
): Record<string, Value> {
  const object = Object.fromEntries(entries)
  noteOrder(object, entries.map(([name]) => name))
  return object
}

/**
 * Notes the order of an object's members, where JavaScript has another.
 * @param names theirs; of a repeated one the first place counts
 */
export function noteOrder (object: object, names: readonly string[]): void {
  const keys = Object.keys(object)
  const isInOrder = keys.length === names.length && keys.every((name, at) => name === names[at])
  const ordered = isInOrder ? keys : [...new Set(names)]
  if (isInOrder || keys.every((name, at) => name === ordered[at])) orders.delete(object)
  else orders.set(object, ordered)
}

/** Whether JavaScript sorts this name of a member before others. */
export const isIndex = (name: string): boolean => /^(0|[1-9][0-9]{0,9})$/.test(name) && Number(name) < 2 ** 32 - 1
