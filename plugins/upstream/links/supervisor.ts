import { messageOf } from '../../../db/errors.ts'
import { plainClass } from '../../../protocol/capabilities.ts'
import { UpstreamError } from '../../../protocol/errors.ts'
import { ToolHeaders } from '../../../protocol/modern/param-headers.ts'
import type { ProviderStatus } from '../../../protocol/provider.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { TransportType } from '../../../schemas/transports.ts'
import { LoginRequired } from '../login/problems.ts'
import type { Catalogues } from '../catalogues/catalogues.ts'
import { backoff, healthyAfter, Heartbeat } from './heartbeat.ts'
import { type ConnectDeps, type Connecting, EraMemory, openLink } from './connect.ts'
import type { Link, LinkHandlers } from './link.ts'
import type { Pool } from './pool.ts'
import type { Slot } from './slot.ts'
import { PreparedConfig } from './connection-config.ts'
import { isRemote, transportKinds } from './transport.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** A handler that is also given the slot of the message. */
type OnSlot<Handler extends (...args: never[]) => unknown> =
  (slot: Slot, ...args: Parameters<Handler>) => ReturnType<Handler>

interface SupervisorDeps {
  connecting: Connecting
  passes: boolean
  /** Whether a slot's lists are shown. */
  lists: (slot: Slot) => boolean
  inbound: {
    question: OnSlot<LinkHandlers['question']>
    notification: OnSlot<LinkHandlers['notification']>
    answered: OnSlot<LinkHandlers['answered']>
    mended: LinkHandlers['mended']
  }
  warn: (sentence: string) => void
  /** The login that a slot's link uses; undefined: none. */
  authorization: ConnectDeps['authorization']
  statusChanged: () => void
}

/**
 * The shortest time between two attempts to open one slot's link, in ms: callers cannot hurry a server that keeps
 * failing.
 */
const trySpacing = 1_000

/**
 * Supervises the links of one server: opens them, restores what their slots remember, and checks and reopens the
 * gateway's link, whose state is the server's status.
 */
export class ConnectionSupervisor {
  status: ProviderStatus = 'connecting'
  /** Why it is not connected, for its managers. */
  error: string | null = null
  /** The same for clients. */
  reason: string | undefined
  connectedAt: number | undefined
  /** How long it took to open the gateway's link, in ms. */
  openTime = Infinity
  /** The transport that last reached it. */
  kind: TransportType | undefined
  /** When it began to connect for the first time. */
  #begun = Date.now()
  /** The first connection attempt is still under way. */
  #first = true
  readonly #config: ServerConfig
  readonly #remote: boolean
  readonly #pool: Pool
  readonly #catalogues: Catalogues
  readonly #deps: SupervisorDeps
  readonly #heartbeat = new Heartbeat()
  readonly #eras = new EraMemory()
  readonly #tools = new ToolHeaders()
  /** A slow connection was logged since it was last connected. */
  #toldLate = false
  readonly #prepared: PreparedConfig
  #failures = 0
  #retry: NodeJS.Timeout | undefined
  #closed = false

  constructor (config: ServerConfig, pool: Pool, catalogues: Catalogues, deps: SupervisorDeps) {
    this.#config = config
    this.#remote = isRemote(config)
    this.#pool = pool
    this.#catalogues = catalogues
    this.#deps = deps
    const { environment, install } = deps.connecting.transport
    this.#prepared = new PreparedConfig(config, environment, install)
  }

