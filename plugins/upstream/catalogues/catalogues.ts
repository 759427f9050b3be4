import { messageOf } from '../../../db/errors.ts'
import { leftOf, staleAt, type Caching, type Freshness } from '../../../protocol/caching.ts'
import { plainClass } from '../../../protocol/capabilities.ts'
import { sameCatalogue, type Catalogue, type ListingHistory, type ListKind } from '../../../protocol/lists.ts'
import { Claims, gatewayLimits } from '../../gateway/index.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { Slot } from '../links/slot.ts'
import { cacheText, readKept, type KeptCatalogues } from './cache-text.ts'
import { LeftOut } from '../notes.ts'
import { readCatalogue, UndeclaredTools } from './read-catalogue.ts'
import { ReadingPace } from './reading-pace.ts'
import { type CatalogueAllowance, catalogueSize, fitting } from './shares.ts'
import { upstreamLimits } from '../limits.ts'

interface CataloguesDeps {
  /** Identifies what the catalogues are read from: cached ones of another target are not shown. */
  target: string
  /** The server's owner: claims of another owner's server are not used. */
  owner: string
  changed: () => void
  allowance: CatalogueAllowance
  /** Those of single clients' links, where they differ from their class's. */
  owned: () => Iterable<Catalogue>
  warn: (sentence: string) => void
}

