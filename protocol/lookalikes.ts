// Members that other parsers confuse with those that the gateway checks or replaces: Go and .NET ignore case in names,
// C ends them at a NUL. A server must read exactly the values that were checked here, so these members are not passed
// on.
import { isObject, memberOf, membersOf, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'

/** Only this many characters of a name are compared. */
const maxName = 256

const isAscii = /^[ -~]*$/
const ignorable = /\p{Default_Ignorable_Code_Point}/gu

/**
 * A name as the most lenient parser compares it: up to a NUL, without invisible characters, and without differences of
 * case and of compatibility characters (Unicode NFKC_Casefold; beside that the two Turkish letters that Java takes for
 * an `i`).
 */
function folded (name: string): string {
  if (name.length <= maxName && isAscii.test(name)) return name.toLowerCase()
  const end = name.indexOf('\0')
  const text = name.slice(0, end === -1 ? maxName : Math.min(end, maxName)).normalize('NFKC').replace(ignorable, '')
  return text.replace(/[\u0130\u0131]/g, 'i').toUpperCase().toLowerCase()
}

/** A set of names that have lookalikes. */
export class MemberNames {
  readonly #names: ReadonlySet<string>
  readonly #folded: ReadonlySet<string>

  constructor (names: readonly string[]) {
    this.#names = new Set(names)
    this.#folded = new Set(names.map(folded))
  }

  /** Whether a lenient parser may confuse this name, which is none of the set, with one of it. */
  isLookalike (name: string): boolean { return !this.#names.has(name) && this.#folded.has(folded(name)) }

  /** The text of an object without lookalikes; all other members keep their bytes. */
  strip (text: string): string {
    const members = membersOf(text)
    const kept = members.filter(({ key }) => !this.isLookalike(key))
    return kept.length === members.length ? text : `{${kept.map(({ keyStart, end }) => text.slice(keyStart, end)).join()}}`
  }

  /** Removes lookalikes from an object. @returns whether there were any */
  remove (object: Record<string, unknown>): boolean {
    let isFound = false
    for (const name in object) {
      if (!this.isLookalike(name)) continue
      isFound = true
      Reflect.deleteProperty(object, name)
    }
    return isFound
  }
}

/** The members of params that the gateway checks or replaces, beside `_meta`, by method. */
const ofRounds = ['inputResponses', 'requestState']
const ofTasks = new MemberNames(['_meta', 'taskId'])
const byMethod: ReadonlyMap<string, MemberNames> = new Map(Object.entries({
  'tools/call': ['name', 'arguments', 'task', ...ofRounds],
  'prompts/get': ['name', 'arguments', ...ofRounds],
  'resources/read': ['uri', ...ofRounds],
  'resources/subscribe': ['uri'],
  'resources/unsubscribe': ['uri'],
  'completion/complete': ['ref'],
  'notifications/progress': ['progressToken']
}).map(([method, names]) => [method, new MemberNames(['_meta', ...names])]))
const ofAll = new MemberNames(['_meta'])

/** Members of `_meta` that each hop writes itself. */
const ofMeta = new MemberNames(['progressToken', ...Object.values(metaKeys)])
const ofRef = new MemberNames(['type', 'name', 'uri'])
const within: ReadonlyArray<readonly [name: string, names: MemberNames]> = [['_meta', ofMeta], ['ref', ofRef]]

/** The names of a message's params that have lookalikes. */
export const checkedNames = (method: string): MemberNames =>
  byMethod.get(method) ?? (method.startsWith('tasks/') ? ofTasks : ofAll)

/**
 * Removes the lookalikes from params, and from their text.
 * @param isOutermost whether params themselves have any: they are removed from the text then
 * @returns the text, with all other members as they were
 */
export function withoutLookalikes (method: string, params: Record<string, unknown>, paramsText: string, isOutermost: boolean): string {
  let text = isOutermost ? checkedNames(method).strip(paramsText) : paramsText
  for (const [name, names] of within) {
    const member = params[name]
    if (isObject(member) && names.remove(member)) text = withMembers(text, { [name]: names.strip(memberOf(text, name) ?? '{}') })
  }
  return text
}
