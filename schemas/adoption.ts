import { quoteName } from './unknown-members.ts'

export type Json = Record<string, unknown>

/** One config while it is adopted: members are taken out one after the other, and what is left is not known. */
export class Adoption {
  config: Json
  readonly warnings: string[] = []
  /** Members that a warning has named already. */
  readonly named = new Set<string>()
  isChanged = false

  constructor (raw: Json) { this.config = { ...raw } }

  warn (sentence: string): void { this.warnings.push(sentence) }

  /** Takes a member out. */
  take (name: string): unknown {
    if (!Object.hasOwn(this.config, name)) return undefined
    const { [name]: value, ...rest } = this.config
    this.config = rest
    this.isChanged = true
    return value
  }

  put (name: string, value: unknown): void {
    this.config = { ...this.config, [name]: value }
    this.isChanged = true
  }

  has (name: string): boolean { return Object.hasOwn(this.config, name) }

  /** Puts a value in place of a foreign member, unless the gateway's own member is there. */
  move (from: string, to: string, change: (value: unknown) => unknown = (value) => value): void {
    if (!this.has(from)) return
    if (!this.has(to)) this.put(to, change(this.take(from)))
    else if (JSON.stringify(change(this.config[from])) === JSON.stringify(this.config[to])) this.take(from)
    else {
      this.named.add(from)
      this.warn(`${quoteName(from)} has no effect: "${to}" is there too`)
    }
  }
}
