import { splitWords } from './common-words.ts'
import { stemOf } from './stem.ts'
import { tuning } from './tuning.ts'

/** First words of queries that ask for information, not for a change. */
export const asking: ReadonlySet<string> = new Set(splitWords(
  'what which who whose whom where when any is are did does has have was were show tell',
  'welche welcher welches wer wo wann was gibt zeig zeige que cual cuales quien donde cuando hay quel quelle quels ' +
  'quelles qui ou quand',
  'qual quais quem onde quando quale quali chi dove'
))

/** Beginnings of such queries that cannot be recognised by their first word. */
const askingStart =
  /^\W*(?:how (?:many|much|big|large|small|long|old|far|high|often|fast|well|good|is|are|was|were|did|does|has|have)|why|list)\b/i

/** Whether a query asks for information. @param first its first word, in lower case */
export const isAsking = (question: string, first: string): boolean => asking.has(first) || askingStart.test(question)

/** Verbs of tools that read, as terms. */
export const telling: readonly string[] =
  splitWords('list get search read find query describe show count fetch retrieve view').map(stemOf)
const tells: ReadonlySet<string> = new Set(telling)

/** Verbs of tools that change something, as terms. */
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

/** Whether a query asks for information or for a change; undefined: unclear. */
type Purpose = 'know' | 'change' | undefined

/** The purpose of a query. @param asked the weight of each term in the query */
export function purposeOf (isAsking: boolean, asked: ReadonlyMap<string, number>): Purpose {
  if (isAsking) return 'know'
  const most = (terms: readonly string[]): number => Math.max(...terms.map((term) => asked.get(term) ?? 0))
  return most(changing) >= tuning.purpose.changing && most(telling) <= tuning.purpose.telling ? 'change' : undefined
}

/** Whether the verb of a tool contradicts the purpose of a query, and the query does not mention that verb. */
export function isContrary (purpose: Purpose, verb: string | undefined, asked: ReadonlyMap<string, number>): boolean {
  if (purpose === undefined || verb === undefined) return false
  return (purpose === 'know' ? changes : tells).has(verb) && (asked.get(verb) ?? 0) <= tuning.purpose.telling
}
