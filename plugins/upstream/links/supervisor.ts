import { isDeepStrictEqual } from 'node:util'
import { plainClass } from '../../../protocol/capabilities.ts'
import { UpstreamError } from '../../../protocol/errors.ts'
import { ToolHeaders } from '../../../protocol/modern/param-headers.ts'
import type { ProviderStatus } from '../../../protocol/provider.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { limits, type Semaphore } from '../../base/limits/index.ts'
import { LoginRequired } from '../login/problems.ts'
import { redactor } from '../../base/secrets/index.ts'
import type { Catalogues } from '../catalogues/catalogues.ts'
import { backoff, healthyAfter } from './backoff.ts'
import { openLink, type ConnectDeps } from './connect.ts'
import type { Install } from './environment.ts'
import { EraMemory } from './era-memory.ts'
import { Heartbeat } from './heartbeat.ts'
import type { Link, LinkHandlers } from './link.ts'
import type { Pool } from './pool.ts'
import type { Slot } from './slot.ts'
import { isRemote, transportKinds, type TransportDeps, type TransportKind } from './transport.ts'
import { expandVariables } from './variables.ts'

/** A handler of links' messages that is also given the slot they came on. */
type OnSlot<Handler extends (...args: never[]) => unknown> = (slot: Slot, ...args: Parameters<Handler>) => ReturnType<Handler>

interface SupervisorDeps {
  clientInfo: { name: string, version: string }
  transport: TransportDeps
  /** Bounds how many processes are spawned and sockets dialled at once. */
  dialling: Semaphore
  /** In ms. */
  initTimeout: number
  /** Headers of clients are passed on to this server. */
  passes: boolean
  /** Whether a slot's lists count. */
  lists: (slot: Slot) => boolean
  question: OnSlot<LinkHandlers['question']>
  notification: OnSlot<LinkHandlers['notification']>
  answered: OnSlot<LinkHandlers['answered']>
  mended?: LinkHandlers['mended']
  warn: (sentence: string) => void
  /** The login that a slot's link uses; undefined: none. */
  authorization: ConnectDeps['authorization']
  statusChanged: () => void
}

interface Prepared {
  /** With its variables filled in. */
  readonly config: ServerConfig
  readonly install: Install | undefined
  /** Removes the secrets of the config from a text. */
  readonly redact: (text: string) => string
}

/** The shortest time between two tries to open one slot's link, in ms: callers cannot hurry a server that keeps failing. */
const trySpacing = 1_000

/**
 * Supervises the links of one server: opens them, brings each to the state that its slot remembers, checks the gateway's own link and
 * opens it again when it is lost. The state of that link is the server's status.
 */
export class ConnectionSupervisor {
  status: ProviderStatus = 'connecting'
  /** Why it is not connected, for those who manage it. */
  error: string | null = null
  /** The same, for its clients. */
  reason: string | undefined
  connectedAt: number | undefined
  /** How long opening the gateway's own link took last time, in ms. */
  openTime = Infinity
  /** The transport that last reached it. */
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
  readonly #eras = new EraMemory()
  readonly #tools = new ToolHeaders()
  /** It has been told that a connection takes long, since it was last connected. */
  #toldLate = false
  #lastPrepared: Prepared | undefined
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
    const { startOnDemand } = this.#config
    if (startOnDemand === true && !this.#remote && this.#catalogues.has(plainClass) && this.#pool.base.subscriptions.size === 0) {
      this.#first = false
      this.#become('disconnected', null)
      return
    }
    void this.ready(this.#pool.base).catch(() => {})
  }

