import { RpcError } from '../../../protocol/errors.ts'
import type { Client, Exchange } from '../../../protocol/exchange.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { baseKey, linkKey, listingKey, type LinkKey } from './link-key.ts'
import { digestOf, passedOn, type Passed } from './passthrough.ts'
import { Pool } from './pool.ts'
import type { Slot } from './slot.ts'
import type { TransportKind } from './transport.ts'

export interface PlacementDeps {
  name: string
  config: ServerConfig
  remote: boolean
  /** Names of its clients' headers that go on to it, in lower case; undefined: none do. */
  passes: readonly string[] | undefined
  /** How it was reached last. */
  kind: () => TransportKind | undefined
  warn: (sentence: string) => void
}

/** Where each client of one server is served: on which slot, and what it asked for there. */
export class Placement {
  readonly pool: Pool
  readonly #deps: PlacementDeps
  #contested = false

  constructor (deps: PlacementDeps) {
    const { name, config: { isolation } } = deps
    this.#deps = deps
    // With links for sessions or users only, the gateway's own is nobody's: its key is not one that a client can have.
    this.pool = new Pool(name, isolation === 'session' || isolation === 'user' ? { ...baseKey, key: 'gateway' } : baseKey)
  }

  /** @param passed undefined: none of its headers count */
  keyOf (client: Client, passed?: Passed): LinkKey {
    const { config, remote, kind } = this.#deps
    return linkKey(
      { isolation: config.isolation ?? 'auto', remote: remote && config.type !== 'openapi', contested: this.#contested },
      client,
      passed && {
        principal: client.principal ?? client.id,
        digest: digestOf(passed),
        session: client.principal !== undefined,
        eachRequest: ['streamable-http', 'openapi'].includes(kind() ?? config.type ?? '')
      }
    )
  }

  /** The slot that serves a client, if it is there. */
  find (client: Client): Slot | undefined { return this.pool.find(this.keyOf(client)) }

  /** The slot for a client's request. It hears what the server says to that, from now on. @throws RpcError -32001 when there is no room */
  slotFor (client: Client, passed: Passed | undefined): Slot {
    const slot = this.slotOf(client, passed)
    if (slot.knows(client)) return slot
    slot.serve(client)
    if (client.level !== undefined || slot.link?.level !== undefined) slot.tellLevel()
    return slot
  }

  /** The same, and nothing is noted. */
  slotOf (client: Client, passed: Passed | undefined): Slot {
    // Requests to a REST API have nothing in common that could carry one's headers to another.
    if (this.#deps.config.type === 'openapi') return this.pool.take(this.keyOf(client), client)
    const slot = this.pool.take(this.keyOf(client, passed), client)
    if (this.#deps.passes) slot.carry(client.id, passed)
    return slot
  }

  /** The slot on which it is asked what it lists to clients like this one. */
  listing (client: Client): Slot {
    const key = this.keyOf(client)
    return this.pool.take(this.#deps.passes ? listingKey(this.pool.base.key, key.capabilityClass) : key, client)
  }

  /** What a client's headers may have changed is nobody else's list, and its lists are read without them. */
  lists (slot: Slot): boolean {
    return this.#deps.passes === undefined || slot.key.affinity === 'shared'
  }

  /** What of a request's headers goes on. @throws RpcError -32602 for a value that cannot be sent */
  passed (headers: Exchange['headers'] | undefined): Passed | undefined {
    const { name, passes } = this.#deps
    return passes && headers && passedOn(name, passes, headers)
  }

  /** The slots of which a client may have one. */
  slotsOf (client: Client): Slot[] {
    if (this.#deps.passes) return this.pool.all.filter((slot) => slot.carriesFor(client.id))
    const slot = this.find(client)
    return slot ? [slot] : []
  }

  /** Whether what a server says on a slot's link outside of calls is for a client: it is served there or, by the gateway's own link, nowhere yet. */
  serves (slot: Slot, client: Client): boolean {
    const own = this.slotsOf(client)
    return own.includes(slot) || (slot === this.pool.base && own.every(({ link }) => link === undefined))
  }

  /** Where a task runs that the client's principal began. */
  ofTask (taskId: unknown, client: Client): Slot | undefined {
    return this.pool.all.find(({ pending }) => pending.hasTask(taskId, client))
  }

  /** Where a client is subscribed: it may have done so with other headers than it sends now. */
  subscribedOn (client: Client, uri: string): Slot | undefined {
    return this.pool.all.find(({ subscriptions }) => subscriptions.get(uri)?.has(client.id))
  }

  /** Takes over what clients asked for on the slots of others, which end. @returns those clients */
  adopt ({ pool }: Placement): Client[] {
    return pool.all.flatMap((from) => from.clients.filter((client) => this.#move(client, from)))
  }

  /**
   * Questions met several clients on one connection: from now on those that can be asked get their own, and what they asked for
   * goes with them. @returns false when that is so already, or configured otherwise
   */
  contest (): boolean {
    if (this.#contested || (this.#deps.config.isolation ?? 'auto') !== 'auto') return false
    this.#contested = true
    for (const from of this.pool.all) {
      for (const client of from.clients) {
        if (!this.#move(client, from)) continue
        for (const uri of from.forget(client.id)) from.link?.request('resources/unsubscribe', JSON.stringify({ uri })).catch(() => {})
      }
    }
    return true
  }

  /** Takes what a client asked for to the slot that serves it now; false: it is there already, or there is no room for it. */
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
