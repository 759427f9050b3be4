import type { Snapshot } from '../../../db/store.ts'
import { maskPatterns, scrubber, secretsOf } from '../../base/secrets/index.ts'

/** One line of the log. */
export interface LogEntry {
  /** In ms since 1970. */
  readonly timestamp: number
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
  /** The level in four words. */
  readonly type: 'debug' | 'info' | 'warn' | 'error'
  /** `child`: a server that is a command has printed it. */
  readonly source: 'main' | 'child'
  readonly message: string
  /** The server's name, where a child speaks. */
  readonly processId?: string
}

/** Receives each new entry, and `undefined` when the log is cleared. */
type LogListener = (entry: LogEntry | undefined) => void

/** `entries`: max entries; beyond: the oldest are dropped. `message`: max length of one, in characters; beyond: it is cut. */
interface LogBounds { readonly entries: number, readonly message: number }

const types = { trace: 'debug', debug: 'debug', info: 'info', warn: 'warn', error: 'error', fatal: 'error' } as const

/** A part of a longest secret that may stand at the end of a message that is cut, in characters. */
const margin = 2_048
/** Escape sequences of terminals (ECMA-48): colours, movements, titles. */
// eslint-disable-next-line no-control-regex
const terminal = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g

/** The newest lines of the log, in memory. What is secret is masked before an entry is kept. */
export class LogRing {
  readonly #bounds: LogBounds
  #redact: (text: string) => string
  readonly #listeners = new Set<LogListener>()
  /** Used as a ring once it is full. */
  #entries: LogEntry[] = []
  #oldest = 0

  /** @param redact masks the secrets of a text */
  constructor (bounds: LogBounds, redact: (text: string) => string) {
    this.#bounds = bounds
    this.#redact = redact
  }

  /** Replaces the function that masks secrets, once more of them are known; also in the entries that there are. */
  redactBy (redact: (text: string) => string): void {
    this.#redact = redact
    this.#entries = this.#entries.map((entry) => ({ ...entry, message: redact(entry.message) }))
  }

  /** Adds a line of the gateway. */
  add (level: LogEntry['level'], message: string): void {
    this.#push({ timestamp: Date.now(), level, type: types[level], source: 'main', message: this.#shown(message) })
  }

  /** Adds a line that a server's child has printed. */
  child (server: string, line: string): void {
    this.#push({ timestamp: Date.now(), level: 'info', type: 'info', source: 'child', message: this.#shown(line), processId: server })
  }

  /** All entries, the oldest first. */
  list (): LogEntry[] {
    return [...this.#entries.slice(this.#oldest), ...this.#entries.slice(0, this.#oldest)]
  }

  clear (): void {
    this.#entries = []
    this.#oldest = 0
    for (const listener of this.#listeners) listener(undefined)
  }

  /** @returns a function that stops it */
  listen (listener: LogListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  #push (entry: LogEntry): void {
    if (this.#entries.length < this.#bounds.entries) this.#entries.push(entry)
    else {
      this.#entries[this.#oldest] = entry
      this.#oldest = (this.#oldest + 1) % this.#bounds.entries
    }
    for (const listener of this.#listeners) listener(entry)
  }

  /** One line of plain text without secrets. It is a copy, since a part of a text keeps all of it in memory. */
  #shown (message: string): string {
    const { message: max } = this.#bounds
    const plain = this.#redact(message.slice(0, max + margin).replace(terminal, '').replace(controls, ' '))
    return plain.length <= max ? plain : Buffer.from(plain.slice(0, max)).toString()
  }
}

/**
 * A function that masks in a text the secrets of all servers and of the system configuration, and what looks like a credential.
 * @param snapshot the current settings
 * @param own further secrets
 */
export function maskerOf (snapshot: () => Snapshot, own: readonly string[]): (text: string) => string {
  const known = new WeakMap<object, readonly string[]>()
  const of = (config: object): readonly string[] => {
    let secrets = known.get(config)
    if (!secrets) {
      secrets = secretsOf(config as Record<string, unknown>).filter((secret) => !/^(bearer|basic)$/i.test(secret))
      known.set(config, secrets)
    }
    return secrets
  }
  let version = -1
  let sets: ReadonlyArray<readonly string[]> = []
  let scrub = (text: string): string => text
  const refresh = (): void => {
    const { version: now, servers, system } = snapshot()
    if (now === version) return
    version = now
    const found = [own, of(system), ...[...servers.values()].map(({ config }) => of(config))].filter(({ length }) => length > 0)
    // Most changes are of something else, such as when a key was used.
    if (found.length === sets.length && found.every((set, at) => set === sets[at])) return
    sets = found
    scrub = scrubber(found.flat())
  }
  return (text) => {
    refresh()
    // Patterns first: what they find by its neighbours may be a secret's part itself.
    return scrub(maskPatterns(text))
  }
}
