import { createHash } from 'node:crypto'

/** The longest name that every client takes. */
const longest = 64
const digest = (text: string, length: number): string => createHash('sha256').update(text).digest('hex').slice(0, length)

/** What may stand in a tool's name (MCP, "Tool Names"). */
const cleaned = (text: string): string => text.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/^_+|_+$/g, '')

/**
 * A tool's name for each operation: its operationId, or its method and path; what no name may hold becomes `_`. One that is too
 * long is cut, and one that is taken gets a suffix, both by a digest of method and path.
 */
export class ToolNames {
  readonly #taken = new Set<string>()

  assign (operationId: unknown, method: string, path: string): string {
    const id = typeof operationId === 'string' ? cleaned(operationId) : ''
    const spoken = id !== '' ? id : cleaned(`${method.toLowerCase()}${path.replace(/[{}]/g, '')}`)
    const suffix = `_${digest(`${method} ${path}`, 8)}`
    let name = spoken.length <= longest ? spoken : `${spoken.slice(0, longest - suffix.length)}${suffix}`
    if (this.#taken.has(name)) name = `${spoken.slice(0, longest - suffix.length)}${suffix}`
    this.#taken.add(name)
    return name
  }
}

/**
 * The arguments of one tool. A parameter's argument has its name; where two places have one name, the later place (path, query,
 * header, cookie) gets `<name>_<place>`; where that is taken, too, a number.
 */
export class ArgumentNames {
  readonly #taken = new Set<string>()

  has (name: string): boolean { return this.#taken.has(name) }

  assign (name: string, place: string): string {
    let free = this.#taken.has(name) ? `${name}_${place}` : name
    for (let count = 2; this.#taken.has(free); count++) free = `${name}_${place}_${count}`
    this.#taken.add(free)
    return free
  }
}
