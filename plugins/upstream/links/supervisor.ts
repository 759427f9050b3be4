import { messageOf } from '../../../db/errors.ts'
import { emptyCapabilityClass } from '../../../protocol/capabilities.ts'
import { UpstreamError } from '../../../protocol/errors.ts'
import { ToolParamHeaders } from '../../../protocol/modern/param-headers.ts'
import type { ProviderStatus } from '../../../protocol/provider.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { TransportType } from '../../../schemas/transports.ts'
import { UserActionRequired } from '../login/problems.ts'
import type { UpstreamCatalogues } from '../catalogues/catalogues.ts'
import { backoffDelay, delayResetTime, ConnectionTimers } from './heartbeat.ts'
import type { Circuits } from './circuits.ts'
import { type ConnectDeps, type ConnectionSettings, EraMemory, openLink } from './connect.ts'
import type { Link, LinkHandlers } from './link.ts'
import type { SlotPool } from './pool.ts'
import type { Slot } from './slot.ts'
import { PreparedConfig } from './connection-config.ts'
import type { ServerValues } from '../values/server-values.ts'
import { isRemote, transportTypesToTry } from './transport.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** The type of a handler with the slot of the message as an additional first parameter. */
type OnSlot<Handler extends (...args: never[]) => unknown> =
  (slot: Slot, ...args: Parameters<Handler>) => ReturnType<Handler>

interface SupervisorDeps {
  connecting: ConnectionSettings
  /** Whether headers of clients are passed on to the server. */
  passesHeaders: boolean
  /** Whether lists that are read on a slot's link are shown to clients. */
  canList: (slot: Slot) => boolean
  inbound: {
    question: OnSlot<LinkHandlers['question']>
    notification: OnSlot<LinkHandlers['notification']>
    answered: OnSlot<LinkHandlers['answered']>
    mended: LinkHandlers['mended']
  }
  warn: (sentence: string) => void
  /** Returns the source of the `Authorization` header for a slot's link; undefined if the link needs no login. */
  authorization: ConnectDeps['authorization']
  statusChanged: () => void
  circuits: Circuits
  values: ServerValues | undefined
}

/** Min time between two attempts to open one slot's link, in ms, however many requests wait for it. */
const minRetryInterval = 1_000

/**
 * Supervises the links of one server: opens them, restores the subscriptions and log levels that their slots keep, and
 * checks and reopens the gateway's own link, whose state is the server's status.
 */
export class ConnectionSupervisor {
  status: ProviderStatus = 'connecting'
  /** The reason why the server is not connected, as shown to its managers. */
  error: string | null = null
  /** The reason why the server is not connected, as shown to clients. */
  reason: string | undefined
  /** When the server was connected, in ms since the epoch; undefined while it is not. */
  connectedAt: number | undefined
  /** How long it took to open the gateway's link and to read the lists, in ms; Infinity before that. */
  openTime = Infinity
  /** The transport of the last successful connection. */
  transportType: TransportType | undefined
  /** The time at which the first attempt to connect began, in ms since the epoch. */
  #startedAt = Date.now()
  /** Whether the first attempt to connect has not ended yet. */
  #isFirstAttempt = true
  readonly #config: ServerConfig
  readonly #isRemote: boolean
  readonly #pool: SlotPool
  readonly #catalogues: UpstreamCatalogues
  readonly #deps: SupervisorDeps
  readonly #heartbeat = new ConnectionTimers()
  readonly #eras = new EraMemory()
  readonly #tools = new ToolParamHeaders()
  /** Whether a slow attempt to connect has been logged since the server was last connected. */
  #hasLoggedSlow = false
  readonly #prepared: PreparedConfig
  #failures = 0
  #closed = false

  constructor (config: ServerConfig, pool: SlotPool, catalogues: UpstreamCatalogues, deps: SupervisorDeps) {
    this.#config = config
    this.#isRemote = isRemote(config)
    this.#pool = pool
    this.#catalogues = catalogues
    this.#deps = deps
    const { environment, install } = deps.connecting.transport
    this.#prepared = new PreparedConfig(config, environment, install, deps.values)
  }

