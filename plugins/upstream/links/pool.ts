import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { bridged, shareable } from '../../../protocol/capabilities.ts'
import { limits } from '../../limits/index.ts'
import type { LinkKey } from './link-key.ts'
import { Slot } from './slot.ts'

/** The places for links of one server: the gateway's own, and those that clients share or have for themselves. Bounded. */
export class Pool {
  readonly base: Slot
  readonly #name: string
  readonly #slots = new Map<string, Slot>()

  constructor (name: string, base: LinkKey) {
    this.#name = name
    this.base = new Slot(base, {}, undefined)
    this.#slots.set(base.key, this.base)
  }

  get all (): Slot[] { return [...this.#slots.values()] }

  find ({ key }: LinkKey): Slot | undefined { return this.#slots.get(key) }

  /** The slot for a client's key, made if need be. @throws RpcError -32001 when there are as many as there may be, all in use */
  take (key: LinkKey, client: Client): Slot {
    const known = this.#slots.get(key.key)
    if (known) return known
    if (this.#slots.size >= limits.linksPerServer) this.#evict()
    const slot = new Slot(
      key,
      key.affinity === 'session' ? bridged(client.capabilities) : shareable(client.capabilities),
      key.affinity === 'session' ? client : undefined
    )
    this.#slots.set(key.key, slot)
    return slot
  }

  /** A client is gone, or may not use this server any more: so are its calls and wants, and the link that was its own. */
  async release (client: Client): Promise<void> {
    for (const slot of this.all) {
      for (const call of slot.link?.calls.values() ?? []) {
        if (call.exchange.client.id === client.id) call.cancel(new UpstreamError('closed', 'access was withdrawn'))
      }
      for (const uri of slot.forget(client.id)) slot.link?.request('resources/unsubscribe', JSON.stringify({ uri })).catch(() => {})
      if (slot.owner?.id === client.id || (slot.carriesNoMore(client.id) && slot.idle)) await this.#end(slot)
    }
  }

  /** Ends every link; resolves when nothing is left of them. */
  async close (): Promise<void> {
    await Promise.all(this.all.map(async (slot) => { await this.#end(slot) }))
  }

  async #end (slot: Slot): Promise<void> {
    this.#slots.delete(slot.key.key)
    slot.ended = true
    await slot.hangUp()
  }

  #evict (): void {
    let oldest: Slot | undefined
    for (const slot of this.#slots.values()) {
      if (slot !== this.base && slot.idle && (slot.link?.lastUsed ?? 0) < (oldest?.link?.lastUsed ?? Infinity)) oldest = slot
    }
    if (!oldest) {
      throw new RpcError(
        code.unavailable,
        `Server ${JSON.stringify(this.#name)} has ${limits.linksPerServer} connections, all in use; try again later`
      )
    }
    void this.#end(oldest)
  }
}
