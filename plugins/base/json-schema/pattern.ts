/** Whether a value is a regular expression with the flag `u`, as the patterns of JSON Schema are. */
export function isUnicodePattern (value: unknown): boolean {
  if (typeof value !== 'string') return false
  try {
    return new RegExp(value, 'u') instanceof RegExp
  } catch {
    return false
  }
}
