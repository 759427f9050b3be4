import type { Client, Exchange, Question } from '../../protocol/exchange.ts'
import { plainClass } from '../../protocol/capabilities.ts'
import type { Caching } from '../../protocol/caching.ts'
import type { Catalogue, ListingHistory, ListKind } from '../../protocol/lists.ts'
import type { Changes } from '../../protocol/call.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Response } from '../../protocol/message.ts'
import { traceHeaders, type TraceContext } from '../../protocol/trace-context.ts'
import type { Learning, Provider, ProviderStatus } from '../../protocol/provider.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { BoundedMap, limits } from '../base/limits/index.ts'
import { sha256 } from '../base/secrets/index.ts'
import { type CatalogueAllowance, Catalogues } from './catalogues/catalogues.ts'
import { dispatchNotification, dispatchQuestion, noteAnswer, type DispatchDeps } from './inbound/dispatch.ts'
import { MendedNotes } from './notes.ts'
import { ResourceSubscriptions } from './inbound/subscriptions.ts'
import { expandVariables, withheldNames } from './links/environment.ts'
import { passthroughOf } from './links/passthrough.ts'
import type { Connecting } from './links/connect.ts'
import { Placement } from './links/placement.ts'
import type { Children } from './links/pool.ts'
import { RequestRunner } from './links/requests.ts'
import type { Slot } from './links/slot.ts'
import { ConnectionSupervisor } from './links/supervisor.ts'
import { isRemote } from './links/transport.ts'
import { LoginRequired } from './login/problems.ts'
import type { LoginListener, ServerLogin } from './login/server-login.ts'

/** What an upstream tells those around it. */
interface UpstreamListener {
  log: (level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
  /** What it lists has changed. */
  listsChanged: () => void
  statusChanged: () => void
  /** Called before a question is put to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, client: Client) => Promise<void>
  /** A notification for every listener that sees this server and that the server serves. */
  broadcast: (method: string, paramsText: string, serves: (client: Client) => boolean) => void
}

interface UpstreamDeps {
  connecting: Connecting
  /** The processes that clients have caused at all servers. */
  children: Children
  listener: UpstreamListener
  /** Whether the value of a header holds a credential of this gateway's. */
  isOurs?: ((value: string) => boolean) | undefined
  /** Begins the logins of the server; undefined: it takes none. */
  openLogin: (listener: LoginListener) => ServerLogin | undefined
  allowance: CatalogueAllowance
  /** Who waits for its lists: `isUsers`: it counts to a user who is no admin; `isWaitedFor`: a merged list waits while none is known. */
  waiting: { isUsers: () => boolean, isWaitedFor: (client: Client) => boolean }
}

/** A server that is alive: the provider of its items, on one or more links. */
export class Upstream implements Provider {
  readonly name: string
  readonly config: ServerConfig
  readonly remote: boolean
  /** Parts of its config that have no effect, in sentences. */
  readonly #ineffective: readonly string[]
  readonly #deps: UpstreamDeps
  readonly #placement: Placement
  readonly #supervisor: ConnectionSupervisor
  readonly #requests: RequestRunner
  readonly #catalogues: Catalogues
  readonly #subscriptions: ResourceSubscriptions
  readonly #mended: MendedNotes
  /** When each capability class's lists were last asked for, in ms since the epoch. */
  readonly #asked = new BoundedMap<string, number>(limits.classesPerServer)
  /** Headers of clients are passed on to it. */
  readonly #passes: boolean
  /** The logins at the server; undefined: the gateway does not log in there. */
  readonly login: ServerLogin | undefined

