/** Part of the hint of each field that `namesIn` reads. */
export const namesHint = 'separated by commas or new lines'

/**
 * Splits the text of a field into names at commas and new lines. Empty names and duplicates are omitted.
 * @param mayHaveSpaces whether names may contain spaces; by default, spaces separate names as well
 */
export const namesIn = (text: string, mayHaveSpaces = false): string[] =>
  [...new Set(text.split(mayHaveSpaces ? /[,\r\n]/ : /[,\s]/).map((name) => name.trim()).filter((name) => name !== ''))]