  start (): void {
    this.#begun = Date.now()
    this.wake()
    const { startOnDemand } = this.#config
    if (startOnDemand === true && !this.#remote && this.#catalogues.has(plainClass) &&
        this.#pool.base.subscriptions.size === 0) {
      this.#first = false
      this.#become('disconnected', null)
      return
    }
    void this.ready(this.#pool.base).catch(() => {})
  }

  wake (): void {
    for (const slot of this.#pool.all) {
      if (slot !== this.#pool.base && slot.subscriptions.size > 0) void this.ready(slot).catch(() => {})
    }
  }

  /**
   * How long a merged list waits for it, in ms: only while it has just begun to connect, and has never answered, in
   * former runs either.
   */
  get firstAnswerBudget (): number {
    return this.#first &&
      !this.#catalogues.known
      ? Math.max(this.#begun + gatewayLimits.firstAnswerBudget - Date.now(), 0)
      : 0
  }

  /** A text without the secrets of the config. */
  redact (text: string): string { return this.#prepared.redact(text) }

  /** The slot's link, opened if need be. @throws UpstreamError */
  ready (slot: Slot): Promise<Link> {
    if (slot.link) return Promise.resolve(slot.link)
    slot.opening ??= this.#open(slot).finally(() => { slot.opening = undefined })
    return slot.opening
  }

  /** A link is gone. The gateway's is reopened in the background, the others at their next use. */
  lost (slot: Slot, link: Link, error: UpstreamError): void {
    if (slot.link !== link) return
    slot.link = undefined
    if (this.#closed) return
    if (slot === this.#pool.base) this.#disconnected(error)
    else this.#retryLater(slot)
  }

  /**
   * A login was added or removed: links that are gone or were refused are opened again, where somebody waits for them.
   */
  retry (slots: readonly Slot[]): void {
    for (const slot of slots) {
      slot.lastTry = 0
      const isWanted =
        slot === this.#pool.base || slot.subscriptions.size > 0 || !this.#catalogues.has(slot.key.capabilityClass)
      if (isWanted && !slot.ended && !this.#closed) void this.ready(slot).catch(() => {})
    }
  }

  /** A login was removed: its links end. */
  async hangUp (slots: readonly Slot[]): Promise<void> {
    await Promise.all(slots.map(async (slot) => { await slot.hangUp() }))
    this.retry(slots)
  }

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
    const spacing = slot.lastTry + trySpacing - Date.now()
    if (spacing > 0) await new Promise((resolve) => { setTimeout(resolve, spacing) })
    slot.lastTry = Date.now()
    if (base) this.#become('connecting', this.error)
    try {
      const link = await this.#connect(slot)
      slot.link = link
      // The catalogue of one client's link is read again.
      const fresh = base || slot.catalogue !== undefined ||
        (this.#deps.lists(slot) && !this.#catalogues.has(slot.key.capabilityClass))
      await slot.restore(link)
      if (fresh) await this.#catalogues.read(slot, base)
      slot.failures = 0
      if (base) this.openTime = Date.now() - slot.lastTry
      // A server that was stopped until needed runs again, whichever link started it.
      if (base || (this.status === 'disconnected' && this.error === null)) this.#connected()
      return link
    } catch (error) {
      const failure = error instanceof UpstreamError ? error : new UpstreamError('refused', messageOf(error))
      await slot.hangUp()
      if (base && !this.#closed) this.#disconnected(failure)
      if (!base) this.#retryLater(slot)
      throw failure
    } finally {
      if (base) this.#first = false
    }
  }

  async #connect (slot: Slot): Promise<Link> {
    const { connecting, passes, warn, authorization } = this.#deps
    const { question, notification, answered, mended } = this.#deps.inbound
    const { config, redact } = this.#prepared.current
    // The transport that last found the server is tried first; the server may have moved since.
    const kinds = transportKinds(config).sort((a, b) => Number(b === this.kind) - Number(a === this.kind))
    const deps = {
      connecting: { ...connecting, transport: { ...connecting.transport, redact } },
      authorization,
      eras: this.#eras,
      tools: this.#tools,
      isBase: slot === this.#pool.base,
      warn: (sentence: string) => { warn(redact(sentence)) },
      late: (lastWords: string) => {
        if (this.#toldLate) return
        this.#toldLate = true
        const [waited, left] = [gatewayLimits.connectionWait, connecting.initTimeout].map((time) => `${time / 1_000} s`)
        warn(redact(`no answer for ${waited}; it may take ${left} in all (INIT_TIMEOUT)${lastWords}`))
      }
    }
    const { link, kind } = await openLink(slot, config, passes, kinds, deps, {
      question: async (...args) => await question(slot, ...args),
      notification: (...args) => { notification(slot, ...args) },
      answered: (...args) => { answered(slot, ...args) },
      mended,
      closed: (from, error) => { this.lost(slot, from, error) }
    })
    this.kind = kind
    return link
  }

  #connected (): void {
    this.connectedAt = Date.now()
    this.#toldLate = false
    const { enableKeepAlive = true, keepAliveInterval = 60_000, startOnDemand, idleTimeoutMs = 300_000 } = this.#config
    this.#heartbeat.start({
      keepAlive: this.#remote && enableKeepAlive ? keepAliveInterval : undefined,
      check: () => { void this.#check(Math.min(keepAliveInterval, 10_000)) },
      idle: !this.#remote && startOnDemand === true ? idleTimeoutMs : undefined,
      idleSince: () => this.#idleSince(),
      stop: () => { this.#stopUntilNeeded() }
    })
    this.#become('connected', null)
  }

  #idleSince (): number | undefined {
    const { all } = this.#pool
    return all.every((slot) => slot.idle) ? Math.max(...all.map((slot) => slot.link?.lastUsed ?? 0)) : undefined
  }

  #disconnected (error: UpstreamError): void {
    this.#heartbeat.stop()
    clearTimeout(this.#retry)
    const healthy = this.connectedAt !== undefined && Date.now() - this.connectedAt > healthyAfter
    this.#failures = healthy ? 1 : this.#failures + 1
    this.connectedAt = undefined
    this.reason = this.redact(error.messageForClients)
    const waits = error instanceof LoginRequired
    this.#become(waits ? 'oauth_required' : 'disconnected', this.redact(`${error.message}${error.detail}`))
    // Nothing changes until somebody logs in.
    if (waits || (this.#remote && this.#config.enableKeepAlive === false)) return
    this.#retry = setTimeout(() => { void this.ready(this.#pool.base).catch(() => {}) }, backoff(this.#failures))
    this.#retry.unref()
  }

  /** A link with subscribers is opened again, however often that fails. */
  #retryLater (slot: Slot): void {
    const isWanted = (): boolean => !slot.ended && !this.#closed && slot.subscriptions.size > 0
    if (isWanted()) {
      setTimeout(() => { if (isWanted()) void this.ready(slot).catch(() => {}) }, backoff(++slot.failures)).unref()
    }
  }

  async #check (timeout: number): Promise<void> {
    const { base } = this.#pool
    const { link } = base
    if (!link || link.busy) return
    const since = Date.now()
    try {
      await link.ping(timeout)
    } catch (error) {
      // An answer of any kind is a sign of life: not every server knows ping.
      if (!(error instanceof UpstreamError) || (error.fault === 'refused' && (error.status ?? 500) < 500)) return
      // A busy server may be slow, and one that answers a call is there.
      if (error.fault !== 'expired' && (link.busy || link.lastUsed > since)) return
      if (base.link === link) this.lost(base, link, error)
      link.retire()
    }
  }

  /** It has been idle for long: its processes end, and start again when it is needed. */
  #stopUntilNeeded (): void {
    this.#heartbeat.stop()
    for (const slot of this.#pool.all) void slot.hangUp()
    this.connectedAt = undefined
    this.#become('disconnected', null)
  }

  #become (status: ProviderStatus, error: string | null): void {
    if (this.status === status && this.error === error) return
    this.status = status
    this.error = error
    this.#deps.statusChanged()
  }
}
