import { UpstreamError } from '../../../protocol/errors.ts'
import { plainClass } from '../../../protocol/capabilities.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { limits } from '../../limits/index.ts'
import { redactor } from '../../secrets/redact.ts'
import { backoff, healthyAfter } from './backoff.ts'
import type { Catalogues } from '../catalogues/catalogues.ts'
import { openLink } from './connect.ts'
import type { Link, LinkHandlers } from './link.ts'
import type { Pool } from './pool.ts'
import { Heartbeat } from './heartbeat.ts'
import type { Semaphore } from '../../limits/semaphore.ts'
import type { Slot } from './slot.ts'
import { isRemote, transportKinds, type TransportDeps, type TransportKind } from './transport.ts'
import { expand } from './variables.ts'

export type Status = 'connecting' | 'connected' | 'disconnected' | 'oauth_required' | 'disabled'

export interface SupervisorDeps {
  clientInfo: { name: string, version: string }
  transport: TransportDeps
  spawning: Semaphore
  /** In ms. */
  initTimeout: number
  /** Headers of clients go on to this server. */
  passes: boolean
  /** Whether what a slot's link lists is worth knowing. */
  lists: (slot: Slot) => boolean
  /** What becomes of what an upstream sends unasked, by the slot that it came on. */
  question: (slot: Slot, ...args: Parameters<LinkHandlers['question']>) => ReturnType<LinkHandlers['question']>
  news: (slot: Slot, ...args: Parameters<LinkHandlers['news']>) => void
  answered: (slot: Slot, ...args: Parameters<LinkHandlers['answered']>) => void
  warn: (sentence: string) => void
  /** The status has changed. */
  moved: () => void
}

/**
 * Keeps one server's links: opens them, brings each to the state that its slot remembers, watches the gateway's own and opens it
 * again when it is lost. What that comes to is the server's status.
 */
export class ConnectionSupervisor {
  status: Status = 'connecting'
  /** Why it is not connected, for who runs it. */
  error: string | null = null
  /** The same, for its clients. */
  reason: string | undefined
  connectedAt: number | undefined
  /** How long opening its own link took last time, in ms. */
  openTime = Infinity
  /** How it was reached last. */
  kind: TransportKind | undefined
  /** When it began to connect, while it has never been connected. */
  #begun = Date.now()
  /** The first connection attempt is still under way. */
  #first = true
  readonly #config: ServerConfig
  readonly #remote: boolean
  readonly #pool: Pool
  readonly #catalogues: Catalogues
  readonly #deps: SupervisorDeps
  readonly #heartbeat = new Heartbeat()
  #hide = (text: string): string => text
  #failures = 0
  #retry: NodeJS.Timeout | undefined
  #closed = false

  constructor (config: ServerConfig, pool: Pool, catalogues: Catalogues, deps: SupervisorDeps) {
    this.#config = config
    this.#remote = isRemote(config)
    this.#pool = pool
    this.#catalogues = catalogues
    this.#deps = deps
  }

