import { code, RpcError, UpstreamError } from '../../protocol/errors.ts'
import type { Asker, Exchange, Question } from '../../protocol/exchange.ts'
import { plainClass } from '../../protocol/legacy/capabilities.ts'
import { isLevel } from '../../protocol/listener.ts'
import type { Response } from '../../protocol/message.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { limits } from '../limits/index.ts'
import { takeNews, takeQuestion, type ArrivalDeps } from './arrivals.ts'
import { backoff, healthyAfter } from './backoff.ts'
import type { Catalogue } from './catalogue.ts'
import { Catalogues } from './catalogues.ts'
import { openLink } from './connect.ts'
import type { Link } from './link.ts'
import { withheldNames } from './environment.ts'
import { sha256 } from '../secrets/hash.ts'
import { redactor } from '../secrets/redact.ts'
import { baseKey, linkKey, listingKey, type LinkKey } from './link-key.ts'
import { digestOf, passedOn, passthroughOf, type Passed } from './passthrough.ts'
import { Pool } from './pool.ts'
import { Pulse } from './pulse.ts'
import type { Semaphore } from './semaphore.ts'
import type { Slot, Subscriber } from './slot.ts'
import { isRemote, transportKinds, type TransportDeps, type TransportKind } from './transport.ts'
import { expand } from './variables.ts'

export type Status = 'connecting' | 'connected' | 'disconnected' | 'oauth_required' | 'disabled'

export interface UpstreamDeps {
  clientInfo: { name: string, version: string }
  transport: TransportDeps
  spawning: Semaphore
  initTimeout: number
  requestTimeout: number
  log: (level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
  /** What it lists has changed. */
  listed: () => void
  /** Its status has changed. */
  moved: () => void
  /** A catalogue is worth keeping: its text. */
  keep: (text: Iterable<string>) => void
  /** Told before a question goes to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, asker: Asker) => Promise<void>
  /** A log message (or news of a kind that we do not know) for everybody who sees this server. */
  broadcast: (method: string, paramsText: string) => void
}

/** A server that is alive: its links, its status, its catalogues. */
export class Upstream {
  readonly name: string
  readonly config: ServerConfig
  status: Status = 'connecting'
  /** Why it is not connected, for who runs it. */
  error: string | null = null
  /** The same, for its clients. */
  reason: string | undefined
  connectedAt: number | undefined
  readonly remote: boolean
  /** What of its config has no effect, and why, in sentences for who runs it. */
  readonly warnings: readonly string[]
  /** When it began to connect, while it has never been connected. */
  #begun = Date.now()
  /** The first connection attempt is still under way. */
  #first = true
  readonly #deps: UpstreamDeps
  readonly #pool: Pool
  readonly #pulse = new Pulse()
  readonly #catalogues: Catalogues
  readonly #arrivals: ArrivalDeps
  /** When it was last asked what it lists to a class of clients. */
  readonly #tried = new Map<string, number>()
  #contested = false
  #kind: TransportKind | undefined
  /** Names of its clients' headers that go on to it; undefined: none do. */
  readonly #passes: readonly string[] | undefined
  #hide = (text: string): string => text
  #failures = 0
  #retry: NodeJS.Timeout | undefined
  #closed = false

  constructor (name: string, config: ServerConfig, deps: UpstreamDeps) {
    this.name = name
    this.config = config
    this.remote = isRemote(config)
    this.#deps = deps
    // With links for sessions or users only, the gateway's own is nobody's: its key is not one that a client can have.
    this.#pool = new Pool(name, config.isolation === 'session' || config.isolation === 'user' ? { ...baseKey, key: 'gateway' } : baseKey)
    const passthrough = passthroughOf(config, this.remote)
    this.#passes = passthrough.names.length === 0 ? undefined : passthrough.names
    this.warnings = [
      ...expand(config, deps.transport.environment).warnings,
      ...withheldNames(config).map((name) => `${name} in env is not given to it: an admin has to store this server for that`),
      ...passthrough.warnings
    ]
    const { type, command, args, url, openapi } = config
    this.#catalogues = new Catalogues({ target: sha256(JSON.stringify([type, command, args, url, openapi?.url])), listed: deps.listed, keep: deps.keep, warn: (sentence) => { deps.log('warn', sentence) } })
    this.#arrivals = {
      name,
      refresh: (slot) => {
        const from = this.#lists(slot) ? slot : this.#pool.base
        this.#catalogues.refresh(from, from === this.#pool.base)
      },
      contested: () => { this.#contest() },
      onQuestion: deps.onQuestion,
      broadcast: deps.broadcast,
      dropped: (method) => { deps.log('debug', `${method} could not be attributed to one client and was dropped`) }
    }
  }

  /** What was known of it when the program last ended. */
  restore (text: string | undefined): void {
    this.#catalogues.restore(text)
  }

