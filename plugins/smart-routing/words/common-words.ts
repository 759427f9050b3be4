/** The words of lines. */
export const list = (...words: string[]): string[] => words.flatMap((line) => line.split(' '))

/** Words that say nothing of a tool. Few: who, when, where and all do. */
export const stopWords: ReadonlySet<string> = new Set(list(
  'a an the of to in for on at is are my me i it its and or with that this please can you we our be do does us im id',
  'want need would like could so just'
))
