/** Part of the hint of each field that `namesIn` reads. */
export const namesHint = 'separated by commas or new lines'

/**
 * Splits the text of a field into names at commas and new lines. Empty names and duplicates are omitted.
 * @param mayHaveSpaces whether names may contain spaces; by default, spaces separate names as well
 * @param stored the former names, which are not split if a line consists of one
 */
export const namesIn = (text: string, mayHaveSpaces = false, stored: readonly string[] = []): string[] => {
  const names = text.split(/[\r\n]/).flatMap((line) =>
    stored.includes(line.trim()) ? [line] : line.split(mayHaveSpaces ? ',' : /[,\s]/))
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))]
}
