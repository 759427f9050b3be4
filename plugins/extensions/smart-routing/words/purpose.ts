import { splitWords } from './common-words.ts'
import { stemOf } from './stem.ts'
import { tuning } from './tuning.ts'

/** Words that begin a question, which wants to know something, not to change it. */
export const asking: ReadonlySet<string> = new Set(splitWords(
  'what which who whose whom where when any is are did does has have was were show tell',
  'welche welcher welches wer wo wann was gibt zeig zeige que cual cuales quien donde cuando hay quel quelle quels ' +
  'quelles qui ou quand',
  'qual quais quem onde quando quale quali chi dove'
))

/** Beginnings of questions whose first word alone does not tell. */
const askingStart =
  /^\W*(?:how (?:many|much|big|large|small|long|old|far|high|often|fast|well|good|is|are|was|were|did|does|has|have)|why|list)\b/i

/** Whether a question wants to know something. @param first its first word, in lower case */
export const isAsking = (question: string, first: string): boolean => asking.has(first) || askingStart.test(question)

/** Terms of tools that tell something. */
export const telling: readonly string[] =
  splitWords('list get search read find query describe show count fetch retrieve view').map(stemOf)
const tells: ReadonlySet<string> = new Set(telling)

/** Terms of tools that change something. */
const changing: readonly string[] = splitWords(
  'create delete update add remove set drop insert move rename push send write upload modify edit change clear reset ' +
  'post patch put',
  'upsert install uninstall merge close fill type click press drag kill stop start deploy rollback restore import ' +
  'build make copy',
  'archive assign invite publish trigger toggle manage duplicate reply respond append replace enable disable ' +
  'allocate release cancel',
  'approve reject revoke schedule'
).map(stemOf)
const changes: ReadonlySet<string> = new Set(changing)

/** What a question wants of a tool; undefined where that is not clear. */
type Purpose = 'know' | 'change' | undefined

/** @param asked what each term of the question is worth */
export function purposeOf (isAsking: boolean, asked: ReadonlyMap<string, number>): Purpose {
  if (isAsking) return 'know'
  const most = (terms: readonly string[]): number => Math.max(...terms.map((term) => asked.get(term) ?? 0))
  return most(changing) >= tuning.purpose.changing && most(telling) <= tuning.purpose.telling ? 'change' : undefined
}

/** Whether a tool does the contrary, by the verb of its name, and the question does not ask for just that. */
export function isContrary (purpose: Purpose, verb: string | undefined, asked: ReadonlyMap<string, number>): boolean {
  if (purpose === undefined || verb === undefined) return false
  return (purpose === 'know' ? changes : tells).has(verb) && (asked.get(verb) ?? 0) <= tuning.purpose.telling
}
