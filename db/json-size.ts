const sizes = new WeakMap<object, number>()

/** Returns the length of a value's JSON text, in characters. The length is cached, so the value must not be changed. */
export function jsonLength (value: object): number {
  let size = sizes.get(value)
  if (size === undefined) sizes.set(value, size = JSON.stringify(value).length)
  return size
}
