import type { Client, Exchange } from '../../protocol/exchange.ts'
import type { Caching } from '../../protocol/caching.ts'
import type { Catalogue, ListingHistory, ListKind } from '../../protocol/lists.ts'
import type { ParamChanges } from '../../protocol/call.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Response } from '../../protocol/message.ts'
import { traceHeaders, type TraceContext } from '../../protocol/trace-context.ts'
import type { ListLoading, Provider, ProviderStatus } from '../../protocol/provider.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { hasUserVariables } from '../../schemas/user-variables.ts'
import { configOwner, catalogueSourceIdOf } from './catalogues/cache-text.ts'
import { UpstreamCatalogues } from './catalogues/catalogues.ts'
import { ListLoader } from './catalogues/list-loader.ts'
import { dispatchNotification, dispatchQuestion } from './inbound/dispatch.ts'
import { recordTasksAndElicitations } from './inbound/record-answer.ts'
import { deadlinesOf } from './links/deadlines.ts'
import { createDispatchDeps } from './inbound/dispatch-deps.ts'
import { CorrectionLog } from './status-log.ts'
import { ResourceSubscriptions } from './inbound/subscriptions.ts'
import { Circuits } from './links/circuits.ts'
import { expandVariables, withheldVariableWarnings } from './links/environment.ts'
import { parsePassthroughHeaders } from './links/passthrough.ts'
import { Placement } from './links/placement.ts'
import { withoutUnchangedName, RequestRunner } from './links/requests.ts'
import type { Slot } from './links/slot.ts'
import { ConnectionSupervisor } from './links/supervisor.ts'
import { isRemote } from './links/transport.ts'
import { userOfHolder, type ServerLogin } from './login/server-login.ts'
import type { UpstreamDeps } from './upstream-deps.ts'
import { renewLinks } from './values/renew.ts'
import type { ServerValues } from './values/server-values.ts'

/** A running server: the provider of its items. Clients reach it through one or more links (connections). */
export class Upstream implements Provider {
  readonly name: string
  readonly config: ServerConfig
  readonly remote: boolean
  /** Warnings about parts of the config that have no effect. */
  readonly #ineffective: readonly string[]
  readonly #deps: UpstreamDeps
  readonly #placement: Placement
  readonly #supervisor: ConnectionSupervisor
  readonly #requests: RequestRunner
  readonly #catalogues: UpstreamCatalogues
  readonly #subscriptions: ResourceSubscriptions
  readonly #corrections: CorrectionLog
  readonly #listLoader: ListLoader
  readonly #circuits: Circuits
  /** Whether headers of clients are passed on to the server. */
  readonly #passesHeaders: boolean
  /** The OAuth logins at the server; undefined if the gateway does not log in there. */
  readonly login: ServerLogin | undefined
  /** The values that users provide for this server's variables; undefined if its config has no user variables. */
  readonly values: ServerValues | undefined

