import { eraOf } from '../../../protocol/era.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Client, Exchange, RequestHeaders } from '../../../protocol/exchange.ts'
import { isolationOf, type ServerConfig, serverTypeOf } from '../../../schemas/server.ts'
import { transports, type TransportType } from '../../../schemas/transports.ts'
import type { Link } from './link.ts'
import { gatewayLinkKey, linkKey, listingKey, type LinkKey } from './link-key.ts'
import { digestHeaders, selectPassedHeaders, type PassedHeaders } from './passthrough.ts'
import { SlotPool, type ChildCounts } from './pool.ts'
import type { Slot } from './slot.ts'
import { principalKeyOf } from './task-registry.ts'
import { isRemote } from './transport.ts'

interface PlacementDeps {
  name: string
  config: ServerConfig
  /** Names of client headers that are passed on to the server, in lower case; undefined: none. */
  passedNames: readonly string[] | undefined
  /**
   * Whether a header value contains a credential of this gateway and is not passed on. Default: decided by its form.
   */
  isOwnCredential?: ((value: string) => boolean) | undefined
  /** Returns the transport of the last successful connection; undefined if there was none. */
  kind: () => TransportType | undefined
  warn: (sentence: string) => void
  children: ChildCounts
}

/** Decides which slot (connection) of a server serves which client. */
export class Placement {
  readonly pool: SlotPool
  readonly #deps: PlacementDeps
  #contested = false

  constructor (deps: PlacementDeps) {
    const { name, config: { idleTimeoutMs = 300_000 }, children } = deps
    const isolation = isolationOf(deps.config)
    this.#deps = deps
    // If each session or user has its own link, the gateway's link has another key, so that no client shares it.
    const base =
      isolation === 'session' || isolation === 'user' ? { ...gatewayLinkKey, key: 'gateway' } : gatewayLinkKey
    this.pool = new SlotPool(
      { server: name, base, isProcess: !isRemote(deps.config), children, idleTimeout: idleTimeoutMs }
    )
  }

  get #traits (): typeof transports[TransportType] {
    return transports[this.#deps.kind() ?? serverTypeOf(this.#deps.config) ?? 'stdio']
  }

  /** Returns the key of the link that serves a client. @param passed the client's passed-on headers; default: none */
  keyOf (client: Client, passed?: PassedHeaders): LinkKey {
    const { config } = this.#deps
    const sharing = {
      isolation: isolationOf(config),
      remote: isRemote(config) && this.#traits.hasSession,
      contested: this.#contested
    } as const
    return linkKey(sharing, client, passed && {
      principal: client.principalKey ?? client.id,
      digest: digestHeaders(passed),
      session: client.principalKey !== undefined,
      eachRequest: this.#traits.hasStreams
    })
  }

  /** Finds the slot that serves a client without passed-on headers; undefined if there is none yet. */
  find (client: Client): Slot | undefined { return this.pool.find(this.keyOf(client)) }

  /**
   * Returns the slot for a client's request, created if needed. From then on, the client can get notifications from the
   * slot's link.
   * @throws RpcError -32001 if no slot is available
   */
  slotFor (client: Client, passed: PassedHeaders | undefined): Slot {
    const slot = this.useSlot(client, passed)
    if (slot.hasClient(client)) return slot
    slot.registerClient(client)
    if (client.listener?.level !== undefined || slot.link?.level !== undefined) slot.updateLevel()
    return slot
  }

