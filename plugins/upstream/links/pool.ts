import { bridged, shareable } from '../../../protocol/capabilities.ts'
import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { limits, Semaphore, TokenBucket } from '../../base/limits/index.ts'
import type { LinkKey } from './link-key.ts'
import { Slot } from './slot.ts'

/** The processes that each owner has caused at all servers, beside those that the gateway starts for itself. */
export class Children {
  /** Those that are there, by owner. */
  readonly #counts = new Map<string, number>()
  readonly #starts = new TokenBucket({ burst: limits.childStarts.burst, perSecond: 1_000 / limits.childStarts.interval })
  readonly #launches = new Semaphore(limits.launches)

  /**
   * Waits until one more of an owner may be started, beside those that have not answered yet.
   * @returns to be called when it has answered, or has ended
   */
  async launch (owner: string): Promise<() => void> {
    const leave = await this.#launches.take(owner, false)
    const timer = setTimeout(leave, limits.launches.time).unref()
    return () => {
      clearTimeout(timer)
      leave()
    }
  }

  of (owner: string): number { return this.#counts.get(owner) ?? 0 }

  add (owner: string, change: 1 | -1): void {
    const count = this.of(owner) + change
    if (count > 0) this.#counts.set(owner, count)
    else this.#counts.delete(owner)
  }

  /** Whether an owner may cause one more to be started now. */
  mayStart (owner: string): boolean { return this.#starts.wait(owner) === 0 }

  /** Notes that one is started. */
  start (owner: string): void { this.#starts.spend(owner, 1) }
}

interface PoolOptions {
  /** The server's name. */
  readonly server: string
  /** The key of the gateway's own slot. */
  readonly base: LinkKey
  /** Each link is a process here: one owner may cause `limits.childrenPerOwner` at this server. */
  readonly isProcess: boolean
  /** Shared by all servers: one owner may cause `limits.allChildrenPerOwner` processes. */
  readonly children: Children
  /** Time after which a link that a class of clients shares, and that nobody uses, ends; in ms. */
  readonly idleTimeout: number
}

/** Max time between two looks for links that nobody uses, in ms. */
const sweepInterval = 30_000

/**
 * The slots of one server: the gateway's own, and those that clients share or have for themselves. Bounded, with a share for each owner:
 * a slot is counted to the owner of the client that it was made for first.
 */
export class Pool {
  readonly base: Slot
  readonly #options: PoolOptions
  readonly #slots = new Map<string, Slot>()
  #sweeping: NodeJS.Timeout | undefined

  constructor (options: PoolOptions) {
    this.#options = options
    this.base = new Slot(options.base, {})
    this.#slots.set(options.base.key, this.base)
  }

  get all (): Slot[] { return [...this.#slots.values()] }

  find ({ key }: LinkKey): Slot | undefined { return this.#slots.get(key) }

  /** The slot for a client's key, made if need be. @throws RpcError -32001 when all slots are taken and in use, or all of its owner's */
  take (key: LinkKey, client: Client): Slot {
    const known = this.#slots.get(key.key)
    if (known) return known
    const owner = client.owner ?? client.id
    const { server, isProcess, children } = this.#options
    // One that takes an idle one's place costs as much as any other: processes would be started and ended without end.
    if (isProcess && !children.mayStart(owner)) {
      const sentence = `You cause processes of server ${JSON.stringify(server)} faster than one caller may; try again later`
      throw new RpcError(code.unavailable, sentence, 'share')
    }
    this.#makeRoom(owner)
    if (isProcess) children.start(owner)
    // One or two, at all servers, are what a person's agents begin with: those they wait for.
    const yields = children.of(owner) >= 2
    const counted = { countedTo: owner, yields }
    const slot = key.affinity === 'session'
      ? new Slot(key, bridged(client.capabilities), { ...counted, owner: client.linksOf ?? client, user: client.user })
      : new Slot(key, shareable(client.capabilities), { ...counted, user: key.affinity === 'user' ? client.user : undefined })
    this.#slots.set(key.key, slot)
    this.#count(slot, 1)
    if (key.affinity === 'shared') this.#sweeping ??= setInterval(() => { this.#sweep() }, this.#sweepTime).unref()
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

  /** Users are gone: the links that were theirs end, with what the servers keep for them. */
  async endOf (users: ReadonlySet<string>): Promise<void> {
    await Promise.all(this.all.map(async (slot) => { if (slot.user !== undefined && users.has(slot.user)) await this.#end(slot) }))
  }

  /** Ends every link; resolves when nothing of them is left. */
  async close (): Promise<void> {
    clearInterval(this.#sweeping)
    await Promise.all(this.all.map(async (slot) => { await this.#end(slot) }))
  }

  /**
   * Waits until the link of a slot may be opened, where that starts a process for a client.
   * @returns to be called when it is open, or could not be opened
   */
  async launch (slot: Slot): Promise<() => void> {
    const { isProcess, children } = this.#options
    return isProcess && slot !== this.base ? await children.launch(slot.countedTo) : () => {}
  }

  async #end (slot: Slot): Promise<void> {
    if (this.#slots.delete(slot.key.key)) this.#count(slot, -1)
    slot.ended = true
    slot.subscriptions.clear()
    await slot.hangUp()
  }

  #count (slot: Slot, change: 1 | -1): void {
    const { isProcess, children } = this.#options
    if (!isProcess || slot === this.base) return
    children.add(slot.countedTo, change)
  }

  #ownedBy (owner: string): Slot[] { return this.all.filter((slot) => slot !== this.base && slot.countedTo === owner) }

  /** Makes room for one more slot of an owner; one that nobody uses ends for it. @throws RpcError -32001 */
  #makeRoom (owner: string): void {
    const { server, isProcess, children } = this.#options
    const most = limits.linksPerServer
    const own = this.#ownedBy(owner)
    const isCrowded = this.#slots.size >= most * 3 / 4 && own.length >= most / 10
    const hasAllHere = own.length >= (isProcess ? limits.childrenPerOwner : most)
    const hasAll = isProcess && children.of(owner) >= limits.allChildrenPerOwner
    if (hasAllHere || hasAll || isCrowded) {
      const sentence = `You use as many connections to server ${JSON.stringify(server)} as one caller may; end some, or try again later`
      this.#evict(own, sentence, 'share')
    } else if (this.#slots.size >= most) {
      this.#evict(this.all, `Server ${JSON.stringify(server)} has ${most} connections, all in use; try again later`, 'limit')
    }
  }

  /**
   * Ends the link that has been idle for longest; of an owner's own, else the one whose calls have waited for their client for longest.
   * @throws RpcError -32001 with the sentence when all are in use
   */
  #evict (candidates: readonly Slot[], sentence: string, reason: 'share' | 'limit'): void {
    let oldest: Slot | undefined
    for (const slot of candidates) {
      if (slot !== this.base && slot.idle && (slot.link?.lastUsed ?? 0) < (oldest?.link?.lastUsed ?? Infinity)) oldest = slot
    }
    if (!oldest && reason === 'share') oldest = leftUnanswered(candidates)
    if (!oldest) throw new RpcError(code.unavailable, sentence, reason)
    for (const call of oldest.link?.openCalls ?? []) call.cancel(new UpstreamError('closed', gaveWay))
    void this.#end(oldest)
  }

  get #sweepTime (): number { return Math.min(sweepInterval, this.#options.idleTimeout / 2) }

  /** Ends links that a class of clients shares once nobody uses them: a client may declare capabilities that no other has. */
  #sweep (): void {
    const before = Date.now() - this.#options.idleTimeout
    const shared = this.all.filter((slot) => slot !== this.base && slot.key.affinity === 'shared')
    for (const slot of shared) if (slot.idle && (slot.link?.lastUsed ?? slot.lastTry) < before) void this.#end(slot)
    if (shared.some(({ ended }) => !ended)) return
    clearInterval(this.#sweeping)
    this.#sweeping = undefined
  }
}

const gaveWay = 'its question was not answered, and the caller has begun other calls since, for which there were no more connections'

/** Of the slots that do nothing but wait for answers of clients, the one that has for longest. */
function leftUnanswered (slots: readonly Slot[]): Slot | undefined {
  let oldest: Slot | undefined
  let since = Date.now() - limits.leftUnanswered
  for (const slot of slots) {
    const asked = slot.askedSince
    if (asked === undefined || asked > since) continue
    oldest = slot
    since = asked
  }
  return oldest
}
