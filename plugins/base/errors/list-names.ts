/** Max number of names in a sentence. */
const maxNames = 10

/**
 * Returns names for a sentence: `"a", "b"`. Of many names, only the first ones, and the number of the others.
 * @param format converts a name to text. Default: its JSON string
 */
export const listNames = (names: readonly string[], format: (name: string) => string = JSON.stringify): string =>
  names.slice(0, maxNames).map((name) => format(name)).join(', ') +
  (names.length > maxNames ? ` and ${names.length - maxNames} more` : '')