  /** Opens the gateway's link, unless the server is started on demand and its lists are known. */
  start (): void {
    this.#startedAt = Date.now()
    this.wake()
    const { startOnDemand } = this.#config
    if (startOnDemand === true && !this.#isRemote && this.#catalogues.has(emptyCapabilityClass) &&
        this.#pool.base.subscriptions.size === 0) {
      this.#isFirstAttempt = false
      this.#setStatus('disconnected', null)
      return
    }
    void this.ensureLink(this.#pool.base).catch(() => {})
  }

  /** Opens the links of client slots with subscriptions. */
  wake (): void {
    for (const slot of this.#pool.all) {
      if (slot !== this.#pool.base && slot.subscriptions.size > 0) void this.ensureLink(slot).catch(() => {})
    }
  }

  /** Max time that a merged list waits for this server, in ms; 0 if its lists are known or the first attempt ended. */
  get firstAnswerBudget (): number {
    const isNew = this.#isFirstAttempt && !this.#catalogues.isKnown
    return isNew ? Math.max(this.#startedAt + gatewayLimits.firstAnswerBudget - Date.now(), 0) : 0
  }

  /** Masks secrets of the config, and values of users, in a text. */
  redact (text: string): string { return this.#prepared.redact(text) }

  /** Returns the slot's link, opened if needed. @throws UpstreamError */
  ensureLink (slot: Slot): Promise<Link> {
    if (slot.link) return Promise.resolve(slot.link)
    slot.opening ??= this.#open(slot).finally(() => { slot.opening = undefined })
    return slot.opening
  }

  /** Handles a lost link: the gateway's link and links with subscriptions are reopened later, others on demand. */
  onLost (slot: Slot, link: Link, error: UpstreamError): void {
    if (slot.link !== link) return
    slot.link = undefined
    if (this.#closed) return
    if (slot.key.affinity === 'shared') this.#catalogues.outdated.add(slot.key.capabilityClass)
    if (slot === this.#pool.base) this.#disconnected(error)
    else this.#retryLater(slot)
  }

  /** Tries at once to open the links that are needed, because a login or values have changed. */
  retry (slots: readonly Slot[]): void {
    for (const slot of slots) {
      if (slot.opening === undefined) slot.lastTry = 0
      const isWanted =
        slot === this.#pool.base || slot.subscriptions.size > 0 || !this.#catalogues.has(slot.key.capabilityClass)
      if (isWanted && !slot.hasEnded && !this.#closed) void this.ensureLink(slot).catch(() => {})
    }
  }

  /** Closes the links of slots whose login has ended, and opens those that are needed. */
  async closeLinks (slots: readonly Slot[]): Promise<void> {
    await Promise.all(slots.map(async (slot) => { await slot.closeLinks() }))
    this.retry(slots)
  }

  close (): void {
    this.#closed = true
    clearTimeout(this.#pool.base.retryTimer)
    this.#heartbeat.stop()
  }

  /** Opens the slot's link, restores the slot's subscriptions and log level, and reads the lists if needed. */
  async #open (slot: Slot): Promise<Link> {
    if (this.#closed) throw new UpstreamError('closed', 'the server was stopped')
    const isBase = slot === this.#pool.base
    clearTimeout(slot.retryTimer)
    const spacing = slot.lastTry + minRetryInterval - Date.now()
    if (spacing > 0) await new Promise((resolve) => { setTimeout(resolve, spacing) })
    slot.lastTry = Date.now()
    if (isBase) this.#setStatus('connecting', this.error)
    try {
      const link = await this.#connect(slot)
      slot.link = link
      const reading = isBase ? 'now' : this.#catalogues.outdated.readingAfterOpen(slot, this.#deps.canList(slot))
      await slot.restore(link)
      if (reading === 'now') await this.#catalogues.read(slot, isBase)
      if (reading === 'later') this.#catalogues.refresh(slot, false)
      if (isBase) this.#catalogues.outdated.addOthers()
      slot.failures = 0
      this.#deps.circuits.recordProbe(slot.circuit)
      if (isBase) this.openTime = Date.now() - slot.lastTry
      // A server that was stopped until needed is running again, no matter which link started it.
      if (isBase || (this.status === 'disconnected' && this.error === null)) this.#connected()
      return link
    } catch (error) {
      const failure = error instanceof UpstreamError ? error : new UpstreamError('refused', messageOf(error))
      this.#deps.circuits.recordFailure(slot.circuit, failure)
      await slot.closeLinks()
      if (isBase && !this.#closed) this.#disconnected(failure)
      if (!isBase) this.#retryLater(slot)
      throw failure
    } finally {
      if (isBase) this.#isFirstAttempt = false
    }
  }

  async #connect (slot: Slot): Promise<Link> {
    const { connecting, passesHeaders, warn, authorization, inbound } = this.#deps
    const { config, redact } = await this.#prepared.forUser(slot.user)
    const kinds = transportTypesToTry(config, this.transportType)
    const deps = {
      connecting: { ...connecting, transport: { ...connecting.transport, redact } },
      authorization,
      eras: this.#eras,
      tools: this.#tools,
      isBase: slot === this.#pool.base,
      warn: (sentence: string) => { warn(redact(sentence)) },
      onSlow: (lastLines: string) => {
        if (this.#hasLoggedSlow) return
        this.#hasLoggedSlow = true
        const [waited, left] = [gatewayLimits.connectionWait, connecting.initTimeout].map((time) => `${time / 1_000} s`)
        warn(redact(`no answer for ${waited}; it may take ${left} in all (INIT_TIMEOUT)${lastLines}`))
      }
    }
    const { link, kind } = await openLink(slot, config, passesHeaders, kinds, deps, {
      question: async (...args) => await inbound.question(slot, ...args),
      notification: (...args) => { inbound.notification(slot, ...args) },
      answered: (...args) => { inbound.answered(slot, ...args) },
      mended: inbound.mended,
      closed: (from, error) => { this.onLost(slot, from, error) }
    })
    this.transportType = kind
    return link
  }

  #connected (): void {
    this.connectedAt = Date.now()
    this.#hasLoggedSlow = false
    const { enableKeepAlive = true, keepAliveInterval = 60_000, startOnDemand, idleTimeoutMs = 300_000 } = this.#config
    this.#heartbeat.start({
      keepAlive: this.#isRemote && enableKeepAlive ? keepAliveInterval : undefined,
      check: () => { void this.#check(Math.min(keepAliveInterval, 10_000)) },
      idle: !this.#isRemote && startOnDemand === true ? idleTimeoutMs : undefined,
      idleSince: () => this.#idleSince(),
      stop: () => { this.#stopUntilNeeded() }
    })
    this.#setStatus('connected', null)
  }

  #idleSince (): number | undefined {
    const { all } = this.#pool
    return all.every((slot) => slot.isIdle) ? Math.max(...all.map((slot) => slot.link?.lastUsed ?? 0)) : undefined
  }

  #disconnected (error: UpstreamError): void {
    this.#heartbeat.stop()
    const { base } = this.#pool
    clearTimeout(base.retryTimer)
    const wasStable = this.connectedAt !== undefined && Date.now() - this.connectedAt > delayResetTime
    this.#failures = wasStable ? 1 : this.#failures + 1
    this.connectedAt = undefined
    this.reason = this.redact(error.messageForClients)
    const needsUser = error instanceof UserActionRequired
    const status = needsUser && error.isLogin ? 'oauth_required' : 'disconnected'
    this.#setStatus(status, this.redact(`${error.message}${error.detail}`))
    // A retry would fail until the user acts. A remote server without keep-alive is reconnected on demand only.
    if (needsUser || (this.#isRemote && this.#config.enableKeepAlive === false)) return
    base.retryTimer =
      setTimeout(() => { void this.ensureLink(base).catch(() => {}) }, backoffDelay(this.#failures)).unref()
  }

  /** Schedules an attempt to reopen a link with subscriptions. Attempts are repeated without limit. */
  #retryLater (slot: Slot): void {
    const isWanted = (): boolean => !slot.hasEnded && !this.#closed && slot.subscriptions.size > 0
    const open = (): void => { if (isWanted()) void this.ensureLink(slot).catch(() => {}) }
    clearTimeout(slot.retryTimer)
    if (isWanted()) slot.retryTimer = setTimeout(open, backoffDelay(++slot.failures)).unref()
  }

  async #check (timeout: number): Promise<void> {
    const { base } = this.#pool
    const { link } = base
    if (!link || link.busy) return
    const since = Date.now()
    try {
      await link.ping(timeout)
    } catch (error) {
      // An error response shows that the server works, too: not every server supports ping.
      if (!(error instanceof UpstreamError) || (error.fault === 'refused' && (error.status ?? 500) < 500)) return
      // A server that is busy with a call may answer the ping slowly, and one that has answered a call works.
      if (error.fault !== 'expired' && (link.busy || link.lastUsed > since)) return
      if (base.link === link) this.onLost(base, link, error)
      link.retire()
    }
  }

  /** Stops a server that has been idle for long: its processes end, and start again when needed. */
  #stopUntilNeeded (): void {
    this.#heartbeat.stop()
    for (const slot of this.#pool.all) void slot.closeLinks()
    this.connectedAt = undefined
    this.#setStatus('disconnected', null)
  }

  #setStatus (status: ProviderStatus, error: string | null): void {
    if (this.status === status && this.error === error) return
    this.status = status
    this.error = error
    this.#deps.statusChanged()
  }
}
