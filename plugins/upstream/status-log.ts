import type { ProviderStatus } from '../../protocol/provider.ts'
import { BoundedMap, limits, Outage } from '../base/limits/index.ts'

type Log = (level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void

const words = {
  disconnected: { ill: 'not connected', well: 'connected' },
  oauth_required: { ill: 'waiting for a login', well: 'connected' }
} as const

/** What the log tells of one upstream: each change of its status that says something, and each remark once in a while. */
export class StatusLog {
  readonly #log: Log
  readonly #now: () => number
  #outage: { readonly status: keyof typeof words, readonly of: Outage } | undefined
  /** When each remark was told last, in ms since the epoch. */
  readonly #told = new BoundedMap<string, number>(limits.outages.sentences)

  /** @param now in ms since the epoch */
  constructor (log: Log, now: () => number = Date.now) {
    this.#log = log
    this.#now = now
  }

  /**
   * Its status has changed.
   * @param error why it is not connected; null: it stopped until it is needed
   * @param version the MCP revision that it is spoken to in, while it is connected
   */
  status (status: ProviderStatus, error: string | null, version?: string): void {
    if (status === 'connected') {
      const spoken = version === undefined ? '' : `, speaks MCP ${version}`
      if (this.#outage?.of.over() !== true) this.#log('info', `connected${spoken}`)
    } else if (status === 'disconnected' && error === null) {
      this.#log('info', 'stopped until it is needed')
    } else if (status === 'disconnected' || status === 'oauth_required') {
      this.#outageOf(status).failed(error ?? 'no reason is known')
    }
  }

  /** A remark, unless it was told lately: a server lists its items as often as it likes, and could fill the log with them otherwise. */
  readonly remark: Log = (level, sentence, more) => {
    if (level === 'warn') {
      const now = this.#now()
      if (now - (this.#told.get(sentence) ?? -Infinity) < limits.outages.summary) return
      this.#told.setNewest(sentence, now)
    }
    this.#log(level, sentence, more)
  }

  end (): void { this.#outage?.of.end() }

  /** A login that is wanted is another failure than a server that cannot be reached. */
  #outageOf (status: keyof typeof words): Outage {
    if (this.#outage?.status === status) return this.#outage.of
    this.#outage?.of.end()
    const made = new Outage((level, sentence) => { this.#log(level, sentence) }, words[status], this.#now)
    this.#outage = { status, of: made }
    return made
  }
}
