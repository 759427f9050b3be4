// Members that other parsers confuse with those that the gateway checks or replaces: Go and .NET ignore case in names,
// C ends them at a NUL. A server must read exactly the values that were checked here, so these members are not passed
// on.
import { code, RpcError } from './errors.ts'
import { isObject, memberOf, membersOf, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'
import { truncate } from './text.ts'

/** Names within this length, without invisible characters, are folded whole, of longer ones the beginning. */
const maxName = 256
/** Max length of a name that is passed on, in characters: no name is longer, unless somebody pads it. */
const longestName = 8 * 1024

const isAscii = /^[ -~]*$/
const ignorable = /\p{Default_Ignorable_Code_Point}/gu

/** Between the words of a name: some parsers read `task_id` as `taskId`. The `_` of `_meta` is none of these. */
const separators = /(?<=[^_])_+(?=[^_])/g

/**
 * A name as the most lenient parser compares it: up to a NUL, without invisible characters, without `_` between words,
 * and without differences of case and of compatibility characters (Unicode NFKC_Casefold; beside that the two Turkish
 * letters that Java takes for an `i`).
 */
function folded (name: string): string {
  if (name.length <= maxName && isAscii.test(name)) return name.toLowerCase().replace(separators, '')
  const end = name.indexOf('\0')
  const visible = name.slice(0, end === -1 ? longestName : Math.min(end, longestName)).replace(ignorable, '')
  const text = visible.slice(0, maxName).normalize('NFKC').replace(ignorable, '')
  return text.replace(/[\u0130\u0131]/g, 'i').toUpperCase().toLowerCase().replace(separators, '')
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
  isLookalike (name: string): boolean {
    return !this.#names.has(name) && (name.length > longestName || this.#folded.has(folded(name)))
  }

  /** The text of an object without lookalikes; all other members keep their bytes. */
  strip (text: string): string {
    const members = membersOf(text)
    const kept = members.filter(({ key }) => !this.isLookalike(key))
    return kept.length === members.length
      ? text
      : `{${kept.map(({ keyStart, end }) => text.slice(keyStart, end)).join()}}`
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
export function withoutLookalikes (
  method: string, params: Record<string, unknown>, paramsText: string, isOutermost: boolean
): string {
  let text = isOutermost ? checkedNames(method).strip(paramsText) : paramsText
  for (const [name, names] of within) {
    const member = params[name]
    if (isObject(member) && names.remove(member)) {
      text = withMembers(text, { [name]: names.strip(memberOf(text, name) ?? '{}') })
    }
  }
  return text
}

/** The methods of all revisions of MCP. */
const methods: ReadonlySet<string> = new Set([
  'initialize', 'ping', 'server/discover', 'subscriptions/listen', 'tools/list', 'tools/call', 'prompts/list',
  'prompts/get',
  'resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe', 'resources/unsubscribe',
  'completion/complete',
  'logging/setLevel', 'tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel',
  'sampling/createMessage', 'elicitation/create', 'roots/list',
  'notifications/initialized', 'notifications/cancelled', 'notifications/progress', 'notifications/message',
  'notifications/tools/list_changed', 'notifications/prompts/list_changed', 'notifications/resources/list_changed',
  'notifications/resources/updated', 'notifications/roots/list_changed', 'notifications/elicitation/complete',
  'notifications/tasks/status', 'notifications/subscriptions/acknowledged'
])
const foldedMethods: ReadonlyMap<string, string> = new Map([...methods].map((method) => [folded(method), method]))
/** Prefixes by which methods are told apart, whatever follows. */
const prefixes = ['tasks/', 'notifications/']

/**
 * The method that a server may take this one for, though it is another: the gateway would pass it on without the checks
 * of that method.
 * @returns undefined for a method of MCP, and for one of an extension
 */
export function lookalikeMethod (method: string): string | undefined {
  if (methods.has(method)) return undefined
  const visible = method.slice(0, longestName).replace(/\0.*/s, '').replace(/[\s\p{Cc}]+/gu, '')
  const plain = folded(visible).replace(/\/{2,}/g, '/').replace(/^\/|\/$/g, '')
  const known = foldedMethods.get(plain)
  if (known !== undefined) return known
  const prefix = prefixes.find((each) => plain.startsWith(each))
  return prefix === undefined || method.startsWith(prefix) ? undefined : plain
}

/** The error of a request whose method is not known, with the method that was probably meant. */
export const unknownMethod = (method: string): RpcError => {
  const meant = lookalikeMethod(method)
  const hint = meant === undefined ? '' : `. Did you mean ${meant}?`
  return new RpcError(code.methodNotFound, `Method not found: ${truncate(method, maxName)}${hint}`)
}