  /** Begins to connect, and keeps at it. Returns at once. */
  connect (): void {
    this.#begun = Date.now()
    for (const sentence of this.warnings) this.#deps.log('warn', sentence)
    if (!this.#catalogues.known) this.#catalogues.keep()
    if (this.config.startOnDemand === true && !this.remote && this.#catalogues.has(plainClass)) { this.#first = false; this.#become('disconnected', null); return }
    void this.#ready(this.#pool.base).catch(() => {})
  }

  /** How long a list is worth waiting for, in ms: it has never answered, neither now nor in the last run, and has just begun. */
  get promising (): number {
    return this.#first && !this.#catalogues.known ? Math.max(this.#begun + limits.firstAnswer - Date.now(), 0) : 0
  }

  /** What it lists to this client, as far as is known: of the client's own link, of its class, or of clients that declare nothing. */
  catalogue (asker: Asker): Catalogue | undefined {
    const key = this.#keyOf(asker)
    return this.#catalogues.of(this.#pool.find(key), key.capabilityClass)
  }

  /** How many connections it has. */
  get links (): number { return this.#pool.all.filter((slot) => slot.link !== undefined).length }

  /** What it lists to a client that declares nothing, as far as is known. */
  get listed (): Catalogue | undefined { return this.#catalogues.of(undefined, plainClass) }

  /** The id of the client's own catalogue, if it has one that differs from its class's. */
  ownCatalogue (asker: Asker): number | undefined {
    return this.#pool.find(this.#keyOf(asker))?.catalogue?.id
  }

  knows (asker: Asker): boolean {
    return this.#catalogues.has(this.#keyOf(asker).capabilityClass)
  }

  get hasOwnCatalogues (): boolean { return this.#pool.all.some((slot) => slot.catalogue !== undefined) }

  /** How long to wait for what it lists to clients like this one, in ms: not again, for a while, once that has taken too long. */
  patienceFor (asker: Asker): number {
    const tried = this.#tried.get(this.#keyOf(asker).capabilityClass) ?? -Infinity
    const since = Date.now() - tried
    return since > limits.learnAgain ? limits.newClass : limits.newClass - since
  }

  /** Finds out what it lists to clients like this one. Rejects when it cannot be reached. */
  async learn (asker: Asker): Promise<void> {
    const { capabilityClass } = this.#keyOf(asker)
    if (Date.now() - (this.#tried.get(capabilityClass) ?? -Infinity) > limits.learnAgain) this.#tried.set(capabilityClass, Date.now())
    if (this.#tried.size > limits.classesPerServer) this.#tried.clear()
    const slot = this.#pool.take(this.#passes ? listingKey(this.#pool.base.key, capabilityClass) : this.#keyOf(asker), asker)
    await this.#ready(slot)
    if (!this.#catalogues.has(slot.key.capabilityClass)) await this.#catalogues.read(slot, slot === this.#pool.base)
  }

  /**
   * Sends one request of a client. A session that expired is remade, and the request repeated if it cannot have run.
   * @param params its params, given the progress token to carry
   * @returns the answer, which may be an error
   * @throws RpcError -32001 when no answer can be had, in words; -32602 for a header that cannot go on
   */
  async call (exchange: Exchange, params: (token: number) => string): Promise<Response> {
    const passed = this.#passes && passedOn(this.name, this.#passes, exchange.headers)
    const slot = this.#slotFor(exchange.asker, passed)
    const { options } = this.config
    const deadlines = {
      timeout: options?.timeout ?? this.#deps.requestTimeout,
      resetTimeoutOnProgress: options?.resetTimeoutOnProgress ?? true,
      maxTotalTimeout: options?.maxTotalTimeout
    }
    for (let again = true; ; again = false) {
      const link = slot.link ?? await this.#patiently(slot, exchange)
      try {
        return await link.call(exchange, params, deadlines, this.#passes && (passed ?? {}))
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        if (!error.didNotRun || !again || exchange.cancelled !== undefined) throw this.#explain(error)
        if (slot.link === link) this.#lost(slot, link, error)
        link.retire()
      }
    }
  }

  notify (asker: Asker, method: string, paramsText: string): void {
    if (!this.#passes) { this.#pool.find(this.#keyOf(asker))?.link?.notify(method, paramsText); return }
    for (const slot of this.#pool.all) if (slot.carriesFor(asker.id)) slot.link?.notify(method, paramsText)
  }

  /** The client wants log messages of this level and above. */
  async setLevel (asker: Asker, level: unknown): Promise<void> {
    if (!isLevel(level)) return
    const slot = this.#slotFor(asker, this.#passedBy(asker, 'logging/setLevel'))
    const changed = slot.wants(asker.id, level)
    if (changed !== undefined && slot.link?.capabilities.logging !== undefined) await slot.link.request('logging/setLevel', JSON.stringify({ level: changed }))
  }

  /** The first subscriber of a URI subscribes upstream, the last one unsubscribes. The answer's error is relayed. */
  async subscribe (asker: Asker, uri: string, uriText: string, subscriber: Subscriber): Promise<void> {
    const slot = this.#slotFor(asker, this.#passedBy(asker, 'resources/subscribe'))
    const link = slot.link ?? await this.#patiently(slot)
    if (slot.countOf(subscriber.id) >= limits.subscriptionsPerSession) throw new RpcError(code.badRequest, `This session has ${limits.subscriptionsPerSession} subscriptions with server ${JSON.stringify(this.name)}, as many as there may be`)
    const subscribers = slot.subscriptions.get(uri)
    if (subscribers) { subscribers.set(subscriber.id, subscriber); return }
    slot.subscriptions.set(uri, new Map([[subscriber.id, subscriber]]))
    try {
      await link.request('resources/subscribe', `{"uri":${uriText}}`)
    } catch (error) {
      slot.subscriptions.delete(uri)
      throw error instanceof UpstreamError ? this.#explain(error) : error
    }
  }

  async unsubscribe (asker: Asker, uri: string): Promise<void> {
    // It may have subscribed with other headers than it sends now.
    const slot = this.#passes ? this.#pool.all.find(({ subscriptions }) => subscriptions.get(uri)?.has(asker.id)) : this.#pool.find(this.#keyOf(asker))
    const subscribers = slot?.subscriptions.get(uri)
    if (!slot || !subscribers?.delete(asker.id) || subscribers.size > 0) return
    slot.subscriptions.delete(uri)
    await slot.link?.request('resources/unsubscribe', JSON.stringify({ uri }))
  }

  /** A client is gone. */
  async release (asker: Asker): Promise<void> {
    await this.#pool.release(asker)
  }

  /** Ends every link; resolves when nothing is left of them. */
  async close (): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    this.#pulse.stop()
    this.#catalogues.close()
    await this.#pool.close()
  }

  /** Its questions met several clients on one connection: from now on those that can be asked get their own. */
  #contest (): void {
    if (this.#contested || (this.config.isolation ?? 'auto') !== 'auto') return
    this.#contested = true
    this.#deps.log('warn', 'it asked something while calls of several clients were open: clients that can be asked get connections of their own from now on')
  }

  #keyOf (asker: Asker, passed?: Passed): LinkKey {
    return linkKey({ isolation: this.config.isolation ?? 'auto', remote: this.remote && this.config.type !== 'openapi', contested: this.#contested }, asker, passed && {
      principal: asker.principal ?? asker.id,
      digest: digestOf(passed),
      session: asker.principal !== undefined,
      eachRequest: ['streamable-http', 'openapi'].includes(this.#kind ?? this.config.type ?? '')
    })
  }

  #slotFor (asker: Asker, passed: Passed | undefined): Slot {
    // Requests to a REST API have nothing in common that could carry one's headers to another.
    if (this.config.type === 'openapi') return this.#pool.take(this.#keyOf(asker), asker)
    const slot = this.#pool.take(this.#keyOf(asker, passed), asker)
    if (this.#passes) slot.carry(asker.id, passed)
    return slot
  }

  /** What a client passes on with a request that comes here without its exchange. @throws RpcError -32602 */
  #passedBy (asker: Asker, method: string): Passed | undefined {
    const headers = this.#passes && asker.headersOf?.(method)
    return this.#passes && headers && passedOn(this.name, this.#passes, headers)
  }

  /** What a client's headers may have changed is nobody else's list, and its lists are read without them. */
  #lists (slot: Slot): boolean {
    return this.#passes === undefined || slot.key.affinity === 'shared'
  }

  /** The slot's link, waiting for it as long as a client should. */
  async #patiently (slot: Slot, exchange?: Exchange): Promise<Link> {
    let timer: NodeJS.Timeout | undefined
    try {
      return await Promise.race([
        this.#ready(slot),
        new Promise<never>((_resolve, reject) => {
          timer = setTimeout(() => { reject(new UpstreamError('timeout', `it is still connecting after ${limits.connectPatience / 1_000} s`)) }, limits.connectPatience)
          exchange?.onCancel((reason) => { reject(new UpstreamError('closed', reason)) })
        })
      ])
    } catch (error) {
      throw error instanceof UpstreamError ? this.#explain(error, 'is not connected') : error
    } finally {
      clearTimeout(timer)
    }
  }

  #ready (slot: Slot): Promise<Link> {
    if (slot.link) return Promise.resolve(slot.link)
    slot.opening ??= this.#open(slot).finally(() => { slot.opening = undefined })
    return slot.opening
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
      const fresh = base || (this.#lists(slot) && !this.#catalogues.has(slot.key.capabilityClass))
      if (slot.level !== undefined && link.capabilities.logging !== undefined) await link.request('logging/setLevel', JSON.stringify({ level: slot.level })).catch(() => {})
      for (const uri of slot.subscriptions.keys()) link.request('resources/subscribe', JSON.stringify({ uri })).catch(() => {})
      if (fresh) await this.#catalogues.read(slot, base)
      if (base) this.#connected()
      return link
    } catch (error) {
      const failure = error instanceof UpstreamError ? error : new UpstreamError('refused', error instanceof Error ? error.message : String(error))
      await slot.hangUp()
      if (base && !this.#closed) this.#disconnected(failure)
      throw failure
    } finally {
      if (base) this.#first = false
    }
  }

  async #connect (slot: Slot): Promise<Link> {
    const { transport, clientInfo, spawning, initTimeout, log } = this.#deps
    const { config, hide: hideVariables } = expand(this.config, transport.environment)
    const redact = redactor({ ...config, install: transport.install?.() })
    const hide = (text: string): string => redact(hideVariables(text))
    this.#hide = hide
    const { link, kind } = await openLink(slot, config, this.#passes !== undefined, this.#kind === undefined ? transportKinds(config) : [this.#kind], { transport: { ...transport, redact: hide }, clientInfo, spawning, initTimeout }, {
      question: async (from, question, origin) => await takeQuestion(this.#arrivals, slot, from, question, origin),
      news: (from, notification, origin) => { takeNews(this.#arrivals, slot, from, notification, origin) },
      closed: (from, error) => { this.#lost(slot, from, error) },
      warn: (sentence) => { log('warn', hide(sentence)) }
    })
    this.#kind = kind
    return link
  }

  #connected (): void {
    this.connectedAt = Date.now()
    const { enableKeepAlive = true, keepAliveInterval = 60_000, startOnDemand, idleTimeoutMs = 300_000 } = this.config
    this.#pulse.start({
      keepAlive: this.remote && enableKeepAlive ? keepAliveInterval : undefined,
      check: () => { void this.#check(Math.min(keepAliveInterval, 10_000)) },
      idle: !this.remote && startOnDemand === true ? idleTimeoutMs : undefined,
      idleSince: () => this.#pool.all.every((slot) => slot.idle) ? Math.max(...this.#pool.all.map((slot) => slot.link?.lastUsed ?? 0)) : undefined,
      stop: () => { this.#sleep() }
    })
    this.#become('connected', null)
  }

  #disconnected (error: UpstreamError): void {
    this.#pulse.stop()
    clearTimeout(this.#retry)
    const healthy = this.connectedAt !== undefined && Date.now() - this.connectedAt > healthyAfter
    this.#failures = healthy ? 1 : this.#failures + 1
    this.connectedAt = undefined
    this.reason = this.#hide(error.message)
    this.#become('disconnected', this.#hide(`${error.message}${error.detail}`))
    if (this.remote && this.config.enableKeepAlive === false) return
    this.#retry = setTimeout(() => { void this.#ready(this.#pool.base).catch(() => {}) }, backoff(this.#failures))
    this.#retry.unref()
  }

  /** A link is gone. The gateway's own is remade in the background, the others at their next use. */
  #lost (slot: Slot, link: Link, error: UpstreamError): void {
    if (slot.link !== link) return
    slot.link = undefined
    slot.catalogue = undefined
    if (this.#closed) return
    if (slot === this.#pool.base) this.#disconnected(error)
    else if (slot.subscriptions.size > 0) {
      setTimeout(() => { if (!slot.ended && !this.#closed && slot.subscriptions.size > 0) void this.#ready(slot).catch(() => {}) }, backoff(++slot.failures)).unref()
    }
  }

  async #check (timeout: number): Promise<void> {
    const { link } = this.#pool.base
    if (!link || link.calls.size > 0) return
    try {
      await link.request('ping', undefined, timeout)
    } catch (error) {
      if (!(error instanceof UpstreamError)) return
      if (this.#pool.base.link === link) this.#lost(this.#pool.base, link, error)
      await link.close()
    }
  }

  /** Nobody has used it for long: it ends, and starts again when it is needed. */
  #sleep (): void {
    this.#pulse.stop()
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

  #explain (error: UpstreamError, what = 'did not answer'): RpcError {
    const name = JSON.stringify(this.name)
    const reason = this.#hide(error.message)
    if (error.fault === 'timeout' && what !== 'is not connected') return new RpcError(code.unavailable, `Request timed out: server ${name} gave ${reason}`)
    if (error.fault === 'broken') return new RpcError(code.unavailable, `Server ${name} failed: ${reason}. The request may have run`)
    return new RpcError(code.unavailable, `Server ${name} ${what}: ${reason}`)
  }
}
