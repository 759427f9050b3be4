const splitWords = (...lines: string[]): string[] => lines.flatMap((line) => line.split(' '))

/** English stop words. The list is short, since words such as `who`, `when`, `where` and `all` carry meaning here. */
export const stopWords: ReadonlySet<string> = new Set(splitWords(
  'a an the of to in for on at is are my me i it its and or with that this please can you we our be do does us im id',
  'want need would like could so just'
))
