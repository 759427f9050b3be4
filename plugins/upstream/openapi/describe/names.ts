import { createHash } from 'node:crypto'

/** Max length of a tool's name that every client accepts. */
const maxNameLength = 64

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** A text with only the characters that a tool's name may have (MCP, "Tool Names"). */
function toNameCharacters (text: string): string {
  const name = text.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/^_+/, '')
  // Not by `/_+$/`, which looks at each run of underscores once for each of them.
  let end = name.length
  while (name[end - 1] === '_') end--
  return name.slice(0, end)
}

/**
 * Assigns a unique tool name to each operation: its operationId, or else its method and path. Characters that no name may have become
 * `_`. A name that is too long is cut, and both a cut name and a duplicate one end with a hash of method and path.
 */
export class ToolNames {
  readonly #assigned = new Set<string>()

  assign (operationId: unknown, method: string, path: string): string {
    const id = typeof operationId === 'string' ? toNameCharacters(operationId) : ''
    const base = id !== '' ? id : toNameCharacters(`${method.toLowerCase()}${path.replace(/[{}]/g, '')}`)
    const suffix = `_${shortHash(`${method} ${path}`)}`
    const isUnique = base.length <= maxNameLength && !this.#assigned.has(base)
    const name = isUnique ? base : `${base.slice(0, maxNameLength - suffix.length)}${suffix}`
    this.#assigned.add(name)
    return name
  }
}

/**
 * Assigns unique names to the arguments of one tool. An argument has the name of its parameter. Where parameters in different
 * locations share a name, that of the later location (path, query, header, cookie) becomes `<name>_<location>`, and where that is
 * assigned already, gets a number.
 */
export class ArgumentNames {
  readonly #assigned = new Set<string>()
  /** The number that each numbered name had last. */
  readonly #counts = new Map<string, number>()

  has (name: string): boolean { return this.#assigned.has(name) }

  assign (name: string, location: string): string {
    const named = `${name}_${location}`
    let unique = this.#assigned.has(name) ? named : name
    let count = this.#counts.get(named) ?? 1
    while (this.#assigned.has(unique)) unique = `${named}_${++count}`
    if (count > 1) this.#counts.set(named, count)
    this.#assigned.add(unique)
    return unique
  }
}
