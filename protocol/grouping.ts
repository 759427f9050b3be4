/** Appends a value to the list of a key; creates the list if necessary. */
export function pushTo<Key, Value> (lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key)
  if (list) list.push(value)
  else lists.set(key, [value])
}

/** Adds a value to the set of a key; creates the set if necessary. */
export function addTo<Key, Value> (sets: Map<Key, Set<Value>>, key: Key, value: Value): void {
  const set = sets.get(key)
  if (set) set.add(value)
  else sets.set(key, new Set([value]))
}
