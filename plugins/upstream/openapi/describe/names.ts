import { createHash } from 'node:crypto'
import { addTo } from '../../../../protocol/grouping.ts'
import { truncate } from '../../../../protocol/text.ts'
import { isModelSafeName, maxModelSafeNameLength as maxNameLength, toModelSafeText } from '../../../../schemas/names.ts'

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/**
 * Reduces a name to the characters and the length that the APIs of language models accept. The result may be empty. An
 * acceptable name is returned unchanged.
 */
function toNameCharacters (text: string): string {
  if (isModelSafeName(text)) return text
  const name = toModelSafeText(text).replace(/^_+/, '')
  // The pattern `/_+$/` would take quadratic time.
  let end = Math.min(name.length, maxNameLength)
  while (name[end - 1] === '_') end--
  return name.slice(0, end)
}

/** Appends a hash of `identity` to a name, which is shortened if needed. */
const withHash = (name: string, identity: string): string =>
  `${name.slice(0, maxNameLength - 9)}_${shortHash(identity)}`

/** The text after which a tool is named. `folded`: the text reduced to the characters allowed in names. */
interface NameSource { readonly text: string, readonly folded: string }

/** Returns the text after which an operation's tool is named: its operationId, or else its method and path. */
function sourceOf (operationId: unknown, method: string, path: string): NameSource {
  const id = typeof operationId === 'string' || typeof operationId === 'number' ? String(operationId) : ''
  const folded = toNameCharacters(id)
  if (folded !== '') return { text: id, folded }
  const text = `${method.toLowerCase()}${path.replace(/[{}]/g, '')}`
  return { text, folded: toNameCharacters(text) }
}

/** The parts of an operation that determine its tool's name. `method`: in upper case. */
export interface OperationIdentity { readonly operationId: unknown, readonly method: string, readonly path: string }

/**
 * Assigns unique tool names to the operations of a description. An operation is named after its operationId, or else
 * its method and path; characters that the APIs of language models do not accept become `_`. A name that is truncated,
 * ambiguous or taken ends with a hash of method and path. The order of the operations matters only if several have the
 * same operationId.
 */
export class ToolNames {
  readonly #assigned = new Set<string>()
  /** The texts that are reduced to the same name, by this name. */
  readonly #sources = new Map<string, Set<string>>()

  /** @param operations all operations of the description */
  constructor (operations: Iterable<OperationIdentity>) {
    for (const { operationId, method, path } of operations) {
      const { text, folded } = sourceOf(operationId, method, path)
      addTo(this.#sources, folded, text)
    }
  }

  assign ({ operationId, method, path }: OperationIdentity): string {
    const { text, folded } = sourceOf(operationId, method, path)
    const isOnlyOne = text === folded || (this.#sources.get(folded)?.size ?? 0) < 2
    const isWhole = text.length <= maxNameLength
    const isPlain = isOnlyOne && isWhole && !this.#assigned.has(folded)
    let name = isPlain ? folded : withHash(folded, `${method} ${path}`)
    // An operationId may look like the name of another operation with its hash.
    for (let salt = ' '; this.#assigned.has(name); salt += ' ') name = withHash(folded, `${method} ${path}${salt}`)
    this.#assigned.add(name)
    return name
  }
}

/**
 * Adds the name in the request to an argument's description, unless the argument's own name begins with it.
 * @param name the name of the parameter or field in the request
 * @returns the description; undefined if there is none and nothing is added
 */
export function descriptionWithRequestName (
  description: string | undefined, name: string, argument: string
): string | undefined {
  if (argument.startsWith(name)) return description
  const sent = `${JSON.stringify(truncate(name, 256))} in the request`
  return description === undefined || description.trim() === '' ? sent : `${description} (${sent})`
}

/** What an argument is named after: `name` in the request, and `location`, such as `query` or `body`. */
interface ArgumentSource { readonly name: string, readonly location: string }

/**
 * Assigns unique names to the arguments of one tool. An argument has the name of its parameter, in which characters
 * that the APIs of language models do not accept become `_`. A name that is truncated, empty or ambiguous ends with a
 * hash. A name that was already assigned becomes `<name>_<location>`, with a number at the end if that is taken, too.
 */
export class ArgumentNames {
  readonly #assigned = new Set<string>()
  readonly #counts = new Map<string, number>()
  /** The parameter names that are reduced to the same name, by this name. */
  readonly #sources = new Map<string, Set<string>>()

  has (name: string): boolean { return this.#assigned.has(name) }

  /** Registers the names of parameters before names are assigned, so that ambiguous ones are known in any order. */
  expect (names: Iterable<string>): void {
    for (const name of names) addTo(this.#sources, toNameCharacters(name), name)
  }

  /** Returns the name that an argument gets unless this name was assigned to another argument. */
  plainName ({ name, location }: ArgumentSource): string {
    const folded = toNameCharacters(name)
    if (folded === '') return `${location}_${shortHash(name)}`
    const isOnlyOne = name === folded || (this.#sources.get(folded)?.size ?? 0) < 2
    return isOnlyOne && name.length <= maxNameLength ? folded : withHash(folded, name)
  }

  assign (source: ArgumentSource): string {
    const plain = this.plainName(source)
    const named = `${plain.slice(0, maxNameLength - 12)}_${source.location}`
    let unique = this.#assigned.has(plain) ? named : plain
    let count = this.#counts.get(named) ?? 1
    while (this.#assigned.has(unique)) unique = `${named}_${++count}`
    if (count > 1) this.#counts.set(named, count)
    this.#assigned.add(unique)
    return unique
  }
}
