/** The separators of names in a field; part of the hint of each field that `namesIn` reads. */
export const namesHint = 'separated by commas or new lines'

/**
 * Splits the text of a field into names, separated by commas and new lines; without empty ones and duplicates.
 * @param mayHaveSpaces if false, spaces also separate names
 */
export const namesIn = (text: string, mayHaveSpaces = false): string[] =>
  [...new Set(text.split(mayHaveSpaces ? /[,\r\n]/ : /[,\s]/).map((name) => name.trim()).filter((name) => name !== ''))]
