const sizes = new WeakMap<object, number>()

/** The length of a value's JSON text, in characters. Cached, since parts of the settings are immutable. */
export function jsonSize (value: object): number {
  let size = sizes.get(value)
  if (size === undefined) sizes.set(value, size = JSON.stringify(value).length)
  return size
}
