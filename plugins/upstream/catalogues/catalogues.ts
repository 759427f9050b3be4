import { messageOf } from '../../../db/errors.ts'
import { remainingFreshness, staleAt, type Caching, type Freshness } from '../../../protocol/caching.ts'
import { emptyCapabilityClass } from '../../../protocol/capabilities.ts'
import { isSameCatalogue, type Catalogue, type ListingHistory, type ListKind } from '../../../protocol/lists.ts'
import { Claims, gatewayLimits } from '../../gateway/index.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { Slot } from '../links/slot.ts'
import { cacheText, parseCacheText, type KeptCatalogues } from './cache-text.ts'
import { OmissionLog } from '../notes.ts'
import { readCatalogue, UndeclaredTools } from './read-catalogue.ts'
import { ReadingPace } from './reading-pace.ts'
import { type CatalogueAllowance, catalogueSize, fitCatalogue } from './shares.ts'
import { upstreamLimits } from '../limits.ts'

interface CataloguesDeps {
  /** Identifies the source of the catalogues: cached ones of another target are not shown. */
  target: string
  /** The server's owner: claims of another owner's server are not used. */
  owner: string
  changed: () => void
  allowance: CatalogueAllowance
  /** Whether each user gives values of his own: what a user's link lists is for that user alone. */
  isPerUser?: boolean
  /** Called with each catalogue before any of it is listed. Never rejects. */
  examine: (catalogue: Catalogue, user: string | undefined) => Promise<void>
  /** The catalogues of single clients' links that differ from those of their class. */
  ownCatalogues: () => Iterable<Catalogue>
  warn: (sentence: string) => void
}

