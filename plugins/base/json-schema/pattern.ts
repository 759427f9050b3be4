/** Whether a value is the text of a valid regular expression with the flag `u`, as JSON Schema requires of patterns. */
export function isValidPattern (value: unknown): boolean {
  if (typeof value !== 'string') return false
  try {
    return new RegExp(value, 'u') instanceof RegExp
  } catch {
    return false
  }
}
