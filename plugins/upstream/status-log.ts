import { describeMended } from '../../protocol/mending.ts'
import type { ProviderStatus } from '../../protocol/provider.ts'
import { truncate } from '../../protocol/text.ts'
import { BoundedMap, LogLineLimiter, OutageLog, baseLimits } from '../base/limits/index.ts'
import { upstreamLimits } from './limits.ts'
import type { TransportDeps } from './links/transport.ts'

type Log = (level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void

const statusWords = {
  disconnected: { failing: 'not connected', working: 'connected' },
  oauth_required: { failing: 'waiting for a login', working: 'connected' }
} as const

/** Logs changes of one upstream's status, and remarks about it: the same warning at most once per period. */
export class StatusLog {
  readonly #log: Log
  readonly #now: () => number
  /** The log of the last outage, and the status that the upstream had during it. */
  #current: { readonly recordStatus: keyof typeof statusWords, readonly outage: OutageLog } | undefined
  /** When each warning was last logged, in ms since the epoch. */
  readonly #logged = new BoundedMap<string, number>(baseLimits.outages.sentences)

  /** @param now the clock, in ms since the epoch */
  constructor (log: Log, now: () => number = Date.now) {
    this.#log = log
    this.#now = now
  }

  /**
   * Logs a change of the upstream's status; repeated failures are logged as one outage.
   * @param error the reason why the upstream is not connected; null if there is none, because it was stopped until
   *   needed
   * @param version the MCP revision of the connection, while it is connected
   */
  status (status: ProviderStatus, error: string | null, version?: string): void {
    if (status === 'connected') {
      const revision = version === undefined ? '' : `, speaks MCP ${version}`
      if (this.#current?.outage.recordSuccess() !== true) this.#log('info', `connected${revision}`)
    } else if (status === 'disconnected' && error === null) {
      this.#log('info', 'stopped until it is needed again')
    } else if (status === 'disconnected' || status === 'oauth_required') {
      this.#outageOf(status).recordFailure(error ?? 'the reason is unknown')
    }
  }

  /** Logs a remark, but skips a warning that was logged recently: otherwise a server could fill the log. */
  readonly remark: Log = (level, sentence, more) => {
    if (level === 'warn') {
      const now = this.#now()
      if (now - (this.#logged.get(sentence) ?? -Infinity) < baseLimits.outages.summary) return
      this.#logged.setNewest(sentence, now)
    }
    this.#log(level, sentence, more)
  }

  /** Stops the timers. */
  end (): void { this.#current?.outage.stop() }

  /**
   * Returns the outage log for a status. A change of the status begins a new one: a missing login and an unreachable
   * server are different outages.
   */
  #outageOf (status: keyof typeof statusWords): OutageLog {
    if (this.#current?.recordStatus === status) return this.#current.outage
    this.#current?.outage.stop()
    const made = new OutageLog((level, sentence) => { this.#log(level, sentence) }, statusWords[status], this.#now)
    this.#current = { recordStatus: status, outage: made }
    return made
  }
}

/**
 * Wraps a function that prints the output lines of one server's process, so that it prints at most
 * `upstreamLimits.stderrLines` per second.
 */
export function limitedPrinter (print: (line: string) => void): TransportDeps['onLine'] {
  const { lines, size } = upstreamLimits.stderrLines
  const limit = new LogLineLimiter(
    { burst: size, perSecond: size }, (omitted) => { print(`${omitted} more lines within a second`) }
  )
  // The text of a line is created only if it is printed.
  return ({ length, text }) => { if (limit.admit(Math.max(length, size / lines))) print(text()) }
}

/** Max sentences in one log of corrections or omissions. */
const maxSentences = 20
/** Max length of the description of a message in a sentence, in characters. */
const maxNameLength = 100

/** Logs corrections that were made in a server's messages other than lists: one sentence per kind of message. */
export class CorrectionLog {
  readonly #byMessage = new Map<string, string>()
  readonly #warn: (sentence: string) => void

  /** @param warn called with each sentence */
  constructor (warn: (sentence: string) => void) { this.#warn = warn }

  get sentences (): string[] { return [...this.#byMessage.values()] }

  /**
   * Logs the corrections in a message, unless a message of the same kind was logged before or `maxSentences` is
   * reached.
   * @param message the kind of message, such as `result of tools/call`; it may contain text from the server
   * @param places the paths of the corrected members
   */
  readonly add = (message: string, places: readonly string[]): void => {
    if (this.#byMessage.has(message) || this.#byMessage.size >= maxSentences) return
    const sentence = `${truncate(message, maxNameLength)}: ${describeMended(places)}`
    this.#byMessage.set(message, sentence)
    this.#warn(sentence)
  }
}

/**
 * Logs the items that are omitted in one reading of a server's lists: the first sentences, and the number of others.
 */
export class OmissionLog {
  readonly sentences: string[] = []
  readonly #warn: (sentence: string) => void
  #more = 0

  /** @param warn called with each sentence that is kept */
  constructor (warn: (sentence: string) => void) { this.#warn = warn }

  readonly add = (sentence: string): void => {
    if (this.sentences.length < maxSentences) this.#add(sentence)
    else this.#more++
  }

  /** Adds a sentence with the number of omissions that were not logged, if there are any. */
  end (): void {
    if (this.#more > 0) this.#add(`${this.#more} more of its items were omitted`)
  }

  #add (sentence: string): void {
    this.sentences.push(sentence)
    this.#warn(sentence)
  }
}
