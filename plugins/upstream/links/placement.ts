import { RpcError } from '../../../protocol/errors.ts'
import type { Client, Headers } from '../../../protocol/exchange.ts'
import { type ServerConfig, typeOf } from '../../../schemas/server.ts'
import { transports, type TransportType } from '../../../schemas/transports.ts'
import { baseKey, linkKey, listingKey, type LinkKey } from './link-key.ts'
import { digestOf, passedOn, type Passed } from './passthrough.ts'
import { Pool, type Children } from './pool.ts'
import type { Slot } from './slot.ts'
import { isRemote } from './transport.ts'

interface PlacementDeps {
  name: string
  config: ServerConfig
  /** Names of clients' headers that are passed on to the server, in lower case; undefined: none are. */
  passes: readonly string[] | undefined
  /**
   * Whether the value of a header holds a credential of this gateway, which is not passed on. Undefined: its prefix
   * decides.
   */
  isOurs?: ((value: string) => boolean) | undefined
  /** The transport that last reached it. */
  kind: () => TransportType | undefined
  warn: (sentence: string) => void
  children: Children
}

/** Which slot serves each client of one server. */
export class Placement {
  readonly pool: Pool
  readonly #deps: PlacementDeps
  #contested = false

  constructor (deps: PlacementDeps) {
    const { name, config: { isolation, idleTimeoutMs = 300_000 }, children } = deps
    this.#deps = deps
    // Where links are for sessions or users only, no client can have the key of the gateway's link.
    const base = isolation === 'session' || isolation === 'user' ? { ...baseKey, key: 'gateway' } : baseKey
    this.pool = new Pool(
      { server: name, base, isProcess: !isRemote(deps.config), children, idleTimeout: idleTimeoutMs }
    )
  }

  get #traits (): typeof transports[TransportType] {
    return transports[this.#deps.kind() ?? typeOf(this.#deps.config) ?? 'stdio']
  }

  /** @param passed headers of the client that are passed on; undefined: none count */
  keyOf (client: Client, passed?: Passed): LinkKey {
    const { config } = this.#deps
    const sharing = {
      isolation: config.isolation ?? 'auto',
      remote: isRemote(config) && this.#traits.hasSession,
      contested: this.#contested
    } as const
    return linkKey(sharing, client, passed && {
      principal: client.principal ?? client.id,
      digest: digestOf(passed),
      session: client.principal !== undefined,
      eachRequest: this.#traits.hasStreams
    })
  }

  find (client: Client): Slot | undefined { return this.pool.find(this.keyOf(client)) }

  /**
   * The slot for a client's request, whose link notifies the client from now on. @throws RpcError -32001 when all are
   * in use
   */
  slotFor (client: Client, passed: Passed | undefined): Slot {
    const slot = this.slotOf(client, passed)
    if (slot.knows(client)) return slot
    slot.serve(client)
    if (client.listener?.level !== undefined || slot.link?.level !== undefined) slot.updateLevel()
    return slot
  }

  /** The slot for a client's request. */
  slotOf (client: Client, passed: Passed | undefined): Slot {
    // Without a session there is nothing that could carry one client's headers to another.
    if (!this.#traits.hasSession) return this.pool.take(this.keyOf(client), client)
    const slot = this.pool.take(this.keyOf(client, passed), client)
    if (this.#deps.passes) slot.carry(client.id, passed)
    return slot
  }

  /** The slot that reads lists for clients of the same class. */
  listing (client: Client): Slot {
    const key = this.keyOf(client)
    return this.pool.take(this.#deps.passes ? listingKey(this.pool.base.key, key.capabilityClass) : key, client)
  }

  /** Whether a slot's lists are shown: where a client's headers may have changed them, they are not. */
  lists (slot: Slot): boolean {
    return this.#deps.passes === undefined || slot.key.affinity === 'shared'
  }

  /** The headers of a request that are passed on. @throws RpcError -32602 for a value that cannot be sent */
  passed (headers: Headers | undefined): Passed | undefined {
    const { name, passes, isOurs } = this.#deps
    return passes && headers && passedOn(name, passes, headers, isOurs)
  }

  /** The slots that may serve a client. */
  slotsOf (client: Client): Slot[] {
    if (this.#deps.passes) return this.pool.all.filter((slot) => slot.carriesFor(client))
    const slot = this.find(client)
    return slot ? [slot] : []
  }

  /** Whether a client gets notifications of a slot's link: that serves it, or is the gateway's while none serves it. */
  serves (slot: Slot, client: Client): boolean {
    const own = this.slotsOf(client)
    return own.includes(slot) || (slot === this.pool.base && own.every(({ link }) => link === undefined))
  }

  /** The slot with a task of the client's principal. */
  ofTask (taskId: unknown, client: Client): Slot | undefined {
    return this.pool.all.find(({ tasks }) => tasks.hasTask(taskId, client))
  }

  /** The slot with a client's subscription, which may have been made with other headers. */
  subscribedOn (client: Client, uri: string): Slot | undefined {
    return this.pool.all.find(({ subscriptions }) => subscriptions.has(uri, client.id))
  }

  /** Takes over what clients asked for at the former upstream of this server, whose slots end. */
  adopt ({ pool }: Placement): void {
    for (const from of pool.all) for (const client of from.clients) this.#move(client, from)
  }

  /**
   * A question had several possible recipients on one link: from now on clients that can be asked have links of their
   * own, and their subscriptions move there.
   * @returns false when that is so already, or configured otherwise
   */
  contest (): boolean {
    if (this.#contested || (this.#deps.config.isolation ?? 'auto') !== 'auto') return false
    this.#contested = true
    for (const from of this.pool.all) {
      for (const client of from.clients) {
        if (!this.#move(client, from)) continue
        for (const uri of from.forget(client.id)) from.link?.unsubscribe(uri).catch(() => {})
      }
    }
    return true
  }

  /** Takes what a client asked for to the slot that serves it now; false: it is there already, or there is no room. */
  #move (client: Client, from: Slot): boolean {
    try {
      const to = this.slotOf(client, this.#deps.passes && from.passed)
      if (to !== from) to.takeOver(from, client)
      return to !== from
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      this.#deps.warn(`a client's subscriptions end here: ${error.message}`)
      return false
    }
  }
}
