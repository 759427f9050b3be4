/**
 * A function that computes its result once for each object, which must not change, and keeps it as long as the object
 * exists. An undefined result is computed again.
 */
export function memoized<Key extends object, Value> (compute: (key: Key) => Value): (key: Key) => Value {
  const results = new WeakMap<Key, Value>()
  return (key) => {
    let result = results.get(key)
    if (result === undefined) results.set(key, result = compute(key))
    return result
  }
}
