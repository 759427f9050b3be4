import { plainClass } from '../../../protocol/capabilities.ts'
import type { Client } from '../../../protocol/exchange.ts'
import type { Learning } from '../../../protocol/provider.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { Placement } from '../links/placement.ts'
import type { Slot } from '../links/slot.ts'
import type { ConnectionSupervisor } from '../links/supervisor.ts'
import { LoginRequired } from '../login/problems.ts'
import type { Catalogues } from './catalogues.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

interface LearnerDeps {
  readonly placement: Placement
  readonly catalogues: Catalogues
  readonly supervisor: ConnectionSupervisor
  readonly remote: boolean
  /** Only the gateway's link lacks a login: a user's link is opened with the login of the user. */
  readonly waitsForUsers: () => boolean
  /** The server counts to a user without admin rights. */
  readonly isUsers: () => boolean
  /** A merged list waits for the server's first lists. */
  readonly isWaitedFor: (client: Client) => boolean
}

/**
 * Reads what a server lists to clients of which that is not known, and says how long their lists are to wait for it.
 */
export class ListLearner {
  readonly #deps: LearnerDeps
  /** When the lists of each capability class were last asked for, in ms since the epoch. */
  readonly #asked = new BoundedMap<string, number>(upstreamLimits.classesPerServer)

  constructor (deps: LearnerDeps) {
    this.#deps = deps
  }

  /** Nobody is known to have waited for too long: a login was added. */
  forget (): void { this.#asked.clear() }

  /** @param only the client asks for this server alone, and not on a merged route */
  learn (client: Client, only: boolean): Learning[] {
    const { placement, catalogues, remote, isUsers, isWaitedFor } = this.#deps
    const key = placement.keyOf(client)
    const { capabilityClass } = key
    const own = placement.pool.find(key)
    const reading = this.#catchUp(own)
    // On merged routes, lists do not wait for a user's server that is known: `list_changed` follows.
    const isAwaited = only || !isUsers()
    const changed = isAwaited ? reading : []
    if (catalogues.has(capabilityClass) || own?.catalogue) return changed
    const budget = this.#budget(capabilityClass, only)
    if (budget <= 0) return changed
    // On merged routes, a new class of clients is shown what others are shown, and no process is started for its lists.
    const isShown = !only && catalogues.has(plainClass)
    if (isShown && !remote && !own?.link) return changed
    const done = this.#read(only || isShown ? placement.listing(client) : placement.pool.base).catch(() => {})
    const isLeftOut = isShown || !(isAwaited || (!catalogues.known && isWaitedFor(client)))
    return isLeftOut ? changed : [...changed, { done, budget }]
  }

  /** Reads what is listed to a client, where that is not known and the server is connected. */
  readFor (client: Client): Promise<void> | undefined {
    const { placement, catalogues, supervisor } = this.#deps
    const { capabilityClass } = placement.keyOf(client)
    const isKnown = catalogues.has(capabilityClass) || placement.find(client)?.catalogue !== undefined
    return supervisor.status !== 'connected' || isKnown ? undefined : this.#read(placement.listing(client))
  }

  /** A client's slot, if changes are heard on it as well as on the gateway's. */
  ownSlot (slot: Slot | undefined): Slot | undefined {
    const { placement } = this.#deps
    return slot && slot !== placement.pool.base && placement.lists(slot) ? slot : undefined
  }

  /** Lists that changed or expired are being read again. @param slot the client's, if there is one */
  #catchUp (slot: Slot | undefined): Learning[] {
    const { base } = this.#deps.placement.pool
    const own = this.ownSlot(slot)
    const readings: Learning[] = []
    for (const each of own ? [own, base] : [base]) {
      const reading = this.#deps.catalogues.catchUp(each, each === base, each === base || !base.link)
      const budget = reading ? gatewayLimits.firstAnswerBudget + reading.since - Date.now() : 0
      if (reading && budget > 0) readings.push({ done: reading.done, budget })
    }
    return readings
  }

  /** How long to wait for what is listed to a class of clients, in ms. */
  #budget (capabilityClass: string, only: boolean): number {
    const { supervisor, remote, waitsForUsers } = this.#deps
    if (supervisor.status === 'connecting') return only ? gatewayLimits.connectionWait : supervisor.firstAnswerBudget
    if (supervisor.status !== 'connected' && !waitsForUsers()) return 0
    const since = Date.now() - (this.#asked.get(capabilityClass) ?? -Infinity)
    // Once that has taken too long, nobody waits for it again for a while.
    const left = since > upstreamLimits.newClassRetry ? gatewayLimits.newClass : gatewayLimits.newClass - since
    // Among several, a server that needs no process (it answers at once, or is stuck) or is known to be slow gets
    // little time.
    const startsInTime = !remote && supervisor.openTime < gatewayLimits.newClass
    return only || startsInTime ? left : Math.min(left, gatewayLimits.firstAnswerBudget)
  }

  /** Reads what is listed on a slot. @throws UpstreamError */
  async #read (slot: Slot): Promise<void> {
    const { catalogues, supervisor, placement } = this.#deps
    const { capabilityClass } = slot.key
    if (Date.now() - (this.#asked.get(capabilityClass) ?? -Infinity) > upstreamLimits.newClassRetry) {
      this.#asked.set(capabilityClass, Date.now())
    }
    try {
      await supervisor.ready(slot)
    } catch (error) {
      // The next client may have logged in, and waits as if nobody had asked.
      if (error instanceof LoginRequired) this.#asked.delete(capabilityClass)
      throw error
    }
    const isKnown = (): boolean => catalogues.has(capabilityClass) || slot.catalogue !== undefined
    if (!isKnown()) await catalogues.read(slot, slot === placement.pool.base)
    // The server answers in time: once a change has made its lists unknown, they are waited for again.
    if (isKnown()) this.#asked.delete(capabilityClass)
  }
}
