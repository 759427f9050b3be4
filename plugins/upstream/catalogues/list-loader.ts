import { emptyCapabilityClass } from '../../../protocol/capabilities.ts'
import { RpcError } from '../../../protocol/errors.ts'
import { NonMcpClient, type Client } from '../../../protocol/exchange.ts'
import type { ListLoading } from '../../../protocol/provider.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { Placement } from '../links/placement.ts'
import type { Slot } from '../links/slot.ts'
import type { ConnectionSupervisor } from '../links/supervisor.ts'
import { UserActionRequired } from '../login/problems.ts'
import type { UpstreamCatalogues } from './catalogues.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

export interface ListLoaderDeps {
  readonly placement: Placement
  readonly catalogues: UpstreamCatalogues
  readonly supervisor: ConnectionSupervisor
  /** Whether the server is not a local process. */
  readonly isRemote: boolean
  /** Whether the gateway's own link lacks a login or values, while users' links can open with each user's own. */
  readonly waitsForUsers: () => boolean
  /** Whether the client's user is known to lack required values, so that no link can be opened for the client. */
  readonly lacksValues: (client: Client) => boolean
  /** Whether the client's user is known to lack required values, or a login of one's own. */
  readonly lacksOwn: (client: Client) => boolean
  /** Whether a user without admin rights owns the server. */
  readonly isUserOwned: () => boolean
  /** Whether a merged list for this client waits until the server's lists have been read for the first time. */
  readonly shouldWaitFor: (client: Client) => boolean
  /**
   * Waits until this upstream is closed, and returns the loader of the upstream that replaces it after a reload or a
   * changed config; undefined if none does, for example because the server was removed.
   */
  readonly successor?: () => Promise<Pick<ListLoader, 'loadLists'> | undefined>
}

/**
 * Reads a server's lists when a client requests lists that are unknown for its capability class, or outdated, and
 * decides how long the answer to that client waits.
 */
export class ListLoader {
  readonly #deps: ListLoaderDeps
  /**
   * When clients of a capability class began to wait for lists that are still unknown, in ms since the epoch, by class.
   */
  readonly #waitingSince = new BoundedMap<string, number>(upstreamLimits.classesPerServer)

  constructor (deps: ListLoaderDeps) {
    this.#deps = deps
  }

