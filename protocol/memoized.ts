/**
 * Wraps a function of an object so that each result is cached as long as the object exists. The object must not change.
 * A result `undefined` is not cached.
 */
export function memoized<Key extends object, Value> (compute: (key: Key) => Value): (key: Key) => Value {
  const results = new WeakMap<Key, Value>()
  return (key) => {
    let result = results.get(key)
    if (result === undefined) results.set(key, result = compute(key))
    return result
  }
}
