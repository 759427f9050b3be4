const sizes = new WeakMap<object, number>()

/** The length of a value's JSON text, in characters. It is kept: parts of the settings are never changed in place. */
export function jsonSize (value: object): number {
  let size = sizes.get(value)
  if (size === undefined) sizes.set(value, size = JSON.stringify(value).length)
  return size
}

/** Notes the size of a value whose text is at hand. */
export function noteJsonSize (value: unknown, size: number): void {
  if (typeof value === 'object' && value !== null) sizes.set(value, size)
}