/** Capability classes that are kept on disk. */
const keptClasses = 8
/** What one upstream lists, by capability class, and for single clients where that differs. */
export class Catalogues {
  readonly #deps: CataloguesDeps
  readonly #byClass = new BoundedMap<string, Catalogue>(upstreamLimits.classesPerServer, {
    isEvictable: (capabilityClass) => capabilityClass !== plainClass
  })

  readonly #reading = new Map<Slot, Promise<void>>()
  /** Readings that are due; `changed`: because of a `list_changed`, and not because the last one failed. */
  readonly #due = new Map<Slot, { timer: NodeJS.Timeout, changed: boolean }>()
  /** Readings after a `list_changed` that are under way, and since when (ms since the epoch). */
  readonly #refreshing = new Map<Slot, { since: number, done: Promise<void> }>()
  readonly #paces = new WeakMap<Slot, ReadingPace>()
  /** How long each catalogue may be kept, as the server said, and since when. */
  readonly #fresh = new WeakMap<Catalogue, Freshness>()
  readonly #undeclared = new UndeclaredTools()
  #claims = new Claims()
  /** Settles when what was kept has been restored. */
  #restoring: Promise<unknown> | undefined
  #known = false
  /** The first sentences about what the last reading of the gateway's link left out. */
  #leftOut: readonly string[] = []
  /** A reading may end after its server has. */
  #closed = false

  constructor (deps: CataloguesDeps) {
    this.#deps = deps
  }

  /** A catalogue has been read, in this run or the last one: a silent server is known to be silent. */
  get known (): boolean { return this.#known }

  /** The first sentences about what of its lists is left out. */
  get leftOut (): readonly string[] { return this.#leftOut }

  /** Since when its items are listed. */
  get claims (): ListingHistory { return this.#claims }

  get all (): Catalogue[] { return [...this.#byClass.values()] }

  /** Whether it is known what is listed to this class. */
  has (capabilityClass: string): boolean { return this.#byClass.has(capabilityClass) }

  /** What a client is shown: its link's catalogue, its class's, or that of clients that declare nothing. */
  of (slot: Slot | undefined, capabilityClass: string): Catalogue | undefined {
    return slot?.catalogue ?? this.#byClass.get(capabilityClass) ?? this.#byClass.get(plainClass)
  }

  /** Takes over what the former upstream of this server listed, if its target was the same, and its claims. */
  takeOver (former: Catalogues): void {
    if (former.#deps.owner === this.#deps.owner) this.#claims = former.#claims
    if (former.#deps.target !== this.#deps.target) { this.#claims.reconfigure(); return }
    this.#known = former.#known
    this.#leftOut = former.#leftOut
    for (const [capabilityClass, catalogue] of former.#byClass) this.#byClass.set(capabilityClass, catalogue)
    this.recount()
  }

  /**
   * Restores what was kept in the last run, unless something newer is known. What is read from the server meanwhile is
   * published after that: it would count as listed at first.
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
      kept = await readKept(text, this.#deps.target, this.#deps.owner)
    } catch {
      this.#deps.warn('the cached catalogue cannot be read and is ignored')
    }
    if (!kept || this.#known || this.#closed) return
    const { isSame, catalogues, claims } = kept
    // Of another address or command, only the claims to names are used.
    if (isSame) {
      this.#known = true
      for (const catalogue of catalogues) this.#byClass.set(catalogue.capabilityClass, catalogue)
      this.recount()
    }
    if (this.#claims.isKnown) this.#note()
    else this.#claims.restore(claims, catalogues)
    if (!isSame || catalogues.length === 0) this.#claims.reconfigure()
  }

  keep (): void {
    const { target, owner, allowance } = this.#deps
    allowance.keep(cacheText(target, owner, this.#claims, this.all.slice(0, keptClasses)))
  }

  /** Notes what is listed now. @returns whether any of it is listed for the first time */
  #note (): boolean { return !this.#closed && this.#claims.note([...this.all, ...this.#deps.owned()]) }

  /** Reads what a slot's link lists, and publishes it if it changed. @param base the slot is the gateway's */
  read (slot: Slot, base: boolean): Promise<void> {
    const running = this.#reading.get(slot)
    if (running) return running
    const reading = this.#read(slot, base).finally(() => { this.#reading.delete(slot) })
    this.#reading.set(slot, reading)
    return reading
  }

  /** The upstream sent `list_changed`: reads again, once for a burst of them. */
  refresh (slot: Slot, base: boolean): void {
    const pace = this.#paceOf(slot)
    this.#readIn(pace.wait, slot, base, true)
  }

  /**
   * Reads at once if a `list_changed` is waiting, or a list has expired: a client asks for it.
   * @param isAlone no other slot reads what its class is shown
   * @returns the reading, and since when it is under way (ms since the epoch); undefined: nothing has changed
   */
  catchUp (slot: Slot, base: boolean, isAlone = base): { since: number, done: Promise<void> } | undefined {
    if (this.#due.get(slot)?.changed === true || this.#isStale(slot, isAlone)) this.#readAgain(slot, base)
    return this.#refreshing.get(slot)
  }

  /**
   * How long one list of a catalogue may be kept from now on; undefined: its server did not say.
   * @param slot where changes of it are heard
   */
  caching (catalogue: Catalogue, kind: ListKind, slot: Slot): Caching | undefined {
    const fresh = this.#fresh.get(catalogue)
    const said = fresh?.lists[kind]
    if (!fresh || !said) return undefined
    const isChanging = this.#due.get(slot)?.changed === true || this.#refreshing.has(slot)
    return { ...said, ttlMs: isChanging ? 0 : leftOf(said.ttlMs, fresh.at, Date.now(), gatewayLimits.freshLists) }
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
    this.#deps.allowance.hold(0)
    for (const { timer } of this.#due.values()) clearTimeout(timer)
    this.#due.clear()
  }

  /** Counts how much is held: catalogues were read, taken over or restored, or went with their clients' links. */
  recount (): void { if (!this.#closed) this.#deps.allowance.hold(this.#sizeBeside(undefined)) }

  /** The size of all catalogues but one, in characters. */
  #sizeBeside (left: Catalogue | undefined): number {
    let size = 0
    for (const catalogue of this.#byClass.values()) if (catalogue !== left) size += catalogueSize(catalogue)
    for (const catalogue of this.#deps.owned()) if (catalogue !== left) size += catalogueSize(catalogue)
    return size
  }

  /** What of a catalogue its owner has room for, in place of a former one. */
  #fitting (catalogue: Catalogue, former: Catalogue | undefined): Catalogue {
    return fitting(catalogue, this.#deps.allowance.room() - this.#sizeBeside(former), this.#deps.warn)
  }

  #paceOf (slot: Slot): ReadingPace {
    const known = this.#paces.get(slot)
    if (known) return known
    const pace = new ReadingPace()
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

  /** A reading that is under way may be from before the change. */
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
    const wait = this.#deps.allowance.wait(former === undefined)
    if (wait > 0) { this.#readIn(wait, slot, base, true); return }
    const most = this.#deps.allowance.room() - this.#sizeBeside(former)
    const leftOut = new LeftOut(this.#deps.warn)
    const { catalogue: read, whole, fresh } =
      await readCatalogue(link, former, most, pace.timeout, this.#undeclared, leftOut.add)
    leftOut.end()
    if (base) this.#leftOut = leftOut.sentences
    this.#deps.allowance.spend(catalogueSize(read))
    if (this.#restoring) await this.#restoring
    const before = this.#byClass.get(capabilityClass)
    const catalogue = this.#fitting(read, before)
    const same = before !== undefined && sameCatalogue(before, catalogue)
    pace.note(whole, same)
    if (!whole) this.#readIn(pace.retry, slot, base, false)
    // What a server lists to one user's login is not shown to others.
    const isPrivate = slot.user !== undefined && Object.values(fresh.lists).some(({ isPublic }) => !isPublic)
    const isOwn = slot.key.affinity !== 'shared' && (before !== undefined || isPrivate)
    const shown = same ? before : isOwn ? this.#fitting(read, slot.catalogue) : catalogue
    this.#fresh.set(shown, fresh)
    if (isOwn) this.#publishTo(slot, same ? undefined : shown)
    else if (!same) this.#publish(shown, slot, base && before !== undefined)
    // The gateway is shown the same as before, so other classes are, too.
    else if (base) for (const other of this.#byClass.values()) this.#renew(other, fresh.at)
  }

  #renew (catalogue: Catalogue, at: number): void {
    const fresh = this.#fresh.get(catalogue)
    if (fresh) fresh.at = at
  }

  /** A change on one client's link is that client's, until its class is shown the same. */
  #publishTo (slot: Slot, own: Catalogue | undefined): void {
    if (own === undefined && slot.catalogue === undefined) return
    slot.catalogue = own
    this.#known = true
    this.recount()
    if (this.#note()) this.keep()
    this.#deps.changed()
  }

  /**
   * A change that all of its class are shown.
   * @param slot where it was read: its own catalogue is older
   * @param forgetOthers the gateway is shown something else: other classes may be, too
   */
  #publish (catalogue: Catalogue, slot: Slot, forgetOthers: boolean): void {
    const { capabilityClass } = catalogue
    slot.catalogue = undefined
    this.#byClass.set(capabilityClass, catalogue)
    if (forgetOthers) {
      for (const other of this.#byClass.keys()) if (other !== capabilityClass) this.#byClass.delete(other)
    }
    this.#known = true
    this.recount()
    this.#note()
    this.keep()
    this.#deps.changed()
  }
}
