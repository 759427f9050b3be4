import type { Snapshot } from '../../../db/store.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { maskPatterns, createScrubber, secretsOf } from '../../base/secrets/index.ts'

/** One line of the log. */
export interface LogEntry {
  /** In ms since 1970. */
  readonly timestamp: number
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
  /** The level, reduced to four values. */
  readonly type: 'debug' | 'info' | 'warn' | 'error'
  /** `child`: the line was printed by a stdio server. */
  readonly source: 'main' | 'child'
  readonly message: string
  /** The name of the server that printed the line. */
  readonly processId?: string
}

/** Receives each new entry; `undefined` when the log is cleared. */
type LogListener = (entry: LogEntry | undefined) => void

/**
 * `entries`: number of entries, of which the oldest are dropped. `message`: length to which a message is cut, in
 * characters.
 */
interface LogBounds { readonly entries: number, readonly message: number }

const types = { trace: 'debug', debug: 'debug', info: 'info', warn: 'warn', error: 'error', fatal: 'error' } as const

/** Characters beyond the max length that are redacted before a message is cut, so that no part of a secret remains. */
const margin = 2_048
/** Escape sequences of terminals (ECMA-48). */
// eslint-disable-next-line no-control-regex
const escapeSequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g
const controls = /[\p{Cc}\u2028\u2029]+/gu

/** The newest lines of the log, in memory. Secrets are masked before an entry is kept. */
export class LogRing {
  readonly #bounds: LogBounds
  #redact: (text: string) => string
  readonly #listeners = new Set<LogListener>()
  /** The entries. When the max number is reached, a new entry replaces the oldest, at the index `#oldest`. */
  #entries: LogEntry[] = []
  #oldest = 0

  /** @param redact masks the secrets of a text */
  constructor (bounds: LogBounds, redact: (text: string) => string) {
    this.#bounds = bounds
    this.#redact = redact
  }

  /** Replaces the function that masks secrets, and masks the present entries with it. */
  setRedaction (redact: (text: string) => string): void {
    this.#redact = redact
    this.#entries = this.#entries.map((entry) => ({ ...entry, message: redact(entry.message) }))
  }

  /** Adds a line of the gateway. */
  addGatewayLine (level: LogEntry['level'], message: string): void {
    this.#addEntry(
      { timestamp: Date.now(), level, type: types[level], source: 'main', message: this.#toMessage(message) }
    )
  }

  /** Adds a line that a stdio server has printed. */
  addChildLine (server: string, line: string): void {
    this.#addEntry({
      timestamp: Date.now(),
      level: 'info',
      type: 'info',
      source: 'child',
      message: this.#toMessage(
        line
      ),
      processId: server
    })
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

  /** Calls a listener for each new entry. @returns a function that removes the listener */
  listen (listener: LogListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  #addEntry (entry: LogEntry): void {
    if (this.#entries.length < this.#bounds.entries) this.#entries.push(entry)
    else {
      this.#entries[this.#oldest] = entry
      this.#oldest = (this.#oldest + 1) % this.#bounds.entries
    }
    for (const listener of this.#listeners) listener(entry)
  }

  /** Makes one line of plain text without secrets. It is a copy, since a slice would keep the whole text in memory. */
  #toMessage (message: string): string {
    const { message: max } = this.#bounds
    const plain = this.#redact(message.slice(0, max + margin).replace(escapeSequences, '').replace(controls, ' '))
    return plain.length <= max ? plain : Buffer.from(plain.slice(0, max)).toString()
  }
}

/**
 * Makes a function that masks the secrets of all servers and of the system configuration, and texts that look like
 * credentials.
 * @param snapshot the current settings
 * @param own further secrets
 */
export function createMasker (snapshot: () => Snapshot, own: readonly string[]): (text: string) => string {
  const secretsOfConfig = memoized((config: object): readonly string[] =>
    secretsOf(config as Record<string, unknown>).filter((secret) => !/^(bearer|basic)$/i.test(secret)))
  let version = -1
  let sets: ReadonlyArray<readonly string[]> = []
  let scrub = (text: string): string => text
  const refresh = (): void => {
    const { version: now, servers, system } = snapshot()
    if (now === version) return
    version = now
    const found =
      [own, secretsOfConfig(system), ...[...servers.values()].map(({ config }) =>
        secretsOfConfig(config))].filter(({ length }) => length > 0)
    // Most changes of the settings change no secret.
    if (found.length === sets.length && found.every((set, at) => set === sets[at])) return
    sets = found
    scrub = createScrubber(found.flat())
  }
  return (text) => {
    refresh()
    // Patterns first, since they need the text around a credential.
    return scrub(maskPatterns(text))
  }
}
