/** Splits lines into words. */
export const splitWords = (...words: string[]): string[] => words.flatMap((line) => line.split(' '))

/** Stop words. There are few, since words such as who, when, where and all do matter. */
export const stopWords: ReadonlySet<string> = new Set(splitWords(
  'a an the of to in for on at is are my me i it its and or with that this please can you we our be do does us im id',
  'want need would like could so just'
))

/** Verbs with little meaning of their own, but much in phrases: `take the app off`. */
export const lightVerbs: ReadonlySet<string> = new Set(splitWords(
  'take takes taking took taken make makes making made put puts putting give gives giving gave given keep keeps ' +
  'keeping kept let lets',
  'go goes going went come comes coming tell tells told say says said know knows knew think thinks see sees saw seen ' +
  'look looks looking',
  'bring brings brought throw pull stick leave turn hit call work works working happen happens happened stand hold left'
))
