// Removes members whose names lenient parsers confuse with names that the gateway checks or replaces: Go and .NET
// ignore case, C ends names at a NUL. A server must read exactly the values that were checked.
import { rpcCode, RpcError } from './errors.ts'
import { isObject, memberOf, membersOf, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'
import { truncate } from './text.ts'

/** Max length to which a name is folded, in characters; the rest of a longer name is ignored. */
const maxFoldedLength = 256
/** Max length of a name, in characters. A longer one counts as a lookalike, since it may be padded. */
const maxNameLength = 8 * 1024

const isAscii = /^[ -~]*$/
const ignorable = /\p{Default_Ignorable_Code_Point}/gu

/** Matches `_` between words: some parsers read `task_id` as `taskId`. */
const separators = /(?<=[^_])_+(?=[^_])/g

/**
 * Folds a name as the most lenient parser would: it ends at a NUL, and ignores invisible characters, `_` between words,
 * case and compatibility differences (Unicode NFKC_Casefold, and the two Turkish letters that Java reads as `i`).
 */
function foldName (name: string): string {
  if (name.length <= maxFoldedLength && isAscii.test(name)) return name.toLowerCase().replace(separators, '')
  const end = name.indexOf('\0')
  const visible = name.slice(0, end === -1 ? maxNameLength : Math.min(end, maxNameLength)).replace(ignorable, '')
  const text = visible.slice(0, maxFoldedLength).normalize('NFKC').replace(ignorable, '')
  return text.replace(/[\u0130\u0131]/g, 'i').toUpperCase().toLowerCase().replace(separators, '')
}

/** A set of names, which detects and removes lookalikes of these names. */
export class GuardedNames {
  readonly #names: ReadonlySet<string>
  readonly #folded: ReadonlySet<string>

  constructor (names: readonly string[]) {
    this.#names = new Set(names)
    this.#folded = new Set(names.map(foldName))
  }

  /** Whether a name is not in the set, but a lenient parser may confuse it with one that is. */
  isLookalike (name: string): boolean {
    return !this.#names.has(name) && (name.length > maxNameLength || this.#folded.has(foldName(name)))
  }

  /** Removes members with lookalike names from an object's text; all other members keep their bytes. */
  strip (text: string): string {
    const members = membersOf(text)
    const kept = members.filter(({ key }) => !this.isLookalike(key))
    return kept.length === members.length
      ? text
      : `{${kept.map(({ keyStart, end }) => text.slice(keyStart, end)).join()}}`
  }

  /** Removes members with lookalike names from an object. @returns whether there were any */
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

const roundMembers = ['inputResponses', 'requestState']
/** The members of the params of `events/*`. */
const eventMembers = ['name', 'arguments', 'cursor']
const taskMembers = new GuardedNames(['_meta', 'taskId', 'inputResponses'])
/** By method: the members of params that the gateway checks or replaces. */
const byMethod: ReadonlyMap<string, GuardedNames> = new Map(Object.entries({
  'tools/call': ['name', 'arguments', 'task', ...roundMembers],
  'prompts/get': ['name', 'arguments', ...roundMembers],
  'resources/read': ['uri', ...roundMembers],
  'resources/subscribe': ['uri'],
  'resources/unsubscribe': ['uri'],
  'resources/directory/read': ['uri'],
  'skills/get': ['uri'],
  'completion/complete': ['ref'],
  'events/poll': eventMembers,
  'events/stream': eventMembers,
  'events/subscribe': [...eventMembers, 'delivery', 'ttlMs'],
  'events/unsubscribe': [...eventMembers, 'delivery'],
  'logging/setLevel': ['level'],
  'notifications/cancelled': ['requestId'],
  'notifications/progress': ['progressToken'],
  'notifications/tasks/status': ['taskId']
}).map(([method, names]) => [method, new GuardedNames(['_meta', ...names])]))
const defaultMembers = new GuardedNames(['_meta'])

/** The members of `_meta` that the gateway checks or replaces. */
const metaMembers = new GuardedNames(['progressToken', ...Object.values(metaKeys)])
const refMembers = new GuardedNames(['type', 'name', 'uri'])
const guardedObjects: ReadonlyArray<readonly [name: string, names: GuardedNames]> = [
  ['_meta', metaMembers], ['ref', refMembers]
]

/** Returns the names of members of a method's params whose lookalikes are removed. */
export const guardedNamesOf = (method: string): GuardedNames =>
  byMethod.get(method) ?? (method.startsWith('tasks/') ? taskMembers : defaultMembers)

/**
 * Removes lookalikes from params and from their text.
 * @param isOutermost whether the outermost object had lookalikes, which are already removed from `params`
 * @returns the text without lookalikes; all other members keep their bytes
 */
export function withoutLookalikes (
  method: string, params: Record<string, unknown>, paramsText: string, isOutermost: boolean
): string {
  let text = isOutermost ? guardedNamesOf(method).strip(paramsText) : paramsText
  for (const [name, names] of guardedObjects) {
    const member = params[name]
    if (isObject(member) && names.remove(member)) {
      text = withMembers(text, { [name]: names.strip(memberOf(text, name) ?? '{}') })
    }
  }
  return text
}

/** The methods of all revisions of MCP, and of the extensions that the gateway knows. */
const methods: ReadonlySet<string> = new Set([
  'initialize', 'ping', 'server/discover', 'subscriptions/listen', 'tools/list', 'tools/call', 'prompts/list',
  'prompts/get',
  'resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe', 'resources/unsubscribe',
  'resources/directory/read', 'skills/list', 'skills/get', 'completion/complete',
  'logging/setLevel', 'tasks/get', 'tasks/result', 'tasks/list', 'tasks/update', 'tasks/cancel',
  'events/list', 'events/poll', 'events/stream', 'events/subscribe', 'events/unsubscribe',
  'sampling/createMessage', 'elicitation/create', 'roots/list',
  'notifications/initialized', 'notifications/cancelled', 'notifications/progress', 'notifications/message',
  'notifications/tools/list_changed', 'notifications/prompts/list_changed', 'notifications/resources/list_changed',
  'notifications/resources/updated', 'notifications/roots/list_changed', 'notifications/elicitation/complete',
  'notifications/tasks', 'notifications/tasks/status', 'notifications/subscriptions/acknowledged'
])

/** Whether a revision of MCP, or an extension that the gateway knows, defines a method. */
export const isMcpMethod = (method: string): boolean => methods.has(method)

const foldedMethods: ReadonlyMap<string, string> = new Map([...methods].map((method) => [foldName(method), method]))
/** Prefixes that the gateway recognizes in methods that are otherwise unknown to it. */
const prefixes = ['tasks/', 'events/', 'notifications/events/', 'notifications/']

/**
 * Returns the MCP method that a lenient server may take an unknown method for. Relaying the unknown method would bypass
 * the checks of that MCP method.
 * @returns undefined if there is none, or if the method itself is known
 */
export function lookalikeMethod (method: string): string | undefined {
  if (methods.has(method)) return undefined
  const visible = method.slice(0, maxNameLength).replace(/\0.*/s, '').replace(/[\s\p{Cc}]+/gu, '')
  const plain = foldName(visible).replace(/\/{2,}/g, '/').replace(/^\/|\/$/g, '')
  const known = foldedMethods.get(plain)
  if (known !== undefined) return known
  const prefix = prefixes.find((each) => plain.startsWith(each))
  return prefix === undefined || method.startsWith(prefix) ? undefined : plain
}

/** Creates the error for an unknown method. It names the method that may be meant. */
export const unknownMethodError = (method: string): RpcError => {
  const meant = lookalikeMethod(method)
  const hint = meant === undefined ? '' : `. Did you mean ${meant}?`
  return new RpcError(rpcCode.methodNotFound, `Method not found: ${truncate(method, maxFoldedLength)}${hint}`)
}
