import { messageOf } from '../../../db/errors.ts'
import type { Caching } from '../../../protocol/caching.ts'
import { emptyCapabilityClass } from '../../../protocol/capabilities.ts'
import { isSameCatalogue, type Catalogue, type ListingHistory, type ListKind } from '../../../protocol/lists.ts'
import { ItemClaims, gatewayLimits } from '../../gateway/index.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { Slot } from '../links/slot.ts'
import { toCacheText, parseCacheText, type CachedCatalogues } from './cache-text.ts'
import { OmissionLog } from '../status-log.ts'
import { CatalogueFreshness } from './freshness.ts'
import { OutdatedLists } from './outdated.ts'
import { readCatalogue, UndeclaredToolsReader } from './read-catalogue.ts'
import { ReadingPace } from './reading-pace.ts'
import type { CataloguesDeps } from './deps.ts'
import { catalogueSize, fitCatalogue, fitOther, shareCatalogue, totalSize } from './shares.ts'
import { upstreamLimits } from '../limits.ts'

/** Max capability classes whose catalogues are stored on disk. */
const maxStoredClasses = 8

/** The catalogues (all lists) of one upstream, by class of client capabilities. Slots hold those of single clients. */
export class UpstreamCatalogues {
  readonly outdated: OutdatedLists
  readonly #deps: CataloguesDeps
  readonly #byClass = new BoundedMap<string, Catalogue>(upstreamLimits.classesPerServer, {
    isEvictable: (capabilityClass) => capabilityClass !== emptyCapabilityClass
  })

  readonly #reading = new Map<Slot, Promise<void>>()
  /** Scheduled readings; `isChanged`: whether the known lists may be outdated (false for a retry after a failure). */
  readonly #due = new Map<Slot, { timer: NodeJS.Timeout, isChanged: boolean }>()
  /** Scheduled readings that are in progress, with their start time (ms since the epoch). */
  readonly #refreshing = new Map<Slot, { since: number, done: Promise<void> }>()
  readonly #paces = new WeakMap<Slot, ReadingPace>()
  readonly #freshness = new CatalogueFreshness()
  readonly #undeclared = new UndeclaredToolsReader()
  #claims = new ItemClaims()
  /** Settles when the stored catalogues have been restored. */
  #restoring: Promise<unknown> | undefined
  #known = false
  #omissions: readonly string[] = []
  #closed = false

  constructor (deps: CataloguesDeps) {
    this.#deps = deps
    this.outdated = new OutdatedLists(this, deps.isPerUser === true)
  }

  /** Whether a catalogue has been read, in this run or an earlier one. If not, the server may never have answered. */
  get isKnown (): boolean { return this.#known }

  /** Sentences about the items that the last reading on the gateway's own link omitted. */
  get omissions (): readonly string[] { return this.#omissions }

  /** The times at which each item was first listed. */
  get claims (): ListingHistory { return this.#claims }

  /** The catalogues of all classes. Classes may share one. */
  get all (): Catalogue[] { return [...new Set(this.#byClass.values())] }
  /** The capability classes whose lists are known. */
  get classes (): string[] { return [...this.#byClass.keys()] }

  /** Whether the lists for a capability class are known. */
  has (capabilityClass: string): boolean { return this.#byClass.has(capabilityClass) }

  /**
   * Returns the catalogue for a client: that of its own slot, or else of its capability class, or else of clients
   * without capabilities.
   */
  of (slot: Slot | undefined, capabilityClass: string): Catalogue | undefined {
    return slot?.catalogue ?? this.#byClass.get(capabilityClass) ?? this.#byClass.get(emptyCapabilityClass)
  }

  /** Takes over the former upstream's claims if the owner is the same, and its lists if the source is the same. */
  takeOver (former: UpstreamCatalogues): void {
    if (former.#deps.owner === this.#deps.owner) this.#claims = former.#claims
    if (former.#deps.sourceId !== this.#deps.sourceId) { this.#claims.reconfigure(); return }
    this.#known = former.#known
    this.#omissions = former.#omissions
    for (const [capabilityClass, catalogue] of former.#byClass) this.#byClass.set(capabilityClass, catalogue)
    this.reportSize()
  }

  /**
   * Restores the catalogues that the last run stored, unless newer ones are known. Lists that are read in the meantime
   * are published afterwards: otherwise their items would be recorded as listed for the first time.
   */
  async restoreFrom (read: () => AsyncIterable<string>): Promise<void> {
    if (this.#known) return
    this.#restoring = this.#restore(read()).finally(() => { this.#restoring = undefined })
    await this.#restoring
  }

  async #restore (text: AsyncIterable<string>): Promise<void> {
    let cached: CachedCatalogues | undefined
    try {
      cached = await parseCacheText(text, this.#deps.sourceId, this.#deps.owner)
    } catch {
      this.#deps.warn('the cached catalogue cannot be read and is ignored')
    }
    const usable = cached?.isSameSource === true ? cached.catalogues : []
    for (const catalogue of usable) await this.#deps.examine(catalogue, undefined)
    if (!cached || this.#known || this.#closed) return
    const { isSameSource, catalogues, claims } = cached
    // If the source has changed, only the claims are used.
    if (isSameSource) {
      this.#known = true
      for (const catalogue of catalogues) this.#byClass.set(catalogue.capabilityClass, catalogue)
      this.reportSize()
    }
    if (this.#claims.isKnown) this.#recordClaims()
    else this.#claims.restore(claims, catalogues)
    if (!isSameSource || catalogues.length === 0) this.#claims.reconfigure()
  }

  /** Stores catalogues of up to `maxStoredClasses` capability classes, and the claims, for the next run. */
  store (): void {
    const { sourceId, owner, allowance } = this.#deps
    allowance.store(toCacheText(sourceId, owner, this.#claims, this.all.slice(0, maxStoredClasses)))
  }

  /** Records which items are listed now. @returns whether any item is listed for the first time */
  #recordClaims (): boolean {
    return !this.#closed && this.#claims.record([...this.all, ...this.#deps.ownCatalogues()])
  }

  /** Reads the lists on a slot's link, and publishes changes. @param isBase whether it is the gateway's own slot */
  read (slot: Slot, isBase: boolean): Promise<void> {
    const running = this.#reading.get(slot)
    if (running) return running
    clearTimeout(this.#due.get(slot)?.timer)
    this.#due.delete(slot)
    const reading = this.#read(slot, isBase).finally(() => { this.#reading.delete(slot) })
    this.#reading.set(slot, reading)
    return reading
  }

  /** Whether lists were read on a slot. */
  hasRead (slot: Slot): boolean { return this.#paces.has(slot) }
  /** Drops the own catalogues of slots, whose clients get the catalogue of their class again. */
  forgetOwn (slots: readonly Slot[]): void {
    for (const slot of slots) {
      this.#paces.delete(slot)
      this.#publishTo(slot, undefined)
    }
  }

  /** Handles a `list_changed` notification: schedules a reading of the lists, one for a burst of notifications. */
  refresh (slot: Slot, isBase: boolean): void { this.#readIn(this.#paceOf(slot).changeDelay, slot, isBase, true) }

  /**
   * Begins to read a slot's lists for a client's request, if a `list_changed` is pending or a list has expired.
   * @param isAlone whether this slot reads the lists of its capability class, rather than the gateway's slot
   * @returns the reading in progress and its start time (ms since the epoch); undefined if there is none
   */
  catchUp (slot: Slot, isBase: boolean, isAlone = isBase): { since: number, done: Promise<void> } | undefined {
    if (this.#due.get(slot)?.isChanged === true || this.#isStale(slot, isAlone)) this.#readAgain(slot, isBase)
    return this.#refreshing.get(slot)
  }

  /**
   * Returns how long a list of a catalogue may still be cached; undefined if the server does not state it.
   * @param slot the slot on whose link the server announces changes of the list
   */
  caching (catalogue: Catalogue, kind: ListKind, slot: Slot): Caching | undefined {
    const isChanging = this.#due.get(slot)?.isChanged === true || this.#refreshing.has(slot)
    return this.#freshness.caching(catalogue, kind, isChanging)
  }

  /** Whether a slot's lists have expired and can be read now. If so, records the time as that of their renewal. */
  #isStale (slot: Slot, isAlone: boolean): boolean {
    if (!slot.link || this.#reading.has(slot) || this.#refreshing.has(slot) || this.#due.has(slot)) return false
    const catalogue = isAlone ? this.of(slot, slot.key.capabilityClass) : slot.catalogue
    const now = Date.now()
    const pace = this.#paceOf(slot)
    const isFresh = this.#freshness.expiry(catalogue, slot.link.identity.capabilities) > now
    if (isFresh || now - pace.renewedAt < gatewayLimits.freshLists.least) return false
    pace.renewedAt = now
    return true
  }

  close (): void {
    this.#closed = true
    this.#deps.allowance.setHeldSize(0)
    for (const { timer } of this.#due.values()) clearTimeout(timer)
    this.#due.clear()
  }

  /** Reports the memory that the catalogues use. Call it whenever any were read, taken over, restored or removed. */
  reportSize (): void { if (!this.#closed) this.#deps.allowance.setHeldSize(this.#sizeBeside(undefined)) }

  /** Returns the total size of the catalogues, in bytes of memory. @param excluded a catalogue that does not count */
  #sizeBeside (excluded: Catalogue | undefined): number {
    return totalSize([...this.#byClass.values(), ...this.#deps.ownCatalogues()], excluded)
  }

  /** The lists of clients without capabilities. */
  get #base (): Catalogue | undefined { return this.#byClass.get(emptyCapabilityClass) }

  /** Limits the size of a new catalogue. @param former the catalogue that it replaces */
  #fitting (catalogue: Catalogue, former: Catalogue | undefined, isBase: boolean): Catalogue {
    const size = this.#sizeBeside(former)
    const base = isBase ? undefined : this.#base
    const others = base === undefined || former === base ? size : size - catalogueSize(base)
    const kept = fitOther(catalogue, base, others, this.#deps.warn)
    return fitCatalogue(kept, this.#deps.allowance.remainingSize() - size, this.#deps.warn)
  }

  #paceOf (slot: Slot): ReadingPace {
    const pace = this.#paces.get(slot) ?? new ReadingPace()
    this.#paces.set(slot, pace)
    return pace
  }

  #readIn (time: number, slot: Slot, isBase: boolean, isChanged: boolean): void {
    if (this.#due.has(slot)) return
    this.#due.set(slot, { timer: setTimeout(() => { this.#readAgain(slot, isBase) }, time).unref(), isChanged })
  }

  #readAgain (slot: Slot, isBase: boolean): void {
    clearTimeout(this.#due.get(slot)?.timer)
    this.#due.delete(slot)
    const done = this.#readAfterCurrent(slot, isBase).finally(() => {
      if (this.#refreshing.get(slot)?.done === done) this.#refreshing.delete(slot)
    })
    this.#refreshing.set(slot, { since: Date.now(), done })
  }

  /** Reads the lists once the reading in progress, which may have begun before the change, has ended. */
  async #readAfterCurrent (slot: Slot, isBase: boolean): Promise<void> {
    await this.#reading.get(slot)?.catch(() => {})
    try {
      await this.read(slot, isBase)
    } catch (error) {
      this.#deps.warn(`its lists could not be reloaded: ${messageOf(error)}`)
    }
  }

  async #read (slot: Slot, isBase: boolean): Promise<void> {
    const { link, key: { capabilityClass } } = slot
    if (!link) return
    const pace = this.#paceOf(slot)
    const former = slot.catalogue ?? this.#byClass.get(capabilityClass)
    const wait = this.#deps.allowance.waitTime(former === undefined)
    if (wait > 0) { this.#readIn(wait, slot, isBase, true); return }
    const maxSize = this.#deps.allowance.remainingSize() - this.#sizeBeside(former)
    const omissions = new OmissionLog(this.#deps.warn)
    const [similar = former ?? this.#base] = former || this.#base ? [] : this.#deps.ownCatalogues()
    const { catalogue: read, isComplete, fresh } =
      await readCatalogue(link, former, similar, maxSize, pace.timeout, this.#undeclared, omissions.add)
    omissions.end()
    if (isBase) this.#omissions = omissions.sentences
    this.#deps.allowance.recordRead(catalogueSize(read))
    if (this.#restoring) await this.#restoring
    const known = isBase ? read : shareCatalogue(read, this.#base)
    if (known !== this.#base) await this.#deps.examine(known, slot.user)
    const before = this.#byClass.get(capabilityClass)
    const catalogue = this.#fitting(known, before, isBase)
    const isSame = before !== undefined && isSameCatalogue(before, catalogue)
    pace.recordReading(isComplete, isSame)
    if (!isComplete) this.#readIn(pace.retryDelay, slot, isBase, false)
    // Lists that a server declares as private, and lists read with one user's values, are not shown to other users.
    const isPrivate = slot.user !== undefined &&
      (this.#deps.isPerUser === true || Object.values(fresh.lists).some(({ isPublic }) => !isPublic))
    const isKnown = before !== undefined && !this.outdated.hasClass(capabilityClass)
    const isOwn = slot.key.affinity !== 'shared' && (isKnown || isPrivate)
    const shown = isSame ? before : isOwn ? this.#fitting(known, slot.catalogue, isBase) : catalogue
    if (isBase || shown !== this.#base) this.#freshness.set(shown, fresh)
    if (!isOwn) this.outdated.delete(capabilityClass)
    if (isOwn) this.#publishTo(slot, isSame ? undefined : shown)
    else if (!isSame) this.#publish(shown, slot, isBase && before !== undefined)
    // The lists of the gateway's own link are unchanged, so those of other classes are assumed to be unchanged, too.
    else if (isBase) this.#freshness.renew(this.all, fresh.learnedAt)
  }

  /** Publishes a change to one client only. @param own its catalogue; undefined if the class has the same one */
  #publishTo (slot: Slot, own: Catalogue | undefined): void {
    if (own === undefined && slot.catalogue === undefined) return
    slot.catalogue = own
    this.#known = true
    this.reportSize()
    if (this.#recordClaims()) this.store()
    this.#deps.onChange()
  }

  /** Publishes a change to all clients of a class. @param forgetOthers whether to drop other classes' catalogues */
  #publish (catalogue: Catalogue, slot: Slot, forgetOthers: boolean): void {
    const { capabilityClass } = slot.key
    const isShown = this.of(slot, capabilityClass) === catalogue
    slot.catalogue = undefined
    if (forgetOthers) this.#byClass.clear()
    this.#byClass.set(capabilityClass, catalogue)
    if (isShown) return
    this.#known = true
    this.reportSize()
    this.#recordClaims()
    this.store()
    this.#deps.onChange()
  }
}
