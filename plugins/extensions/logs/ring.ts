import type { Static } from '@sinclair/typebox'
import type { Snapshot } from '../../../db/store.ts'
import { pushTo } from '../../../protocol/grouping.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { LogRecord as LogEntrySchema } from '../../../schemas/logs.ts'
import { maskLikelyCredentials, createRedactor, redactionMargin, secretsOf } from '../../base/secrets/index.ts'

export type LogEntry = Readonly<Static<typeof LogEntrySchema>>

/** Receives each new entry; undefined: the log was cleared. */
type LogListener = (entry: LogEntry | undefined) => void

/** `entries`: max number of entries. `message`: length to which a message is truncated, in characters. */
interface LogBounds { readonly entries: number, readonly message: number }

/** The type of an entry, by its level. */
const types = { trace: 'debug', debug: 'debug', info: 'info', warn: 'warn', error: 'error', fatal: 'error' } as const

/** Matches terminal escape sequences (ECMA-48). */
// eslint-disable-next-line no-control-regex
const escapeSequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g
const controls = /[\p{Cc}\u2028\u2029]+/gu

/**
 * Keeps the newest lines of the log in memory, with secrets masked. When the ring is full, the oldest line of the
 * server with the most lines is dropped, so that a verbose server displaces its own lines. The gateway counts as a
 * server, but only with its lines beyond half of the max number of lines.
 */
export class LogRing {
  readonly #bounds: LogBounds
  #redact: (text: string) => string
  readonly #listeners = new Set<LogListener>()
  /** The entries by id, oldest first. */
  readonly #entries = new Map<number, LogEntry>()
  /** The ids of the entries of each server, and of the gateway (key undefined), oldest first. */
  readonly #ids = new Map<string | undefined, number[]>()
  #lastId = 0

  /** @param redact masks secrets in a text */
  constructor (bounds: LogBounds, redact: (text: string) => string) {
    this.#bounds = bounds
    this.#redact = redact
  }

  /** The newest entry; undefined if there is none. */
  get newest (): LogEntry | undefined { return this.#entries.get(this.#lastId) }

  /** Sets the function that masks secrets, and applies it to the present entries. */
  setRedaction (redact: (text: string) => string): void {
    this.#redact = redact
    for (const [id, entry] of this.#entries) this.#entries.set(id, { ...entry, message: redact(entry.message) })
  }

  /** Adds a line that the gateway logs. */
  addGatewayLine (level: LogEntry['level'], message: string): void {
    this.#addEntry({ level, source: 'main', message })
  }

  /** Adds a line that the process of a server printed. */
  addChildLine (server: string, message: string): void {
    this.#addEntry({ level: 'info', source: 'child', message, processId: server })
  }

  /** Returns the entries, oldest first. @param server undefined: all servers and the gateway */
  list (server?: string): LogEntry[] {
    return server === undefined
      ? [...this.#entries.values()]
      : (this.#ids.get(server) ?? []).flatMap((id) => this.#entries.get(id) ?? [])
  }

  clear (): void {
    this.#entries.clear()
    this.#ids.clear()
    for (const listener of this.#listeners) listener(undefined)
  }

  /**
   * Adds a listener, which is called for each new entry and when the log is cleared.
   * @returns a function that removes the listener
   */
  listen (listener: LogListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  #addEntry ({ level, message, ...line }: Pick<LogEntry, 'level' | 'source' | 'message' | 'processId'>): void {
    const id = ++this.#lastId
    const entry =
      { id, timestamp: Date.now(), level, type: types[level], message: this.#toMessage(message), ...line }
    this.#entries.set(id, entry)
    pushTo(this.#ids, line.processId, id)
    if (this.#entries.size > this.#bounds.entries) this.#dropOldest()
    for (const listener of this.#listeners) listener(entry)
  }

  #dropOldest (): void {
    let largest: string | undefined
    let max = 0
    for (const [server, { length }] of this.#ids) {
      const counted = server === undefined ? length - this.#bounds.entries / 2 : length
      if (counted <= max) continue
      [largest, max] = [server, counted]
    }
    const ids = this.#ids.get(largest)
    const oldest = ids?.shift()
    if (oldest !== undefined) this.#entries.delete(oldest)
    if (ids?.length === 0) this.#ids.delete(largest)
  }

  /**
   * Converts a message to one line of plain text without secrets. A truncated message is a copy, since a slice would
   * keep the whole text in memory.
   */
  #toMessage (message: string): string {
    const { message: max } = this.#bounds
    const start = message.slice(0, max + redactionMargin)
    const plain = this.#redact(start.replace(escapeSequences, '').replace(controls, ' '))
    return plain.length <= max ? plain : Buffer.from(plain.slice(0, max)).toString()
  }
}

/**
 * Returns a function that masks, in a text, the secrets of all servers and of the system configuration, and everything
 * that looks like a credential.
 * @param snapshot returns the current settings
 * @param own further secrets to mask
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
    // Most changes of the settings do not change secrets, and need no new redactor.
    if (found.length === sets.length && found.every((set, at) => set === sets[at])) return
    sets = found
    scrub = createRedactor(found.flat())
  }
  return (text) => {
    refresh()
    // Patterns are masked first, since they need the text around a credential.
    return scrub(maskLikelyCredentials(text))
  }
}