  constructor (name: string, config: ServerConfig, deps: UpstreamDeps) {
    this.name = name
    this.config = config
    this.remote = isRemote(config)
    this.#deps = deps
    const { connecting, children, listener, openLogin, openValues, review } = deps
    const { log, listsChanged, statusChanged } = listener
    const passthrough = parsePassthroughHeaders(config, this.remote)
    this.#passesHeaders = passthrough.names.length > 0
    this.#ineffective = [
      ...expandVariables(config, connecting.transport.environment).warnings,
      ...withheldVariableWarnings(config),
      ...passthrough.warnings
    ]
    const warn = (sentence: string): void => { log('warn', sentence) }
    this.#corrections = new CorrectionLog((sentence) => { warn(this.redact(sentence)) })
    this.#placement = new Placement({
      name,
      config,
      passedNames: this.#passesHeaders ? passthrough.names : undefined,
      isOwnCredential: connecting.transport.isOwnCredential,
      kind: () => this.#supervisor.transportType,
      warn,
      children
    })
    const { pool } = this.#placement
    this.#catalogues = new UpstreamCatalogues({
      sourceId: catalogueSourceIdOf(config),
      owner: configOwner(config),
      onChange: listsChanged,
      allowance: deps.allowance,
      isPerUser: hasUserVariables(config),
      examine: async (...read) => { await review.examine(name, ...read) },
      ownCatalogues: () => pool.all.flatMap(({ catalogue }) => catalogue ?? []),
      warn: (sentence) => { warn(this.redact(sentence)) }
    })
    this.login = openLogin({
      onReady: (holder) => {
        this.#listLoader.onLogin(userOfHolder(holder))
        this.#supervisor.retry(this.#slotsOf(holder).filter(({ link }) => link === undefined))
      },
      onEnded: (holder) => { void this.#supervisor.closeLinks(this.#slotsOf(holder)) }
    })
    this.values = openValues((user, values) => {
      const slots = pool.all.filter((slot) => this.values?.usesValuesOf(slot.user, user))
      this.#listLoader.resetWaits()
      if (values === undefined) this.#catalogues.forgetOwn(slots)
      renewLinks(slots, values === undefined, (each) => { this.#supervisor.retry(each) })
    })
    this.#circuits = new Circuits(() => pool.all.map(({ circuit }) => circuit), log)
    const wake = (): void => { this.#supervisor.wake() }
    const dispatch = createDispatchDeps(name, listener, this.#placement, this.#catalogues, wake)
    this.#supervisor = new ConnectionSupervisor(config, pool, this.#catalogues, {
      connecting,
      passesHeaders: this.#passesHeaders,
      canList: (slot) => this.#placement.canList(slot),
      inbound: {
        question: async (slot, ...args) => await dispatchQuestion(dispatch, slot, ...args),
        notification: (slot, ...args) => { dispatchNotification(dispatch, slot, ...args) },
        answered: recordTasksAndElicitations,
        mended: this.#corrections.add
      },
      authorization: (slot) => this.login?.authorization(slot.user),
      statusChanged,
      circuits: this.#circuits,
      values: this.values,
      warn
    })
    this.#listLoader = new ListLoader({
      placement: this.#placement,
      catalogues: this.#catalogues,
      supervisor: this.#supervisor,
      isRemote: this.remote,
      waitsForUsers: () => this.#waitsForUsers,
      lacksValues: ({ user }) => this.values?.isLackingValues(user) === true,
      lacksOwn: (client) => this.refusal(client) !== undefined,
      ...deps.waiting
    })
    this.#requests = new RequestRunner(name, this.#supervisor, this.#circuits)
    const open = (slot: Slot): void => { this.#supervisor.ensureLink(slot).catch(() => {}) }
    this.#subscriptions = new ResourceSubscriptions(name, this.#placement, this.#requests, open)
  }

  /** Warnings for the server's managers: about its config, its lists and messages, and repeated failures. */
  get warnings (): readonly string[] {
    const { sharedApi } = this.#deps.connecting.transport
    const refused = this.#circuits.sentence ?? []
    const { omissions } = this.#catalogues
    const remarks = [...sharedApi.warnings, ...omissions, ...this.#corrections.sentences].concat(refused)
    return [...this.#ineffective, ...remarks.map((sentence) => this.redact(sentence))]
  }

  get status (): ProviderStatus { return this.#supervisor.status }
  /** The reason why the server is not connected, as shown to its managers. */
  get error (): string | null { return this.#supervisor.error }
  /** The reason why the server is not connected, as shown to clients. */
  get unavailableReason (): string | undefined { return this.#supervisor.reason }
  get connectedAt (): number | undefined { return this.#supervisor.connectedAt }
  /** The MCP revision of the gateway's own link; undefined if that link is not open. */
  get protocolVersion (): string | undefined { return this.#placement.pool.base.link?.identity.version }
  /** Whether the server can be called: it is connected, or a call would connect it. */
  get isAvailable (): boolean {
    const starts = this.status === 'disconnected' && this.error === null && this.config.startOnDemand === true
    return this.status === 'connected' || this.#waitsForUsers || starts
  }

  /** Whether the gateway's own link lacks a login or values, while users' links, which use the user's own, can open. */
  get #waitsForUsers (): boolean {
    return this.values?.isOwnerLackingValues === true ||
      (this.status === 'oauth_required' && this.login?.deps.target.isPerUser === true)
  }

  /** Returns the slots whose links use the login of a holder (a user, or all users together). */
  #slotsOf (holder: string): Slot[] {
    return this.#placement.pool.all.filter(({ user }) => this.login?.holder(user) === holder)
  }

  /** Returns the error for a client that must first log in or provide values; undefined if no such need is known. */
  refusal (client: Client): RpcError | undefined {
    return this.values?.refusal(client) ??
      this.login?.refusal(this.login.holder(client.user))?.toRpcError(this.name, client)
  }

  /** Whether requests on some link are refused, since the server keeps failing. */
  get isCircuitOpen (): boolean { return this.#circuits.isAnyOpen }

  get linkCount (): number { return this.#placement.pool.all.filter((slot) => slot.link !== undefined).length }

  redact (text: string): string { return this.#supervisor.redact(text) }

  /** Restores the lists that the last run stored, unless newer ones are known. @param read reads the stored text */
  async restore (read: () => AsyncIterable<string>): Promise<void> { await this.#catalogues.restoreFrom(read) }

  /** Takes over the lists, and the subscriptions and log levels of clients, from the server's former upstream. */
  adopt (former: Upstream): void {
    this.#catalogues.takeOver(former.#catalogues)
    this.#placement.adopt(former.#placement)
  }

  /** Begins to connect, in the background. */
  connect (): void {
    for (const sentence of this.#ineffective) this.#deps.listener.log('warn', sentence)
    if (!this.#catalogues.isKnown) this.#catalogues.store()
    this.#supervisor.start()
  }

  catalogue (client: Client): Catalogue | undefined {
    const catalogue = this.#readCatalogue(client)
    return catalogue && this.#listed(catalogue)
  }

  catalogues (): readonly Catalogue[] { return this.#catalogues.all.map(this.#listed) }
  readonly #listed = (read: Catalogue): Catalogue => this.#deps.review.listed(this.name, read)

  #readCatalogue (client: Client): Catalogue | undefined {
    const key = this.#placement.keyOf(client)
    return this.#catalogues.of(this.#placement.pool.find(key), key.capabilityClass)
  }

  get listingHistory (): ListingHistory { return this.#catalogues.claims }

  caching (client: Client, kind: ListKind): Caching | undefined {
    const catalogue = this.#readCatalogue(client)
    const slot = this.#listLoader.ownSlot(this.#placement.find(client)) ?? this.#placement.pool.base
    return catalogue && this.#catalogues.caching(catalogue, kind, slot)
  }

  /** Returns the id of the client's own catalogue; undefined if the client gets the one for its capability class. */
  ownCatalogueId (client: Client): number | undefined { return this.#placement.find(client)?.catalogue?.id }

  get hasOwnCatalogues (): boolean { return this.#placement.pool.all.some((slot) => slot.catalogue !== undefined) }

  loadLists (...request: [Client, boolean]): ListLoading[] { return this.#listLoader.loadLists(...request) }

  loadListsForItem (client: Client): Promise<void> | undefined { return this.#listLoader.loadListsForItem(client) }

  /**
   * Sends a request. If the server cannot have executed it (expired session, no connection), it is repeated once.
   * @throws RpcError: -32001 without a response, -32602 for an invalid header or ended task, or one with a page to open
   */
  async call (exchange: Exchange, changes: ParamChanges, trace?: TraceContext): Promise<Response> {
    const { client, method } = exchange
    if (this.values?.has(client.user) === false) await this.values.require(client)
    const passed = this.#placement.passedHeadersIn(exchange)
    const slot = method.startsWith('tasks/')
      ? this.#placement.slotForTask(exchange.params.taskId, client, passed)
      : this.#placement.slotFor(client, passed)
    const options = {
      changes: withoutUnchangedName(exchange, changes),
      deadlines: deadlinesOf(method, this.config, this.#deps.connecting.requestTimeout),
      headers: this.#passesHeaders || trace ? { ...passed, ...(trace && traceHeaders(trace)) } : undefined
    }
    const inSameRun = this.#placement.createTaskRunGuard(exchange)
    return await this.#requests.call(slot, (link) => inSameRun(link).call(exchange, options), exchange)
  }

  taskRun (exchange: Exchange, id: string): string | undefined { return this.#placement.taskRun(exchange, id) }

  async subscribe (client: Client, uri: string, paramsText?: string): Promise<string> {
    await this.values?.require(client)
    return await this.#subscriptions.add(client, uri, paramsText)
  }

  resubscribe (client: Client, uri: string): void { this.#subscriptions.restore(client, uri) }

  async unsubscribe (client: Client, uri: string, paramsText?: string): Promise<string> {
    return await this.#subscriptions.remove(client, uri, paramsText)
  }

  subscriptions (client: Client): string[] { return this.#subscriptions.of(client) }

  notify (client: Client, method: string, paramsText: string): void {
    for (const slot of this.#placement.notifiedSlots(client, method)) this.#requests.notify(slot, method, paramsText)
  }

  async setLevel (client: Client, paramsText?: string): Promise<void> {
    // The link gets the level when it is opened, which requires the user's values.
    if (this.values?.has(client.user) === false) return
    const headers = this.#placement.passedHeadersOf(client.headersOf?.('logging/setLevel'))
    const slot = this.#placement.useSlot(client, headers)
    slot.registerClient(client)
    slot.levelParams = paramsText
    const { link, level } = slot
    if (link && level) await this.#requests.run(slot, (to) => to.setLevel(level, paramsText))
  }

  async release (client: Client): Promise<void> {
    this.#requests.release(client)
    const hasOwn = this.hasOwnCatalogues
    await this.#placement.pool.release(client)
    if (hasOwn) this.#catalogues.reportSize()
  }

  async endLinksOf (users: ReadonlySet<string>): Promise<void> {
    const hasOwn = this.hasOwnCatalogues
    await this.#placement.pool.endLinksOf(users)
    if (hasOwn) this.#catalogues.reportSize()
  }

  async close (): Promise<void> {
    this.#supervisor.close()
    this.#catalogues.close()
    await this.#placement.pool.close()
  }
}