  /** Like `slotFor`, but does not register the client for notifications. */
  useSlot (client: Client, passed: PassedHeaders | undefined): Slot {
    // If the server has no sessions, headers are sent with each request, so that clients can share a link.
    if (!this.#traits.hasSession) return this.pool.take(this.keyOf(client), client)
    const slot = this.pool.take(this.keyOf(client, passed), client)
    if (this.#deps.passedNames) slot.carryHeaders(client.id, passed)
    return slot
  }

  /**
   * Returns the slot that reads the lists for clients of the same capability class as this one, created if needed.
   * @throws RpcError -32001 if no slot is available
   */
  listingSlot (client: Client): Slot {
    const key = this.keyOf(client)
    return this.pool.take(this.#deps.passedNames ? listingKey(this.pool.base.key, key.capabilityClass) : key, client)
  }

  /** Whether lists that are read on a slot are shown to clients: not if passed-on headers may have changed them. */
  canList (slot: Slot): boolean {
    return this.#deps.passedNames === undefined || slot.key.affinity === 'shared'
  }

  /**
   * Selects the headers that are passed on, if there are any.
   * @throws RpcError -32602 for a value that cannot be sent
   */
  passedHeadersOf (headers: RequestHeaders | undefined): PassedHeaders | undefined {
    const { name, passedNames, isOwnCredential } = this.#deps
    return passedNames && headers && selectPassedHeaders(name, passedNames, headers, isOwnCredential)
  }

  /** Like `passedHeadersOf`, for a client's request. Reads its headers only if the server gets passed-on headers. */
  passedHeadersIn (exchange: Exchange): PassedHeaders | undefined {
    return this.#deps.passedNames && this.passedHeadersOf(exchange.headers)
  }

  /** Returns the existing slots that serve a client; several if headers are passed on. */
  slotsOf (client: Client): Slot[] {
    if (this.#deps.passedNames) return this.pool.all.filter((slot) => slot.carriesHeadersOf(client))
    const slot = this.find(client)
    return slot ? [slot] : []
  }

  /** Returns the slots whose links forward a client's notification. If none serves the client, one may be created. */
  notifiedSlots (client: Client, method: string): Slot[] {
    const slots = this.slotsOf(client)
    // A link that is opened later requests the roots itself. With passed-on headers, a link cannot be opened here,
    // since a notification has no headers.
    const needsNoLink = method === 'notifications/roots/list_changed' || this.#deps.passedNames !== undefined
    if (slots.length > 0 || needsNoLink) return slots
    try {
      return [this.slotFor(client, undefined)]
    } catch (error) {
      if (error instanceof RpcError) return []
      throw error
    }
  }

  /**
   * Whether a client gets broadcast notifications from a slot's link: if the slot serves the client, or if it is the
   * gateway's slot and no open link serves the client.
   */
  serves (slot: Slot, client: Client): boolean {
    const own = this.slotsOf(client)
    return own.includes(slot) || (slot === this.pool.base && own.every(({ link }) => link === undefined))
  }

  /**
   * Returns the slot for a request about a task: a slot on which the client's principal has the task, otherwise the
   * client's own slot.
   * @throws the errors of `slotFor`
   */
  slotForTask (taskId: unknown, client: Client, passed: PassedHeaders | undefined): Slot {
    const own = this.find(client)
    if (own?.tasks.hasTask(taskId, client) === true) return own
    return this.pool.all.find(({ tasks }) => tasks.hasTask(taskId, client)) ?? this.slotFor(client, passed)
  }

  /**
   * Implements `Provider.taskRun`.
   * @returns the link's id for a local process, since tasks end with their process; an empty text for a remote server;
   *   undefined if the client cannot access the task
   * @throws the errors of `slotFor`
   */
  taskRun (exchange: Exchange, taskId: string): string | undefined {
    const { client } = exchange
    const { tasks, link } = this.slotForTask(taskId, client, this.passedHeadersIn(exchange))
    const isOnLink = link !== undefined && tasks.mayRunOn(link, taskId)
    const principal = principalKeyOf(client)
    const begin = tasks.beginOf(taskId)
    const isOwn = begin === undefined || begin.principal === principal
    if (!isRemote(this.#deps.config)) return isOnLink && isOwn ? link.id : undefined
    // A legacy server may use the same task id in several sessions, so for a task of this link's session, other slots
    // do not matter. If the session was lost, the server may have restarted, and reused the id for another principal's
    // task: the task belongs to the principal that last started a task with this id.
    if (begin && isOwn && isOnLink && eraOf(link.identity.version) === 'legacy') return ''
    let last = begin
    for (const { tasks } of this.pool.all) {
      const other = tasks.beginOf(taskId)
      if (other && other.order > (last?.order ?? 0)) last = other
    }
    return last === undefined || last.principal === principal ? '' : undefined
  }

  /** Finds the slot with a client's subscription to a resource, which may have been made with other headers. */
  findSubscribedSlot (client: Client, uri: string): Slot | undefined {
    return this.pool.all.find(({ subscriptions }) => subscriptions.has(uri, client.id))
  }

  /**
   * Creates a check for a request about a task, since the request may be repeated on a link to another process.
   * @returns a function to call with the link before each attempt. It returns the link, or throws RpcError -32602 if
   *   the task ended with an earlier process. For other requests it always returns the link.
   */
  createTaskRunGuard (exchange: Exchange): (link: Link) => Link {
    const { method, params: { taskId } } = exchange
    if (!method.startsWith('tasks/') || typeof taskId !== 'string') return (link) => link
    const run = this.taskRun(exchange, taskId)
    return (link) => {
      if (this.taskRun(exchange, taskId) !== run) throw new RpcError(rpcCode.invalidParams, 'Unknown task')
      return link
    }
  }

  /** Takes over the subscriptions and log levels of clients from the server's former upstream. */
  adopt ({ pool }: Placement): void {
    for (const from of pool.all) for (const client of from.clients) this.#move(client, from)
  }

  /**
   * From now on, gives clients that can answer questions their own links, and moves their subscriptions there. Called
   * when a question of the server has several possible recipients on one link.
   * @returns false if this was done before, or the isolation is configured, so that nothing changes
   */
  isolateClients (): boolean {
    if (this.#contested || isolationOf(this.#deps.config) !== 'auto') return false
    this.#contested = true
    for (const from of this.pool.all) {
      for (const client of from.clients) {
        if (!this.#move(client, from)) continue
        for (const uri of from.removeClient(client.id)) from.link?.unsubscribe(uri).catch(() => {})
      }
    }
    return true
  }

  /**
   * Copies a client's subscriptions and log level to the slot that serves the client now.
   * @returns false if that slot is `from` itself, or no slot is available
   */
  #move (client: Client, from: Slot): boolean {
    try {
      const to = this.useSlot(client, this.#deps.passedNames && from.passedHeaders)
      if (to !== from) to.takeOver(from, client)
      return to !== from
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      this.#deps.warn(`the subscriptions of a client ended: ${error.message}`)
      return false
    }
  }
}
