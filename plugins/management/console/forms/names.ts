/** How names are told apart in a field; a part of the hint of each field that `namesIn` reads. */
export const namesHint = 'with commas or new lines between them'

/**
 * The names in the text of a field: commas and new lines part them, empty ones are dropped, and each is there once.
 * @param mayHaveSpaces otherwise spaces part them, too
 */
export const namesIn = (text: string, mayHaveSpaces = false): string[] =>
  [...new Set(text.split(mayHaveSpaces ? /[,\r\n]/ : /[,\s]/).map((name) => name.trim()).filter((name) => name !== ''))]
