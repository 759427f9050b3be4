import { createHash } from 'node:crypto'
import { addTo } from '../../../../protocol/grouping.ts'
import { truncate } from '../../../../protocol/text.ts'
import { isModelSafeName, maxModelSafeNameLength as maxNameLength, toModelSafeText } from '../../../../schemas/names.ts'

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/**
 * Reduces a name to the characters and the length that model APIs accept. A name that they accept is unchanged. The
 * result may be empty.
 */
function toNameCharacters (text: string): string {
  if (isModelSafeName(text)) return text
  const name = toModelSafeText(text).replace(/^_+/, '')
  // The pattern `/_+$/` would take quadratic time.
  let end = Math.min(name.length, maxNameLength)
  while (name[end - 1] === '_') end--
  return name.slice(0, end)
}

/** Shortens a name if needed, and appends a hash of `identity`. */
const withHash = (name: string, identity: string): string =>
  `${name.slice(0, maxNameLength - 9)}_${shortHash(identity)}`

/** The text that a tool is named after: the original, and reduced to the characters allowed in names. */
interface NameSource { readonly text: string, readonly folded: string }

function sourceOf (operationId: unknown, method: string, path: string): NameSource {
  const id = typeof operationId === 'string' || typeof operationId === 'number' ? String(operationId) : ''
  const folded = toNameCharacters(id)
  if (folded !== '') return { text: id, folded }
  const text = `${method.toLowerCase()}${path.replace(/[{}]/g, '')}`
  return { text, folded: toNameCharacters(text) }
}

export interface OperationIdentity { readonly operationId: unknown, readonly method: string, readonly path: string }

/**
 * Assigns a unique tool name to each operation: its operationId, or else its method and path, as model APIs accept it.
 * Other characters become `_`. A name that is truncated, ambiguous or taken ends with a hash of method and path, so
 * that the order of the operations does not matter, unless two have one operationId.
 */
export class ToolNames {
  readonly #assigned = new Set<string>()
  /** The original texts for each reduced name. */
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
    const name = isPlain ? folded : withHash(folded, `${method} ${path}`)
    this.#assigned.add(name)
    return name
  }
}

/**
 * The description of an argument whose name differs from its parameter's: it states the name in the request.
 * @returns undefined if the description needs no such note
 */
export function describeArgument (description: string | undefined, name: string, argument: string): string | undefined {
  if (argument.startsWith(name)) return description
  const sent = `${JSON.stringify(truncate(name, 256))} in the request`
  return description === undefined || description.trim() === '' ? sent : `${description} (${sent})`
}

interface ArgumentSource { readonly name: string, readonly location: string }

/**
 * Assigns unique names to the arguments of one tool. An argument is named as its parameter, if model APIs accept that;
 * other characters become `_`, and names that are truncated, empty or ambiguous end with a hash. Where parameters in
 * different locations share a name, that of the later location (path, query, header, cookie) becomes
 * `<name>_<location>`, with a number if that is taken.
 */
export class ArgumentNames {
  readonly #assigned = new Set<string>()
  readonly #counts = new Map<string, number>()
  /** The parameter names for each reduced name. */
  readonly #sources = new Map<string, Set<string>>()

  has (name: string): boolean { return this.#assigned.has(name) }

  /** Registers names in advance, so that their order does not matter. */
  expect (names: Iterable<string>): void {
    for (const name of names) addTo(this.#sources, toNameCharacters(name), name)
  }

  /** The name that an argument gets if that name is free. */
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