  /** Opens the links of slots that have subscribers. */
  wake (): void {
    for (const slot of this.#pool.all) {
      if (slot !== this.#pool.base && slot.subscriptions.size > 0) void this.ready(slot).catch(() => {})
    }
  }

  /** How long a merged list waits for it, in ms: only while it has never answered, in this run or the last, and has just begun. */
  get firstAnswerBudget (): number {
    return this.#first && !this.#catalogues.known ? Math.max(this.#begun + limits.firstAnswerBudget - Date.now(), 0) : 0
  }

  /** A text without the secrets of the config as it was last expanded. */
  redact (text: string): string { return this.#lastPrepared?.redact(text) ?? text }

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

  /** A login is there, or is gone: slots whose link is gone or refused open it again, where somebody waits for them. */
  retry (slots: readonly Slot[]): void {
    for (const slot of slots) {
      slot.lastTry = 0
      const isWanted = slot === this.#pool.base || slot.subscriptions.size > 0 || !this.#catalogues.has(slot.key.capabilityClass)
      if (isWanted && !slot.ended && !this.#closed) void this.ready(slot).catch(() => {})
    }
  }

  /** A login is gone: what was open by it ends. */
  async hangUp (slots: readonly Slot[]): Promise<void> {
    await Promise.all(slots.map(async (slot) => { await slot.hangUp() }))
    this.retry(slots)
  }

  /** Ends supervision: no link is opened any more. */
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
      // A catalogue of one client's own connection was that connection's.
      const fresh = base || slot.catalogue !== undefined || (this.#deps.lists(slot) && !this.#catalogues.has(slot.key.capabilityClass))
      if (slot.level !== undefined) await link.setLevel(slot.level).catch(() => {})
      for (const client of slot.subscriptions.clients) link.noteUser(client)
      const budget = new LoopBudget()
      for (const uri of slot.subscriptions.uris) {
        if (budget.spent) await budget.yieldToEventLoop()
        link.subscribe(uri).catch(() => {})
      }
      if (fresh) await this.#catalogues.read(slot, base)
      slot.failures = 0
      if (base) this.openTime = Date.now() - slot.lastTry
      // A server that was stopped until needed runs again, whichever link started it.
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

  /** The config to connect with. Made once, unless what it is made from changes: its secrets may be thousands, and links many. */
  #prepared (): Prepared {
    const { environment, install: installNow } = this.#deps.transport
    const install = installNow?.()
    if (this.#lastPrepared && isDeepStrictEqual(this.#lastPrepared.install, install)) return this.#lastPrepared
    const { config, hide } = expandVariables(this.#config, environment)
    const withoutSecrets = redactor({ ...config, install })
    const redact = (text: string): string => withoutSecrets(hide(text))
    this.#lastPrepared = { config, install, redact }
    return this.#lastPrepared
  }

  async #connect (slot: Slot): Promise<Link> {
    const { transport, clientInfo, dialling, initTimeout, passes, warn, authorization } = this.#deps
    const { question, notification, answered, mended } = this.#deps
    const { config, redact } = this.#prepared()
    // The transport that last found it is tried first; the server may have moved to another since.
    const kinds = transportKinds(config).sort((a, b) => Number(b === this.kind) - Number(a === this.kind))
    const deps = {
      transport: { ...transport, redact },
      clientInfo,
      dialling,
      initTimeout,
      authorization,
      eras: this.#eras,
      tools: this.#tools,
      isBase: slot === this.#pool.base,
      warn: (sentence: string) => { warn(redact(sentence)) },
      late: (lastWords: string) => {
        if (this.#toldLate) return
        this.#toldLate = true
        const [waited, left] = [limits.connectionWait, initTimeout].map((time) => `${time / 1_000} s`)
        warn(redact(`no answer for ${waited}; it may take ${left} in all (INIT_TIMEOUT)${lastWords}`))
      }
    }
    const launched = await this.#pool.launch(slot)
    try {
      const { link, kind } = await openLink(slot, config, passes, kinds, deps, {
        question: async (...args) => await question(slot, ...args),
        notification: (...args) => { notification(slot, ...args) },
        answered: (...args) => { answered(slot, ...args) },
        mended,
        closed: (from, error) => { this.lost(slot, from, error) }
      })
      this.kind = kind
      return link
    } finally {
      launched()
    }
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

  /** Since when no link has been in use, in ms since the epoch; undefined: one is. */
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
    if (waits) return
    if (this.#remote && this.#config.enableKeepAlive === false) return
    this.#retry = setTimeout(() => { void this.ready(this.#pool.base).catch(() => {}) }, backoff(this.#failures))
    this.#retry.unref()
  }

  /** A link with subscribers is opened again, however often that fails. */
  #retryLater (slot: Slot): void {
    const isWanted = (): boolean => !slot.ended && !this.#closed && slot.subscriptions.size > 0
    if (isWanted()) setTimeout(() => { if (isWanted()) void this.ready(slot).catch(() => {}) }, backoff(++slot.failures)).unref()
  }

  async #check (timeout: number): Promise<void> {
    const { base } = this.#pool
    const { link } = base
    if (!link || link.busy) return
    const since = Date.now()
    try {
      await link.ping(timeout)
    } catch (error) {
      // An answer of any kind is a sign of life: not every server knows a ping.
      if (!(error instanceof UpstreamError) || (error.fault === 'refused' && (error.status ?? 500) < 500)) return
      // A server may be slow because it is at work, and a call that it answers shows by itself that it is there.
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