  /** Begins to connect, and keeps at it. Returns at once. */
  start (): void {
    this.#begun = Date.now()
    this.wake()
    if (
      this.#config.startOnDemand === true &&
      !this.#remote &&
      this.#catalogues.has(plainClass) &&
      this.#pool.base.subscriptions.size === 0
    ) {
      this.#first = false
      this.#become('disconnected', null)
      return
    }
    void this.ready(this.#pool.base).catch(() => {})
  }

  /** Opens the links on which somebody waits for news. */
  wake (): void {
    for (const slot of this.#pool.all) if (slot !== this.#pool.base && slot.subscriptions.size > 0) void this.ready(slot).catch(() => {})
  }

  /** How long a list is worth waiting for, in ms: it has never answered, neither now nor in the last run, and has just begun. */
  get promising (): number {
    return this.#first && !this.#catalogues.known ? Math.max(this.#begun + limits.firstAnswerBudget - Date.now(), 0) : 0
  }

  /** A text without what is secret in the config as it was last expanded. */
  hide (text: string): string { return this.#hide(text) }

  /** The slot's link, opened if need be. @throws UpstreamError */
  ready (slot: Slot): Promise<Link> {
    if (slot.link) return Promise.resolve(slot.link)
    slot.opening ??= this.#open(slot).finally(() => { slot.opening = undefined })
    return slot.opening
  }

  /** A link is gone. The gateway's own is remade in the background, the others at their next use. */
  lost (slot: Slot, link: Link, error: UpstreamError): void {
    if (slot.link !== link) return
    slot.link = undefined
    if (this.#closed) return
    if (slot === this.#pool.base) this.#disconnected(error)
    else this.#retryLater(slot)
  }

  /** Opens nothing any more. */
  close (): void {
    this.#closed = true
    clearTimeout(this.#retry)
    this.#heartbeat.stop()
  }

  /** Opens the slot's link and brings it to the state that the slot remembers. */
  async #open (slot: Slot): Promise<Link> {
    if (this.#closed) throw new UpstreamError('closed', 'the server was stopped')
    const base = slot === this.#pool.base
    if (base) clearTimeout(this.#retry)
    // Callers may press a server that keeps falling, but no faster than this.
    const spacing = slot.lastTry + 1_000 - Date.now()
    if (spacing > 0) await new Promise((resolve) => { setTimeout(resolve, spacing) })
    slot.lastTry = Date.now()
    if (base) this.#become('connecting', this.error)
    try {
      const link = await this.#connect(slot)
      slot.link = link
      // What one client's own connection listed was that connection's.
      const fresh = base || slot.catalogue !== undefined || (this.#deps.lists(slot) && !this.#catalogues.has(slot.key.capabilityClass))
      if (slot.level !== undefined) await link.setLevel(slot.level).catch(() => {})
      for (const uri of slot.subscriptions.keys()) link.request('resources/subscribe', JSON.stringify({ uri })).catch(() => {})
      if (fresh) await this.#catalogues.read(slot, base)
      slot.failures = 0
      if (base) this.openTime = Date.now() - slot.lastTry
      // A server that sleeps until it is needed is awake, whoever woke it.
      if (base || (this.status === 'disconnected' && this.error === null)) this.#connected()
      return link
    } catch (error) {
      const failure =
        error instanceof UpstreamError ? error : new UpstreamError('refused', error instanceof Error ? error.message : String(error))
      await slot.hangUp()
      if (base && !this.#closed) this.#disconnected(failure)
      if (!base) this.#retryLater(slot)
      throw failure
    } finally {
      if (base) this.#first = false
    }
  }

  async #connect (slot: Slot): Promise<Link> {
    const { transport, clientInfo, spawning, initTimeout, passes, question, news, answered, warn } = this.#deps
    const { config, hide: hideVariables } = expand(this.#config, transport.environment)
    const redact = redactor({ ...config, install: transport.install?.() })
    const hide = (text: string): string => redact(hideVariables(text))
    this.#hide = hide
    // What found it last is tried first; a server may have moved to another transport since.
    const kinds = transportKinds(config).sort((a, b) => Number(b === this.kind) - Number(a === this.kind))
    const { link, kind } = await openLink(
      slot,
      config,
      passes,
      kinds,
      { transport: { ...transport, redact: hide }, clientInfo, spawning, initTimeout },
      {
        question: async (...args) => await question(slot, ...args),
        news: (...args) => {
          news(slot, ...args)
        },
        answered: (link, call, response) => {
          answered(slot, link, call, response)
        },
        closed: (from, error) => {
          this.lost(slot, from, error)
        },
        warn: (sentence) => {
          warn(hide(sentence))
        }
      }
    )
    this.kind = kind
    return link
  }

  #connected (): void {
    this.connectedAt = Date.now()
    const { enableKeepAlive = true, keepAliveInterval = 60_000, startOnDemand, idleTimeoutMs = 300_000 } = this.#config
    this.#heartbeat.start({
      keepAlive: this.#remote && enableKeepAlive ? keepAliveInterval : undefined,
      check: () => {
        void this.#check(Math.min(keepAliveInterval, 10_000))
      },
      idle: !this.#remote && startOnDemand === true ? idleTimeoutMs : undefined,
      idleSince: () =>
        this.#pool.all.every((slot) => slot.idle) ? Math.max(...this.#pool.all.map((slot) => slot.link?.lastUsed ?? 0)) : undefined,
      stop: () => {
        this.#sleep()
      }
    })
    this.#become('connected', null)
  }

  #disconnected (error: UpstreamError): void {
    this.#heartbeat.stop()
    clearTimeout(this.#retry)
    const healthy = this.connectedAt !== undefined && Date.now() - this.connectedAt > healthyAfter
    this.#failures = healthy ? 1 : this.#failures + 1
    this.connectedAt = undefined
    this.reason = this.#hide(error.message)
    this.#become('disconnected', this.#hide(`${error.message}${error.detail}`))
    if (this.#remote && this.#config.enableKeepAlive === false) return
    this.#retry = setTimeout(() => { void this.ready(this.#pool.base).catch(() => {}) }, backoff(this.#failures))
    this.#retry.unref()
  }

  /** A link on which somebody waits for news is opened again, however often that fails. */
  #retryLater (slot: Slot): void {
    const isWanted = (): boolean => !slot.ended && !this.#closed && slot.subscriptions.size > 0
    if (isWanted()) setTimeout(() => { if (isWanted()) void this.ready(slot).catch(() => {}) }, backoff(++slot.failures)).unref()
  }

  async #check (timeout: number): Promise<void> {
    const { base } = this.#pool
    const { link } = base
    if (!link || link.calls.size > 0) return
    const since = Date.now()
    try {
      await link.request('ping', undefined, timeout)
    } catch (error) {
      // An answer of whatever kind is a sign of life: not every server knows a ping.
      if (!(error instanceof UpstreamError) || (error.fault === 'refused' && (error.status ?? 500) < 500)) return
      // A server may be slow because it is at work; and what it is asked by then says for itself whether it is there.
      if (error.fault !== 'expired' && (link.calls.size > 0 || link.lastUsed > since)) return
      if (base.link === link) this.lost(base, link, error)
      link.retire()
    }
  }

  /** Nobody has used it for long: it ends, and starts again when it is needed. */
  #sleep (): void {
    this.#heartbeat.stop()
    for (const slot of this.#pool.all) void slot.hangUp()
    this.connectedAt = undefined
    this.#become('disconnected', null)
  }

  #become (status: Status, error: string | null): void {
    if (this.status === status && this.error === error) return
    this.status = status
    this.error = error
    this.#deps.moved()
  }
}
