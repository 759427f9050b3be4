/**
 * Wraps a function so that it computes its result once per object, which must not change, and caches it as long as the
 * object exists. An undefined result is not cached.
 */
export function memoized<Key extends object, Value> (compute: (key: Key) => Value): (key: Key) => Value {
  const results = new WeakMap<Key, Value>()
  return (key) => {
    let result = results.get(key)
    if (result === undefined) results.set(key, result = compute(key))
    return result
  }
}
