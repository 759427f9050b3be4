import { createHash } from 'node:crypto'
import { truncate } from '../../../../protocol/text.ts'
import { isModelName, longestModelName as maxNameLength, toModelCharacters } from '../../../../schemas/names.ts'

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** A name as model APIs take it, which stays; else with their characters only, cut to their max length. Empty where nothing is left. */
function toNameCharacters (text: string): string {
  if (isModelName(text)) return text
  const name = toModelCharacters(text).replace(/^_+/, '')
  // Not by `/_+$/`, which looks at each run of underscores once for each of them.
  let end = Math.min(name.length, maxNameLength)
  while (name[end - 1] === '_') end--
  return name.slice(0, end)
}

/** A name with a hash of what it stands for at its end. */
const withHash = (name: string, identity: string): string => `${name.slice(0, maxNameLength - 9)}_${shortHash(identity)}`

/** What a tool is named after, and what that becomes with the characters of names only. */
interface NameSource { readonly text: string, readonly folded: string }

function sourceOf (operationId: unknown, method: string, path: string): NameSource {
  const id = typeof operationId === 'string' || typeof operationId === 'number' ? String(operationId) : ''
  const folded = toNameCharacters(id)
  if (folded !== '') return { text: id, folded }
  const text = `${method.toLowerCase()}${path.replace(/[{}]/g, '')}`
  return { text, folded: toNameCharacters(text) }
}

/** An operation as far as its tool is named after it. */
export interface NamedOperation { readonly operationId: unknown, readonly method: string, readonly path: string }

/**
 * Assigns a unique tool name to each operation: its operationId, or else its method and path, as model APIs take it. Other characters
 * become `_`. A name that is cut, one that other operations' would become as well, and one that is taken end with a hash of method and
 * path: the order of the operations decides nothing, unless two have one operationId.
 */
export class ToolNames {
  readonly #assigned = new Set<string>()
  /** What becomes each name. */
  readonly #sources = new Map<string, Set<string>>()

  /** @param operations all of the description */
  constructor (operations: Iterable<NamedOperation>) {
    for (const { operationId, method, path } of operations) {
      const { text, folded } = sourceOf(operationId, method, path)
      const known = this.#sources.get(folded)
      if (known) known.add(text)
      else this.#sources.set(folded, new Set([text]))
    }
  }

  assign ({ operationId, method, path }: NamedOperation): string {
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
 * The description of an argument that has not the name of its parameter: agents are told what that is.
 * @returns undefined where there is nothing to tell
 */
export function described (description: string | undefined, name: string, argument: string): string | undefined {
  if (argument.startsWith(name)) return description
  const sent = `${JSON.stringify(truncate(name, 256))} in the request`
  return description === undefined || description.trim() === '' ? sent : `${description} (${sent})`
}

/** A parameter of a request, or a field of its body, that becomes an argument. */
interface ArgumentSource { readonly name: string, readonly location: string }

/**
 * Assigns unique names to the arguments of one tool. An argument has the name of its parameter, where model APIs take that; other
 * characters become `_`, and names that would be cut, become empty, or become the same as others' end with a hash. Where parameters in
 * different locations share a name, that of the later location (path, query, header, cookie) becomes `<name>_<location>`, and where that
 * is assigned already, gets a number.
 */
export class ArgumentNames {
  readonly #assigned = new Set<string>()
  /** The number that each numbered name had last. */
  readonly #counts = new Map<string, number>()
  /** The names of parameters that become each name. */
  readonly #sources = new Map<string, Set<string>>()

  has (name: string): boolean { return this.#assigned.has(name) }

  /** Announces names, so that their order decides nothing. */
  expect (names: Iterable<string>): void {
    for (const name of names) {
      const folded = toNameCharacters(name)
      const known = this.#sources.get(folded)
      if (known) known.add(name)
      else this.#sources.set(folded, new Set([name]))
    }
  }

  /** The name that an argument gets where it is free. */
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
