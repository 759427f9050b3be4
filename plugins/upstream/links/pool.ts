import { ownLinkCapabilities, sharedLinkCapabilities } from '../../../protocol/capabilities.ts'
import { lostServerClause, rpcCode, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { TokenBucket } from '../../base/limits/index.ts'
import type { LinkKey } from './link-key.ts'
import { Slot } from './slot.ts'
import { upstreamLimits } from '../limits.ts'

/** Counts, by owner, the stdio server processes that were started for clients. The gateway's own links do not count. */
export class ChildCounts {
  readonly #counts = new Map<string, number>()
  readonly #starts =
    new TokenBucket({ burst: upstreamLimits.childStarts.burst, perSecond: 1_000 / upstreamLimits.childStarts.interval })

  of (owner: string): number { return this.#counts.get(owner) ?? 0 }

  add (owner: string, change: 1 | -1): void {
    const count = this.of(owner) + change
    if (count > 0) this.#counts.set(owner, count)
    else this.#counts.delete(owner)
  }

  /** Whether an owner may cause one more process to be started now. */
  mayStart (owner: string): boolean { return this.#starts.waitTime(owner) === 0 }

  recordStart (owner: string): void { this.#starts.spend(owner, 1) }
}

interface PoolOptions {
  readonly server: string
  /** The key of the gateway's own slot. */
  readonly base: LinkKey
  /** Whether each link is a local process, whose number is limited per owner (`upstreamLimits.childrenPerOwner`). */
  readonly isProcess: boolean
  /** The processes of all servers, limited per owner (`upstreamLimits.allChildrenPerOwner`). */
  readonly children: ChildCounts
  /** Time without use after which a link that clients share is closed, in ms. The gateway's own link stays open. */
  readonly idleTimeout: number
}

/** Max time between two searches for unused links, in ms. */
const sweepInterval = 30_000

/**
 * The slots of one server: the gateway's own slot, and those created for clients. Their number is limited, with a share
 * for each owner; a slot counts for the owner of the client for which it was created.
 */
export class SlotPool {
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

  /**
   * Returns the slot for a key, created for this client if needed.
   * @throws RpcError -32001 if all slots, or the owner's share, are in use, or the owner starts processes too fast
   */
  take (key: LinkKey, client: Client): Slot {
    const known = this.#slots.get(key.key)
    if (known) return known
    const owner = client.owner ?? client.id
    const { server, isProcess, children } = this.#options
    // This limits the starts even if an idle slot is replaced: otherwise processes could be started and ended
    // endlessly.
    if (isProcess && !children.mayStart(owner)) {
      const sentence = `You start processes of server ${JSON.stringify(server)} faster than one caller may; try ` +
        'again later'
      throw new RpcError(rpcCode.unavailable, sentence, 'share')
    }
    this.#makeRoom(owner)
    if (isProcess) children.recordStart(owner)
    const slot = key.affinity === 'session'
      ? new Slot(
        key, ownLinkCapabilities(client.capabilities), {
          shareOwner: owner, owner: client.linkOwner ?? client, user: client.user
        }
      )
      : new Slot(key, sharedLinkCapabilities(client.capabilities), {
        shareOwner: owner, user: key.affinity === 'user' ? client.user : undefined
      })
    this.#slots.set(key.key, slot)
    this.#count(slot, 1)
    if (key.affinity === 'shared') this.#sweeping ??= setInterval(() => { this.#sweep() }, this.#sweepTime).unref()
    return slot
  }

  /** Ends the calls, subscriptions and own links of a client that is gone or has lost access to this server. */
  async release (client: Client): Promise<void> {
    for (const slot of this.all) {
      for (const call of slot.link?.openCalls ?? []) {
        if (call.client.id === client.id) call.cancel(new UpstreamError('closed', lostServerClause))
      }
      for (const uri of slot.removeClient(client.id)) slot.link?.unsubscribe(uri).catch(() => {})
      if (slot.owner?.id === client.id || (slot.stopCarrying(client.id) && slot.isIdle)) await this.#end(slot)
    }
  }

  /** Ends the slots of removed users, so that servers drop the sessions of these users. */
  async endLinksOf (users: ReadonlySet<string>): Promise<void> {
    await Promise.all(
      this.all.map(async (slot) => { if (slot.user !== undefined && users.has(slot.user)) await this.#end(slot) })
    )
  }

  async close (): Promise<void> {
    clearInterval(this.#sweeping)
    await Promise.all(this.all.map(async (slot) => { await this.#end(slot) }))
  }

  async #end (slot: Slot): Promise<void> {
    if (this.#slots.delete(slot.key.key)) this.#count(slot, -1)
    slot.hasEnded = true
    slot.subscriptions.clear()
    await slot.closeLinks()
  }

  #count (slot: Slot, change: 1 | -1): void {
    const { isProcess, children } = this.#options
    if (!isProcess || slot === this.base) return
    children.add(slot.shareOwner, change)
  }

  #ownedBy (owner: string): Slot[] { return this.all.filter((slot) => slot !== this.base && slot.shareOwner === owner) }

  /** Makes room for one more slot of an owner: if a limit is reached, ends another slot. @throws RpcError -32001 */
  #makeRoom (owner: string): void {
    const { server, isProcess, children } = this.#options
    const maxLinks = upstreamLimits.linksPerServer
    const own = this.#ownedBy(owner)
    const isCrowded = this.#slots.size >= maxLinks * 3 / 4 && own.length >= maxLinks / 10
    const hasAllHere = own.length >= (isProcess ? upstreamLimits.childrenPerOwner : maxLinks)
    const hasAll = isProcess && children.of(owner) >= upstreamLimits.allChildrenPerOwner
    if (hasAllHere || hasAll || isCrowded) {
      const sentence = `You have reached your limit of connections to server ${JSON.stringify(server)}; end some, ` +
        'or try again later'
      this.#evict(own, sentence, 'share')
    } else if (this.#slots.size >= maxLinks) {
      const sentence = `Server ${JSON.stringify(server)} has ${maxLinks} connections, all in use; try again later`
      this.#evict(this.all, sentence, 'limit')
    }
  }

  /**
   * Ends the slot that has been idle for longest. If none is idle and the owner's share is used up, cancels the calls
   * of the slot that has waited longest for its clients' answers, and ends it.
   * @param sentence the message of the error
   * @throws RpcError -32001 if no slot can be ended
   */
  #evict (candidates: readonly Slot[], sentence: string, reason: 'share' | 'limit'): void {
    // A slot without a link can be ended at no cost.
    const usedAt = ({ link }: Slot): number => link?.lastUsed ?? 0
    let oldest: Slot | undefined
    for (const slot of candidates) {
      if (slot !== this.base && slot.isIdle && (!oldest || usedAt(slot) < usedAt(oldest))) oldest = slot
    }
    if (!oldest && reason === 'share') oldest = findUnanswered(candidates)
    if (!oldest) throw new RpcError(rpcCode.unavailable, sentence, reason)
    for (const call of oldest.link?.openCalls ?? []) call.cancel(new UpstreamError('closed', evictedClause))
    void this.#end(oldest)
  }

  get #sweepTime (): number { return Math.min(sweepInterval, this.#options.idleTimeout / 2) }

  /** Ends unused slots that clients share, since a set of client capabilities may never occur again. */
  #sweep (): void {
    const before = Date.now() - this.#options.idleTimeout
    const shared = this.all.filter((slot) => slot !== this.base && slot.key.affinity === 'shared')
    for (const slot of shared) if (slot.isIdle && (slot.link?.lastUsed ?? slot.lastTry) < before) void this.#end(slot)
    if (shared.some(({ hasEnded }) => !hasEnded)) return
    clearInterval(this.#sweeping)
    this.#sweeping = undefined
  }
}

const evictedClause =
  'its request was not answered, and its connection was needed for other calls of the same caller'

/** Among the slots whose calls all wait for clients, finds the one with the longest wait, at least `leftUnanswered`. */
function findUnanswered (slots: readonly Slot[]): Slot | undefined {
  let oldest: Slot | undefined
  let since = Date.now() - upstreamLimits.leftUnanswered
  for (const slot of slots) {
    const asked = slot.awaitingClientSince
    if (asked === undefined || asked > since) continue
    oldest = slot
    since = asked
  }
  return oldest
}
