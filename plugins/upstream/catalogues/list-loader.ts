import { emptyCapabilityClass } from '../../../protocol/capabilities.ts'
import type { Client } from '../../../protocol/exchange.ts'
import type { ListLoading } from '../../../protocol/provider.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { Placement } from '../links/placement.ts'
import type { Slot } from '../links/slot.ts'
import type { ConnectionSupervisor } from '../links/supervisor.ts'
import { UserActionRequired } from '../login/problems.ts'
import type { Catalogues } from './catalogues.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

interface ListLoaderDeps {
  readonly placement: Placement
  readonly catalogues: Catalogues
  readonly supervisor: ConnectionSupervisor
  /** Whether the server is not a local process. */
  readonly isRemote: boolean
  /** Whether only the gateway's link lacks a login or values: a user's link is opened with that user's. */
  readonly waitsForUsers: () => boolean
  /** Whether the client's user is known to lack required values. Without them no link is opened. */
  readonly lacksValues: (client: Client) => boolean
  /** Whether a user without admin rights owns the server. */
  readonly isUserOwned: () => boolean
  /** Whether a merged list for this client waits for the server's first lists. */
  readonly shouldWaitFor: (client: Client) => boolean
}

/**
 * Reads a server's lists when a client asks for lists that are not known for its capability class, and decides how long
 * the answer to that client waits for the reading.
 */
export class ListLoader {
  readonly #deps: ListLoaderDeps
  /** When clients of each capability class began to wait for lists that are still missing, in ms since the epoch. */
  readonly #waitingSince = new BoundedMap<string, number>(upstreamLimits.classesPerServer)

  constructor (deps: ListLoaderDeps) {
    this.#deps = deps
  }

  /** Lets clients wait again for lists that were not read in time, because somebody has logged in at the server. */
  resetWaits (): void { this.#waitingSince.clear() }

  /**
   * The readings that the answer to a list request waits for; none when the lists are known.
   * @param isSingleServer whether the route shows this server alone; false: a merged list
   */
  loadLists (client: Client, isSingleServer: boolean): ListLoading[] {
    const { placement, catalogues, isRemote, isUserOwned, shouldWaitFor } = this.#deps
    const key = placement.keyOf(client)
    const { capabilityClass } = key
    const own = placement.pool.find(key)
    const reading = this.#catchUp(own)
    // Merged lists do not wait for a user's server whose lists are known: `list_changed` follows.
    const isAwaited = isSingleServer || !isUserOwned()
    const changed = isAwaited ? reading : []
    if (catalogues.has(capabilityClass) || own?.catalogue || this.#deps.lacksValues(client)) return changed
    const maxWait = this.#maxWait(capabilityClass, isSingleServer)
    if (maxWait <= 0) return changed
    // In a merged list, a new capability class gets the lists of clients without capabilities, and no process is
    // started to read its own.
    const isShown = !isSingleServer && catalogues.has(emptyCapabilityClass)
    if (isShown && !isRemote && !own?.link) return changed
    const slot = isSingleServer || isShown ? placement.listingSlot(client) : placement.pool.base
    const done = this.#read(slot).catch(() => {})
    const isLeftOut = isShown || !(isAwaited || (!catalogues.isKnown && shouldWaitFor(client)))
    return isLeftOut ? changed : [...changed, { done, maxWait }]
  }

  /** Reads the lists for a client if they are unknown and the server is connected. */
  loadListsForItem (client: Client): Promise<void> | undefined {
    const { placement, catalogues, supervisor } = this.#deps
    const { capabilityClass } = placement.keyOf(client)
    const isKnown = catalogues.has(capabilityClass) || placement.find(client)?.catalogue !== undefined
    return supervisor.status !== 'connected' || isKnown ? undefined : this.#read(placement.listingSlot(client))
  }

  /** The client's own slot, if list changes are announced there as well as on the gateway's slot. */
  ownSlot (slot: Slot | undefined): Slot | undefined {
    const { placement } = this.#deps
    return slot && slot !== placement.pool.base && placement.canList(slot) ? slot : undefined
  }

  /** Reads changed or expired lists again. @param slot the client's slot, if there is one */
  #catchUp (slot: Slot | undefined): ListLoading[] {
    const { base } = this.#deps.placement.pool
    const own = this.ownSlot(slot)
    const readings: ListLoading[] = []
    for (const each of own ? [own, base] : [base]) {
      const reading = this.#deps.catalogues.catchUp(each, each === base, each === base || !base.link)
      const maxWait = reading ? gatewayLimits.firstAnswerBudget + reading.since - Date.now() : 0
      if (reading && maxWait > 0) readings.push({ done: reading.done, maxWait })
    }
    return readings
  }

  /** Max wait for the lists of a class of clients, in ms. */
  #maxWait (capabilityClass: string, isSingleServer: boolean): number {
    const { supervisor, isRemote, waitsForUsers } = this.#deps
    if (supervisor.status === 'connecting') {
      return isSingleServer ? gatewayLimits.connectionWait : supervisor.firstAnswerBudget
    }
    if (supervisor.status !== 'connected' && !waitsForUsers()) return 0
    const since = Date.now() - (this.#waitingSince.get(capabilityClass) ?? -Infinity)
    // After the first wait timed out, no client waits for this class again until `newClassRetry` has passed.
    const left = since > upstreamLimits.newClassRetry ? gatewayLimits.newClass : gatewayLimits.newClass - since
    // In a merged list, clients wait only briefly for a server that needs no process (it answers at once, or hangs) or
    // that is known to be slow.
    const startsInTime = !isRemote && supervisor.openTime < gatewayLimits.newClass
    return isSingleServer || startsInTime ? left : Math.min(left, gatewayLimits.firstAnswerBudget)
  }

  /** Reads the lists on a slot. @throws UpstreamError */
  async #read (slot: Slot): Promise<void> {
    const { catalogues, supervisor, placement } = this.#deps
    const { capabilityClass } = slot.key
    if (Date.now() - (this.#waitingSince.get(capabilityClass) ?? -Infinity) > upstreamLimits.newClassRetry) {
      this.#waitingSince.set(capabilityClass, Date.now())
    }
    try {
      await supervisor.ensureLink(slot)
    } catch (error) {
      // The next client may have logged in, so it waits as if no client had waited before.
      if (error instanceof UserActionRequired) this.#waitingSince.delete(capabilityClass)
      throw error
    }
    const isKnown = (): boolean => catalogues.has(capabilityClass) || slot.catalogue !== undefined
    if (!isKnown()) await catalogues.read(slot, slot === placement.pool.base)
    // The lists are known. If a change makes them unknown again, clients wait for them again.
    if (isKnown()) this.#waitingSince.delete(capabilityClass)
  }
}