  constructor (name: string, config: ServerConfig, deps: UpstreamDeps) {
    this.name = name
    this.config = config
    this.remote = isRemote(config)
    this.#deps = deps
    const { connecting, children, listener: { log, listsChanged, statusChanged }, isOurs, openLogin, allowance } = deps
    const passthrough = passthroughOf(config, this.remote)
    this.#passes = passthrough.names.length > 0
    this.#ineffective = [
      ...expandVariables(config, connecting.transport.environment).warnings,
      ...withheldNames(config).map((name) => `${name} in env is not given to it: an admin has to write it for that`),
      ...passthrough.warnings
    ]
    const warn = (sentence: string): void => { log('warn', sentence) }
    this.#mended = new MendedNotes((sentence) => { warn(this.redact(sentence)) })
    this.#placement = new Placement({
      name,
      config,
      passes: this.#passes ? passthrough.names : undefined,
      isOurs,
      kind: () => this.#supervisor.kind,
      warn,
      children
    })
    const { pool } = this.#placement
    this.#catalogues = new Catalogues({
      target: targetOf(config),
      owner: ownerOf(config),
      changed: listsChanged,
      allowance,
      owned: () => pool.all.flatMap(({ catalogue }) => catalogue ?? []),
      warn: (sentence) => { warn(this.redact(sentence)) }
    })
    this.login = openLogin({
      ready: (holder) => {
        this.#asked.clear()
        this.#supervisor.retry(this.#slotsOf(holder).filter(({ link }) => link === undefined))
      },
      ended: (holder) => { void this.#supervisor.hangUp(this.#slotsOf(holder)) }
    })
    const dispatch = this.#dispatch()
    this.#supervisor = new ConnectionSupervisor(config, pool, this.#catalogues, {
      connecting,
      passes: this.#passes,
      lists: (slot) => this.#placement.lists(slot),
      inbound: {
        question: async (slot, ...args) => await dispatchQuestion(dispatch, slot, ...args),
        notification: (slot, ...args) => { dispatchNotification(dispatch, slot, ...args) },
        answered: noteAnswer,
        mended: this.#mended.add
      },
      authorization: (slot) => this.login?.authorization(slot.user),
      statusChanged,
      warn
    })
    this.#requests = new RequestRunner(name, this.#supervisor)
    const open = (slot: Slot): void => { this.#supervisor.ready(slot).catch(() => {}) }
    this.#subscriptions = new ResourceSubscriptions(name, this.#placement, this.#requests, open)
  }

  #dispatch (): DispatchDeps {
    const { onQuestion, broadcast, log } = this.#deps.listener
    const { base } = this.#placement.pool
    return {
      name: this.name,
      onQuestion,
      refresh: (slot) => {
        const from = this.#placement.lists(slot) ? slot : base
        this.#catalogues.refresh(from, from === base)
      },
      contested: () => {
        if (!this.#placement.contest()) return
        const consequence = 'clients that can be asked get connections of their own from now on'
        log('warn', `it asked a question while calls of several clients were open: ${consequence}`)
        this.#supervisor.wake()
      },
      broadcast: (slot, link, method, paramsText) => {
        broadcast(method, paramsText, (client) => link.isUsedOnlyBy(client) && this.#placement.serves(slot, client))
      },
      dropped: (method) => { log('debug', `${method} could not be attributed to one client and was dropped`) }
    }
  }

  /** Parts of its config that have no effect, and what of its lists and messages is left out or mended, for those who manage it. */
  get warnings (): readonly string[] {
    const { sharedApi } = this.#deps.connecting.transport
    const leftOut = [...sharedApi.warnings, ...this.#catalogues.leftOut, ...this.#mended.sentences].map((sentence) => this.redact(sentence))
    return leftOut.length === 0 ? this.#ineffective : [...this.#ineffective, ...leftOut]
  }

  get status (): ProviderStatus { return this.#supervisor.status }
  /** Why it is not connected, for those who manage it. */
  get error (): string | null { return this.#supervisor.error }
  /** The same, for its clients. */
  get reason (): string | undefined { return this.#supervisor.reason }
  get connectedAt (): number | undefined { return this.#supervisor.connectedAt }
  /** The MCP revision of the gateway's own link; undefined: it has none. */
  get protocolVersion (): string | undefined { return this.#placement.pool.base.link?.identity.version }
  /** It is connected, or starts when it is called. */
  get available (): boolean {
    const starts = this.status === 'disconnected' && this.error === null && this.config.startOnDemand === true
    return this.status === 'connected' || this.#waitsForUsers || starts
  }

  /** Only the gateway's own link has no login: each user's is opened with that of the user. */
  get #waitsForUsers (): boolean { return this.status === 'oauth_required' && this.login?.deps.target.perUser === true }

  /** The slots whose links use the login of a holder. */
  #slotsOf (holder: string): Slot[] {
    return this.#placement.pool.all.filter(({ user }) => this.login?.holder(user) === holder)
  }

  /** The error for a client that has to log in before it can use the server; undefined: nothing is known to be in the way. */
  refusal (client: Client): RpcError | undefined {
    return this.login?.refusal(this.login.holder(client.user))?.toRpcError(this.name, client)
  }

  /** How many connections it has. */
  get links (): number { return this.#placement.pool.all.filter((slot) => slot.link !== undefined).length }

  redact (text: string): string { return this.#supervisor.redact(text) }

  /** Restores what it listed in the last run, unless something newer is known. @param read reads the text that was kept from disk */
  async restore (read: () => AsyncIterable<string>): Promise<void> { await this.#catalogues.restoreFrom(read) }

  /** Takes over the lists of the server's former upstream and what clients asked of it. Its connections end, and clients notice nothing. */
  adopt (former: Upstream): void {
    this.#catalogues.takeOver(former.#catalogues)
    this.#placement.adopt(former.#placement)
  }

  /** Begins to connect, and keeps at it. Returns at once. */
  connect (): void {
    for (const sentence of this.#ineffective) this.#deps.listener.log('warn', sentence)
    if (!this.#catalogues.known) this.#catalogues.keep()
    this.#supervisor.start()
  }

  catalogue (client: Client): Catalogue | undefined {
    const key = this.#placement.keyOf(client)
    return this.#catalogues.of(this.#placement.pool.find(key), key.capabilityClass)
  }

  catalogues (): readonly Catalogue[] { return this.#catalogues.all }

  get claims (): ListingHistory { return this.#catalogues.claims }

  caching (client: Client, kind: ListKind): Caching | undefined {
    const catalogue = this.catalogue(client)
    return catalogue && this.#catalogues.caching(catalogue, kind, this.#ownSlot(this.#placement.find(client)) ?? this.#placement.pool.base)
  }

  /** The id of the client's own catalogue, if it has one that differs from its class's. */
  ownCatalogue (client: Client): number | undefined { return this.#placement.find(client)?.catalogue?.id }

  get hasOwnCatalogues (): boolean { return this.#placement.pool.all.some((slot) => slot.catalogue !== undefined) }

  learn (client: Client, only: boolean): Learning[] {
    const key = this.#placement.keyOf(client)
    const { capabilityClass } = key
    const own = this.#placement.pool.find(key)
    const reading = this.#catchUp(own)
    // On merged routes nobody waits for a user's server of which something is known: `list_changed` follows.
    const isWaitedFor = only || !this.#deps.waiting.isUsers()
    const changed = isWaitedFor ? reading : []
    if (this.#catalogues.has(capabilityClass) || own?.catalogue) return changed
    const budget = this.#learnBudget(capabilityClass, only)
    if (budget <= 0) return changed
    // On merged routes, a new class of clients is shown at once what others are shown. No process is started for its own lists.
    const isShown = !only && this.#catalogues.has(plainClass)
    if (isShown && !this.remote && !own?.link) return changed
    const done = this.#readFor(only || isShown ? this.#placement.listing(client) : this.#placement.pool.base).catch(() => {})
    const isLeftOut = isShown || !(isWaitedFor || (!this.#catalogues.known && this.#deps.waiting.isWaitedFor(client)))
    return isLeftOut ? changed : [...changed, { done, budget }]
  }

  readFor (client: Client): Promise<void> | undefined {
    const { capabilityClass } = this.#placement.keyOf(client)
    if (this.status !== 'connected' || this.#catalogues.has(capabilityClass) || this.#placement.find(client)?.catalogue) return undefined
    return this.#readFor(this.#placement.listing(client))
  }

  /** A client's slot, where changes of what the client is shown are heard on it as well as on the gateway's own. */
  #ownSlot (slot: Slot | undefined): Slot | undefined {
    return slot && slot !== this.#placement.pool.base && this.#placement.lists(slot) ? slot : undefined
  }

  /**
   * The upstream sent `list_changed`, or what it lists has run out: its lists are being read again.
   * @param slot the client's, if there is one
   */
  #catchUp (slot: Slot | undefined): Learning[] {
    const { base } = this.#placement.pool
    const own = this.#ownSlot(slot)
    const readings: Learning[] = []
    for (const each of own ? [own, base] : [base]) {
      const reading = this.#catalogues.catchUp(each, each === base, each === base || !base.link)
      const budget = reading ? limits.firstAnswerBudget + reading.since - Date.now() : 0
      if (reading && budget > 0) readings.push({ done: reading.done, budget })
    }
    return readings
  }

  /** How long it is worth waiting for what it lists to a class of clients, in ms. */
  #learnBudget (capabilityClass: string, only: boolean): number {
    if (this.status === 'connecting') return only ? limits.connectionWait : this.#supervisor.firstAnswerBudget
    if (this.status !== 'connected' && !this.#waitsForUsers) return 0
    const since = Date.now() - (this.#asked.get(capabilityClass) ?? -Infinity)
    // It is not waited for again, for a while, once that has taken too long.
    const left = since > limits.newClassRetry ? limits.newClass : limits.newClass - since
    // Among several, one that answers at once (no process has to start) or is known to be slow gets little time: it may be stuck.
    const startsInTime = !this.remote && this.#supervisor.openTime < limits.newClass
    return only || startsInTime ? left : Math.min(left, limits.firstAnswerBudget)
  }

  /** Reads what it lists on a slot. @throws UpstreamError */
  async #readFor (slot: Slot): Promise<void> {
    const { capabilityClass } = slot.key
    if (Date.now() - (this.#asked.get(capabilityClass) ?? -Infinity) > limits.newClassRetry) this.#asked.set(capabilityClass, Date.now())
    try {
      await this.#supervisor.ready(slot)
    } catch (error) {
      // The next client may be one who has logged in: it waits as if nobody had asked.
      if (error instanceof LoginRequired) this.#asked.delete(capabilityClass)
      throw error
    }
    const isKnown = (): boolean => this.#catalogues.has(capabilityClass) || slot.catalogue !== undefined
    if (!isKnown()) await this.#catalogues.read(slot, slot === this.#placement.pool.base)
    // It answers in time: its lists are read again as soon as a change of what the gateway is shown has made them unknown.
    if (isKnown()) this.#asked.delete(capabilityClass)
  }

  /**
   * Sends a request. An expired session is opened again, and the request repeated if it cannot have run.
   * @throws RpcError -32602 for a header that cannot be passed on
   */
  async call (exchange: Exchange, changes: Changes, trace?: TraceContext): Promise<Response> {
    const { client, method } = exchange
    const passed = this.#passes ? this.#placement.passed(exchange.headers) : undefined
    // A request about a task goes to where the task runs.
    const taskSlot = method.startsWith('tasks/') ? this.#placement.ofTask(exchange.params.taskId, client) : undefined
    const slot = taskSlot ?? this.#placement.slotFor(client, passed)
    const { timeout = this.#deps.connecting.requestTimeout, resetTimeoutOnProgress = true, maxTotalTimeout } = this.config.options ?? {}
    const options = {
      changes: changesOf(exchange, changes),
      deadlines: { timeout, resetTimeoutOnProgress, maxTotalTimeout },
      headers: this.#passes || trace ? { ...passed, ...(trace && traceHeaders(trace)) } : undefined
    }
    return await this.#requests.run(slot, (link) => link.call(exchange, options), exchange)
  }

  async subscribe (client: Client, uri: string, paramsText?: string): Promise<string> {
    return await this.#subscriptions.add(client, uri, paramsText)
  }

  resubscribe (client: Client, uri: string): void { this.#subscriptions.restore(client, uri) }

  async unsubscribe (client: Client, uri: string, paramsText?: string): Promise<string> {
    return await this.#subscriptions.remove(client, uri, paramsText)
  }

  subscriptions (client: Client): string[] { return this.#subscriptions.of(client) }

  notify (client: Client, method: string, paramsText: string): void {
    for (const { link } of this.#placement.slotsOf(client)) link?.notify(method, paramsText)
  }

  async setLevel (client: Client): Promise<void> {
    const slot = this.#placement.slotOf(client, this.#placement.passed(client.headersOf?.('logging/setLevel')))
    slot.serve(client)
    const { link, level } = slot
    if (link && level !== undefined) await this.#requests.run(slot, async (link) => { await link.setLevel(level) })
  }

  async release (client: Client): Promise<void> {
    const hasOwn = this.hasOwnCatalogues
    await this.#placement.pool.release(client)
    if (hasOwn) this.#catalogues.recount()
  }

  /** Users are gone: the links that were theirs end. */
  async endOf (users: ReadonlySet<string>): Promise<void> {
    const hasOwn = this.hasOwnCatalogues
    await this.#placement.pool.endOf(users)
    if (hasOwn) this.#catalogues.recount()
  }

  /** Ends every link; resolves when nothing of them is left. */
  async close (): Promise<void> {
    this.#supervisor.close()
    this.#catalogues.close()
    await this.#placement.pool.close()
  }
}

const ownerOf = ({ owner = 'admin' }: ServerConfig): string => owner

/** Identifies whose lists they are and what they are read from: they outlive changes of everything else. */
const targetOf = ({ type, command, args, url, openapi, ...config }: ServerConfig): string =>
  sha256(JSON.stringify([type, command, args, url, openapi?.schema ?? openapi?.url, ownerOf(config)]))

/** The changes of a request's params that change something: of a tool that has its own name on a route nothing is rewritten. */
function changesOf ({ params: { name } }: Exchange, changes: Changes): Changes {
  if (typeof name !== 'string' || changes.name !== JSON.stringify(name)) return changes
  const { name: _, ...others } = changes
  return others
}