/** Max capability classes that are stored on disk. */
const maxStoredClasses = 8
/** The lists of one upstream, by capability class, and by client where they differ from the class. */
export class Catalogues {
  readonly #deps: CataloguesDeps
  readonly #byClass = new BoundedMap<string, Catalogue>(upstreamLimits.classesPerServer, {
    isEvictable: (capabilityClass) => capabilityClass !== emptyCapabilityClass
  })

  readonly #reading = new Map<Slot, Promise<void>>()
  /** Scheduled readings; `changed`: after a `list_changed`, rather than after a failure. */
  readonly #due = new Map<Slot, { timer: NodeJS.Timeout, changed: boolean }>()
  /** Readings after a `list_changed` that are in progress, and since when (ms since the epoch). */
  readonly #refreshing = new Map<Slot, { since: number, done: Promise<void> }>()
  readonly #paces = new WeakMap<Slot, ReadingPace>()
  /** The freshness of each catalogue: how long it may be cached according to its server, and since when. */
  readonly #fresh = new WeakMap<Catalogue, Freshness>()
  readonly #undeclared = new UndeclaredTools()
  #claims = new Claims()
  /** Settles when the stored catalogues have been restored. */
  #restoring: Promise<unknown> | undefined
  #known = false
  /** The first sentences about what the last reading of the gateway's link omitted. */
  #leftOut: readonly string[] = []
  #closed = false

  constructor (deps: CataloguesDeps) {
    this.#deps = deps
  }

  /** Whether a catalogue has ever been read, in this run or the last one. If not, the server may never answer. */
  get isKnown (): boolean { return this.#known }

  /** The first sentences about what is omitted from its lists. */
  get omissions (): readonly string[] { return this.#leftOut }

  /** When its items were first listed. */
  get claims (): ListingHistory { return this.#claims }

  get all (): Catalogue[] { return [...this.#byClass.values()] }

  /** Whether the lists for this class are known. */
  has (capabilityClass: string): boolean { return this.#byClass.has(capabilityClass) }

  /** The catalogue for a client: that of its link, else of its class, else of clients without capabilities. */
  of (slot: Slot | undefined, capabilityClass: string): Catalogue | undefined {
    return slot?.catalogue ?? this.#byClass.get(capabilityClass) ?? this.#byClass.get(emptyCapabilityClass)
  }

  /** Takes over the claims of this server's former upstream, and its lists if its target was the same. */
  takeOver (former: Catalogues): void {
    if (former.#deps.owner === this.#deps.owner) this.#claims = former.#claims
    if (former.#deps.target !== this.#deps.target) { this.#claims.reconfigure(); return }
    this.#known = former.#known
    this.#leftOut = former.#leftOut
    for (const [capabilityClass, catalogue] of former.#byClass) this.#byClass.set(capabilityClass, catalogue)
    this.recount()
  }

  /**
   * Restores what was stored in the last run, unless something newer is known. Lists read meanwhile are published
   * afterwards: otherwise their items would count as listed first.
   */
  async restoreFrom (read: () => AsyncIterable<string>): Promise<void> {
    if (this.#known) return
    const restoring = this.#restoring = this.#restore(read()).finally(() => {
      if (this.#restoring === restoring) this.#restoring = undefined
    })
    await restoring
  }

  async #restore (text: AsyncIterable<string>): Promise<void> {
    let kept: KeptCatalogues | undefined
    try {
      kept = await parseCacheText(text, this.#deps.target, this.#deps.owner)
    } catch {
      this.#deps.warn('the cached catalogue cannot be read and is ignored')
    }
    for (const catalogue of kept?.isSame === true ? kept.catalogues : []) await this.#deps.examine(catalogue, undefined)
    if (!kept || this.#known || this.#closed) return
    const { isSame, catalogues, claims } = kept
    // From another URL or command, only the claims to names are used.
    if (isSame) {
      this.#known = true
      for (const catalogue of catalogues) this.#byClass.set(catalogue.capabilityClass, catalogue)
      this.recount()
    }
    if (this.#claims.isKnown) this.#note()
    else this.#claims.restore(claims, catalogues)
    if (!isSame || catalogues.length === 0) this.#claims.reconfigure()
  }

  store (): void {
    const { target, owner, allowance } = this.#deps
    allowance.store(cacheText(target, owner, this.#claims, this.all.slice(0, maxStoredClasses)))
  }

  /** Records what is listed now. @returns whether any item is listed for the first time */
  #note (): boolean { return !this.#closed && this.#claims.record([...this.all, ...this.#deps.ownCatalogues()]) }

  /** Reads the lists of a slot's link, and publishes changes. @param base whether it is the gateway's slot */
  read (slot: Slot, base: boolean): Promise<void> {
    const running = this.#reading.get(slot)
    if (running) return running
    const reading = this.#read(slot, base).finally(() => { this.#reading.delete(slot) })
    this.#reading.set(slot, reading)
    return reading
  }

  /** Handles `list_changed`: reads the lists again, once for a burst. */
  refresh (slot: Slot, base: boolean): void {
    const pace = this.#paceOf(slot)
    this.#readIn(pace.wait, slot, base, true)
  }

  /**
   * Reads at once if a `list_changed` is waiting or a list has expired, because a client asks for it.
   * @param isAlone whether no other slot reads the lists of its class
   * @returns the reading, and since when it has been in progress (ms since the epoch); undefined: nothing has changed
   */
  catchUp (slot: Slot, base: boolean, isAlone = base): { since: number, done: Promise<void> } | undefined {
    if (this.#due.get(slot)?.changed === true || this.#isStale(slot, isAlone)) this.#readAgain(slot, base)
    return this.#refreshing.get(slot)
  }

  /**
   * How long one list of a catalogue may be cached from now on; undefined: its server does not state it.
   * @param slot the slot on which its changes are announced
   */
  caching (catalogue: Catalogue, kind: ListKind, slot: Slot): Caching | undefined {
    const fresh = this.#fresh.get(catalogue)
    const said = fresh?.lists[kind]
    if (!fresh || !said) return undefined
    const isChanging = this.#due.get(slot)?.changed === true || this.#refreshing.has(slot)
    return {
      ...said,
      ttlMs: isChanging ? 0 : remainingFreshness(said.ttlMs, fresh.learnedAt, Date.now(), gatewayLimits.freshLists)
    }
  }

  /** Whether a slot's lists have expired, and can be read now. */
  #isStale (slot: Slot, isAlone: boolean): boolean {
    const catalogue = isAlone ? this.of(slot, slot.key.capabilityClass) : slot.catalogue
    const fresh = catalogue && this.#fresh.get(catalogue)
    if (!fresh || !slot.link || this.#reading.has(slot) || this.#refreshing.has(slot) || this.#due.has(slot)) {
      return false
    }
    const { freshLists } = gatewayLimits
    const now = Date.now()
    const pace = this.#paceOf(slot)
    if (staleAt(fresh, slot.link.identity.capabilities, freshLists) > now || now - pace.renewed < freshLists.least) {
      return false
    }
    pace.renewed = now
    return true
  }

  close (): void {
    this.#closed = true
    this.#deps.allowance.setHeldSize(0)
    for (const { timer } of this.#due.values()) clearTimeout(timer)
    this.#due.clear()
  }

  /** Reports the held size, after catalogues were read, taken over, restored, or removed with their clients' links. */
  recount (): void { if (!this.#closed) this.#deps.allowance.setHeldSize(this.#sizeBeside(undefined)) }

  /** The size of all catalogues but one, in bytes of memory. */
  #sizeBeside (left: Catalogue | undefined): number {
    let size = 0
    for (const catalogue of this.#byClass.values()) if (catalogue !== left) size += catalogueSize(catalogue)
    for (const catalogue of this.#deps.ownCatalogues()) if (catalogue !== left) size += catalogueSize(catalogue)
    return size
  }

  /** The part of a catalogue for which its owner has room, when it replaces a former one. */
  #fitting (catalogue: Catalogue, former: Catalogue | undefined): Catalogue {
    return fitCatalogue(catalogue, this.#deps.allowance.remainingSize() - this.#sizeBeside(former), this.#deps.warn)
  }

  #paceOf (slot: Slot): ReadingPace {
    const pace = this.#paces.get(slot) ?? new ReadingPace()
    this.#paces.set(slot, pace)
    return pace
  }

  #readIn (time: number, slot: Slot, base: boolean, changed: boolean): void {
    if (this.#due.has(slot)) return
    this.#due.set(slot, { timer: setTimeout(() => { this.#readAgain(slot, base) }, time).unref(), changed })
  }

  #readAgain (slot: Slot, base: boolean): void {
    clearTimeout(this.#due.get(slot)?.timer)
    this.#due.delete(slot)
    const done = this.#readAfterCurrent(slot, base).finally(() => {
      if (this.#refreshing.get(slot)?.done === done) this.#refreshing.delete(slot)
    })
    this.#refreshing.set(slot, { since: Date.now(), done })
  }

  /** Waits first: a reading in progress may have begun before the change. */
  async #readAfterCurrent (slot: Slot, base: boolean): Promise<void> {
    await this.#reading.get(slot)?.catch(() => {})
    try {
      await this.read(slot, base)
    } catch (error) {
      this.#deps.warn(`its lists could not be read again: ${messageOf(error)}`)
    }
  }

  async #read (slot: Slot, base: boolean): Promise<void> {
    const { link, key: { capabilityClass } } = slot
    if (!link) return
    const pace = this.#paceOf(slot)
    const former = slot.catalogue ?? this.#byClass.get(capabilityClass)
    const wait = this.#deps.allowance.waitTime(former === undefined)
    if (wait > 0) { this.#readIn(wait, slot, base, true); return }
    const most = this.#deps.allowance.remainingSize() - this.#sizeBeside(former)
    const leftOut = new OmissionLog(this.#deps.warn)
    const { catalogue: read, whole, fresh, fresh: { learnedAt } } =
      await readCatalogue(link, former, most, pace.timeout, this.#undeclared, leftOut.add)
    leftOut.end()
    if (base) this.#leftOut = leftOut.sentences
    this.#deps.allowance.recordRead(catalogueSize(read))
    if (this.#restoring) await this.#restoring
    await this.#deps.examine(read, slot.user)
    const before = this.#byClass.get(capabilityClass)
    const catalogue = this.#fitting(read, before)
    const same = before !== undefined && isSameCatalogue(before, catalogue)
    pace.note(whole, same)
    if (!whole) this.#readIn(pace.retry, slot, base, false)
    // What a server lists for one user's login is not shown to others.
    const isPrivate = slot.user !== undefined &&
      (this.#deps.isPerUser === true || Object.values(fresh.lists).some(({ isPublic }) => !isPublic))
    const isOwn = slot.key.affinity !== 'shared' && (before !== undefined || isPrivate)
    const shown = same ? before : isOwn ? this.#fitting(read, slot.catalogue) : catalogue
    this.#fresh.set(shown, fresh)
    if (isOwn) this.#publishTo(slot, same ? undefined : shown)
    else if (!same) this.#publish(shown, slot, base && before !== undefined)
    // The gateway's lists are unchanged, so those of other classes count as unchanged, too.
    else if (base) for (const each of this.#byClass.values()) Object.assign(this.#fresh.get(each) ?? {}, { learnedAt })
  }

  /** Publishes a change on one client's link to that client only, until its class gets the same. */
  #publishTo (slot: Slot, own: Catalogue | undefined): void {
    if (own === undefined && slot.catalogue === undefined) return
    slot.catalogue = own
    this.#known = true
    this.recount()
    if (this.#note()) this.store()
    this.#deps.changed()
  }

  /** Publishes a change to all clients of its class. @param forgetOthers other classes' lists may have changed too */
  #publish (catalogue: Catalogue, slot: Slot, forgetOthers: boolean): void {
    const { capabilityClass } = catalogue
    slot.catalogue = undefined
    if (forgetOthers) this.#byClass.clear()
    this.#byClass.set(capabilityClass, catalogue)
    this.#known = true
    this.recount()
    this.#note()
    this.store()
    this.#deps.changed()
  }
}
