import { bridged, shareable } from '../../../protocol/capabilities.ts'
import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { limits } from '../../limits/index.ts'
import type { LinkKey } from './link-key.ts'
import { Slot } from './slot.ts'

/** The slots of one server: the gateway's own, and those that clients share or have for themselves. Bounded. */
export class Pool {
  readonly base: Slot
  readonly #server: string
  readonly #slots = new Map<string, Slot>()

  /** @param server its name @param base the key of the gateway's own slot */
  constructor (server: string, base: LinkKey) {
    this.#server = server
    this.base = new Slot(base, {}, undefined)
    this.#slots.set(base.key, this.base)
  }

  get all (): Slot[] { return [...this.#slots.values()] }

  find ({ key }: LinkKey): Slot | undefined { return this.#slots.get(key) }

  /** The slot for a client's key, made if need be. @throws RpcError -32001 when all slots are taken and in use */
  take (key: LinkKey, client: Client): Slot {
    const known = this.#slots.get(key.key)
    if (known) return known
    if (this.#slots.size >= limits.linksPerServer) this.#evict()
    const slot = key.affinity === 'session'
      ? new Slot(key, bridged(client.capabilities), client)
      : new Slot(key, shareable(client.capabilities), undefined)
    this.#slots.set(key.key, slot)
    return slot
  }

  /** A client is gone, or may not use this server any more: its calls, subscriptions and own links end. */
  async release (client: Client): Promise<void> {
    for (const slot of this.all) {
      for (const call of slot.link?.openCalls ?? []) {
        if (call.client.id === client.id) call.cancel(new UpstreamError('closed', 'access was withdrawn'))
      }
      for (const uri of slot.forget(client.id)) slot.link?.unsubscribe(uri).catch(() => {})
      if (slot.owner?.id === client.id || (slot.carriesNoMore(client.id) && slot.idle)) await this.#end(slot)
    }
  }

  /** Ends every link; resolves when nothing of them is left. */
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
      const sentence = `Server ${JSON.stringify(this.#server)} has ${limits.linksPerServer} connections, all in use; try again later`
      throw new RpcError(code.unavailable, sentence, 'limit')
    }
    void this.#end(oldest)
  }
}
