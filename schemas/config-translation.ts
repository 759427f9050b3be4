import { quoteName } from './unknown-members.ts'

export type RawConfig = Record<string, unknown>

/**
 * A server's config while it is translated from the format of another program. Foreign members are replaced by the
 * gateway's own members one by one; foreign members that are left at the end are unknown.
 */
export class ConfigDraft {
  config: RawConfig
  readonly warnings: string[] = []
  /** Members that a warning already mentions. */
  readonly mentionedMembers = new Set<string>()
  isChanged = false

  constructor (raw: RawConfig) { this.config = { ...raw } }

  warn (sentence: string): void { this.warnings.push(sentence) }

  /** Removes a member. @returns its value; undefined if there is none */
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

  /** Renames a foreign member to one of the gateway's. If both exist with different values, it only adds a warning. */
  move (from: string, to: string): void {
    if (!this.has(from)) return
    if (!this.has(to)) this.put(to, this.take(from))
    else if (JSON.stringify(this.config[from]) === JSON.stringify(this.config[to])) this.take(from)
    else {
      this.mentionedMembers.add(from)
      this.warn(`${quoteName(from)} has no effect, since "${to}" is set too`)
    }
  }
}
