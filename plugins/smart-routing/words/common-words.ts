import { stemOf } from './stem.ts'

const list = (...words: string[]): string[] => words.flatMap((line) => line.split(' '))

/** Words that begin a question, which wants to know something, not to change it. */
export const asking: ReadonlySet<string> = new Set(list(
  'what which who whose whom where when any is are did does has have was were show tell',
  'welche welcher welches wer wo wann was gibt zeig zeige que cual cuales quien donde cuando hay quel quelle quels quelles qui ou quand',
  'qual quais quem onde quando quale quali chi dove'
))

/** Terms of tools that tell something. */
export const telling: readonly string[] = list('list get search read find query describe show count fetch retrieve view').map(stemOf)

/** Words that say nothing of a tool. Few: who, when, where and all do. */
export const stopWords: ReadonlySet<string> = new Set(list(
  'a an the of to in for on at is are my me i it its and or with that this please can you we our be do does us im id',
  'want need would like could so just'
))