  /** Lets clients wait again for lists that were not read in time. Called when values have changed. */
  resetWaits (): void { this.#waitingSince.clear() }

  /**
   * Lets clients wait again for lists that were not read in time, and reads lists that nobody could read before: the
   * gateway's own link has no login if each user has one.
   * @param user the user who has logged in; undefined for the shared login
   */
  onLogin (user: string | undefined): void {
    this.resetWaits()
    if (user === undefined || this.#deps.catalogues.isKnown) return
    try {
      this.loadLists(new NonMcpClient('login', user, undefined, false, user), true)
    } catch (error) {
      // No connection is free. The next client that asks for the lists reads them.
      if (!(error instanceof RpcError)) throw error
    }
  }

  /**
   * Begins to read lists that are unknown or outdated.
   * @param isSingleServer whether the client's route shows this server alone; false for a merged list
   * @returns the readings for which the answer to the list request waits
   */
  loadLists (client: Client, isSingleServer: boolean): ListLoading[] {
    const { placement, catalogues, supervisor, isRemote, isUserOwned, shouldWaitFor, waitsForUsers } = this.#deps
    const key = placement.keyOf(client)
    const { capabilityClass } = key
    const own = placement.pool.find(key)
    const reading = this.#catchUp(own)
    // Merged lists do not wait for a server of a user without admin rights if its lists are known: the client gets
    // `list_changed` later.
    const isAwaited = isSingleServer || !isUserOwned()
    const changed = isAwaited ? reading : []
    const isKnown = catalogues.has(capabilityClass) || own?.catalogue !== undefined
    if ((isKnown && !catalogues.outdated.has(key, own)) || this.#deps.lacksValues(client)) return changed
    if (!isSingleServer && waitsForUsers() && this.#deps.lacksOwn(client)) return changed
    // Known lists are shown until they have been read again.
    if (isKnown && supervisor.status !== 'connected') return changed
    const maxWait = this.#maxWait(capabilityClass, isSingleServer)
    if (maxWait <= 0) return changed
    // In a merged list, clients of a new capability class get the lists of clients without capabilities. No process is
    // started to read the lists of the new class.
    const isShown = isKnown || (!isSingleServer && catalogues.has(emptyCapabilityClass))
    if (!isSingleServer && isShown && !isRemote && !own?.link && !own?.catalogue) return changed
    const slot = isSingleServer || isShown || waitsForUsers()
      ? placement.listingSlot(client)
      : placement.pool.base
    const done =
      this.#read(slot).catch(async () => { await this.#loadFromSuccessor(client, isSingleServer) }).catch(() => {})
    const isLeftOut = isShown || !(isAwaited || (!catalogues.isKnown && shouldWaitFor(client)))
    return isLeftOut ? changed : [...changed, { done, maxWait }]
  }

  /**
   * Reads the lists for a client if they are unknown or outdated and the server is connected, or can be with what the
   * user has; otherwise undefined.
   */
  loadListsForItem (client: Client): Promise<void> | undefined {
    const { placement, catalogues, supervisor, waitsForUsers, lacksOwn } = this.#deps
    const key = placement.keyOf(client)
    const own = placement.pool.find(key)
    const isKnown = catalogues.has(key.capabilityClass) || own?.catalogue !== undefined
    const canConnect = supervisor.status === 'connected' || (waitsForUsers() && !lacksOwn(client))
    return !canConnect || (isKnown && !catalogues.outdated.has(key, own))
      ? undefined
      : this.#read(placement.listingSlot(client))
  }

  /**
   * Returns the given slot if `list_changed` is expected on it as well as on the gateway's own slot; undefined if it is
   * the gateway's own, or its lists are not shown.
   */
  ownSlot (slot: Slot | undefined): Slot | undefined {
    const { placement } = this.#deps
    return slot && slot !== placement.pool.base && placement.canList(slot) ? slot : undefined
  }

  /** Reads lists again that have changed or expired. @param slot the client's slot; undefined if there is none */
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

  /** Waits for the lists of the upstream that has replaced this one, because the server was reloaded or changed. */
  async #loadFromSuccessor (client: Client, isSingleServer: boolean): Promise<void> {
    const successor = await this.#deps.successor?.()
    await Promise.all(successor?.loadLists(client, isSingleServer).map(({ done }) => done) ?? [])
  }

  /** Returns the max time that an answer waits for the unknown lists of a capability class, in ms. */
  #maxWait (capabilityClass: string, isSingleServer: boolean): number {
    const { supervisor, isRemote, waitsForUsers } = this.#deps
    if (supervisor.status === 'connecting') {
      return isSingleServer ? gatewayLimits.connectionWait : supervisor.firstAnswerBudget
    }
    if (supervisor.status !== 'connected' && !waitsForUsers()) return 0
    const since = Date.now() - (this.#waitingSince.get(capabilityClass) ?? -Infinity)
    // Once `newClass` has passed without the lists, clients do not wait for this class until `newClassRetry` has
    // passed.
    const left = since > upstreamLimits.newClassRetry ? gatewayLimits.newClass : gatewayLimits.newClass - since
    // In a merged list, clients wait only briefly for a remote server, which answers at once or not at all, and for a
    // server that started slowly before.
    const startsInTime = !isRemote && supervisor.openTime < gatewayLimits.newClass
    return isSingleServer || startsInTime ? left : Math.min(left, gatewayLimits.firstAnswerBudget)
  }

  /** Opens a slot's link and reads the lists there, if they are unknown. @throws UpstreamError */
  async #read (slot: Slot): Promise<void> {
    const { catalogues, supervisor, placement } = this.#deps
    const { capabilityClass } = slot.key
    if (Date.now() - (this.#waitingSince.get(capabilityClass) ?? -Infinity) > upstreamLimits.newClassRetry) {
      this.#waitingSince.set(capabilityClass, Date.now())
    }
    try {
      await supervisor.ensureLink(slot)
    } catch (error) {
      // The user of the next client may be logged in, so that client waits as if no client had waited before.
      if (error instanceof UserActionRequired) this.#waitingSince.delete(capabilityClass)
      throw error
    }
    const isKnown = (): boolean => catalogues.has(capabilityClass) || slot.catalogue !== undefined
    if (!isKnown() || catalogues.outdated.has(slot.key, slot)) {
      await catalogues.read(slot, slot === placement.pool.base)
    }
    // If a change makes the lists unknown again, clients wait for them again.
    if (isKnown()) this.#waitingSince.delete(capabilityClass)
  }
}
