const sizes = new WeakMap<object, number>()

/** The length of a value's JSON text, in characters. Cached, since parts of the settings are immutable. */
export function jsonSize (value: object): number {
  let size = sizes.get(value)
  if (size === undefined) sizes.set(value, size = JSON.stringify(value).length)
  return size
}

/** Caches the size of a value whose JSON text is available anyway. */
export function cacheJsonSize (value: unknown, size: number): void {
  if (typeof value === 'object' && value !== null) sizes.set(value, size)
}
