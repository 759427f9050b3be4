import { plainClass } from '../../../protocol/capabilities.ts'
import { limits } from '../../limits/index.ts'
import { catalogueText, sameCatalogue, toCatalogue, type Catalogue } from './catalogue.ts'
import type { Slot } from '../links/slot.ts'

export interface CataloguesDeps {
  /** Names what the catalogues are read from: a cached one of another target is not used. */
  target: string
  /** What is listed has changed. */
  listed: () => void
  /** Worth keeping on disk: a text, piece by piece. */
  keep: (text: Iterable<string>) => void
  warn: (sentence: string) => void
}

/** How many classes are kept on disk. */
const keptClasses = 8
/** News of a server that changes many things at once come in a burst: so many ms are waited for the rest. */
const settle = 30
/** ... and ever longer, up to this, for one that tells of changes that are none each time it is asked. */
const longestSettle = 10_000
/** A list that failed is asked for again after `limits.listAgain` ms, and ever later up to this. */
const longestPause = 60_000

/** How one slot's lists are read: how long news are let settle, when they were read last, and how often that has failed in a row. */
interface Pace { settle: number, read: number, failures: number }

/** What one upstream lists, by capability class, and to single clients where that differs. */
export class Catalogues {
  readonly #deps: CataloguesDeps
  readonly #byClass = new Map<string, Catalogue>()
  readonly #reading = new Map<Slot, Promise<void>>()
  /** Readings that are due, and whether for news or because the last one failed. */
  readonly #due = new Map<Slot, { timer: NodeJS.Timeout, news: boolean }>()
  /** Readings of news that are under way, and since when. */
  readonly #catchingUp = new Map<Slot, { since: number, done: Promise<void> }>()
  readonly #paces = new WeakMap<Slot, Pace>()
  #known = false

  constructor (deps: CataloguesDeps) {
    this.#deps = deps
  }

  /** True when it has ever been tried, in this run or the last: a silent server is then known to be one. */
  get known (): boolean { return this.#known }

  /** Of every class that is known. */
  get all (): Catalogue[] { return [...this.#byClass.values()] }

  /** True when it is known what this class is shown. */
  has (capabilityClass: string): boolean { return this.#byClass.has(capabilityClass) }

  /** What a client is shown: its own link's, its class's, or that of clients that declare nothing. */
  of (slot: Slot | undefined, capabilityClass: string): Catalogue | undefined {
    return slot?.catalogue ?? this.#byClass.get(capabilityClass) ?? this.#byClass.get(plainClass)
  }

  /** Takes what the one before it knew, if that was read from the same place. */
  takeOver (former: Catalogues): void {
    if (former.#deps.target !== this.#deps.target) return
    this.#known = former.#known
    for (const [capabilityClass, catalogue] of former.#byClass) this.#byClass.set(capabilityClass, catalogue)
  }

  /** Takes what was kept when the program last ended, where nothing newer is known. */
  restore (text: string | undefined): void {
    if (text === undefined || this.#known) return
    try {
      const { target, catalogues } = JSON.parse(text) as { target?: unknown, catalogues?: unknown[] }
      if (target !== this.#deps.target) return
      this.#known = true
      for (const value of catalogues ?? []) {
        const catalogue = toCatalogue(value)
        if (catalogue) this.#byClass.set(catalogue.capabilityClass, catalogue)
      }
    } catch {
      this.#deps.warn('the cached catalogue cannot be read and is ignored')
    }
  }

  keep (): void {
    this.#deps.keep(textOf(this.#deps.target, [...this.#byClass.values()].slice(0, keptClasses)))
  }

  /** Reads what a slot's link lists, and publishes it if it is news. @param base the slot is the gateway's own */
  read (slot: Slot, base: boolean): Promise<void> {
    const running = this.#reading.get(slot)
    if (running) return running
    const reading = this.#read(slot, base).finally(() => { this.#reading.delete(slot) })
    this.#reading.set(slot, reading)
    return reading
  }

  /** The upstream said that a list changed: reads again, once for a burst of such news. */
  refresh (slot: Slot, base: boolean): void {
    const pace = this.#paceOf(slot)
    if (Date.now() - pace.read > 10 * pace.settle) pace.settle = settle
    this.#readIn(pace.settle, slot, base, true)
  }

  /**
   * Reads at once what news are still let settle for: somebody asks for what may be new.
   * @returns the reading, and since when it is under way (ms since the epoch); undefined: there are no news
   */
  catchUp (slot: Slot, base: boolean): { since: number, done: Promise<void> } | undefined {
    if (this.#due.get(slot)?.news === true) this.#readNews(slot, base)
    return this.#catchingUp.get(slot)
  }

  close (): void {
    for (const { timer } of this.#due.values()) clearTimeout(timer)
    this.#due.clear()
  }

  #paceOf (slot: Slot): Pace {
    const known = this.#paces.get(slot)
    if (known) return known
    const pace = { settle, read: -Infinity, failures: 0 }
    this.#paces.set(slot, pace)
    return pace
  }

  #readIn (time: number, slot: Slot, base: boolean, news: boolean): void {
    if (this.#due.has(slot)) return
    this.#due.set(slot, { timer: setTimeout(() => { this.#readNews(slot, base) }, time).unref(), news })
  }

  #readNews (slot: Slot, base: boolean): void {
    clearTimeout(this.#due.get(slot)?.timer)
    this.#due.delete(slot)
    // What is being read may be from before the news.
    const before = this.#reading.get(slot) ?? Promise.resolve()
    const done = before
      .catch(() => {})
      .then(async () => {
        await this.read(slot, base)
      })
      .catch((error: unknown) => {
        this.#deps.warn(`its lists could not be read again: ${error instanceof Error ? error.message : String(error)}`)
      })
      .finally(() => {
        if (this.#catchingUp.get(slot)?.done === done) this.#catchingUp.delete(slot)
      })
    this.#catchingUp.set(slot, { since: Date.now(), done })
  }

  async #read (slot: Slot, base: boolean): Promise<void> {
    const { capabilityClass } = slot.key
    const pace = this.#paceOf(slot)
    const answer = await slot.link?.catalogue(slot.catalogue ?? this.#byClass.get(capabilityClass), limits.listTime * 2 ** pace.failures)
    if (!answer) return
    const { catalogue, whole } = answer
    pace.read = Date.now()
    pace.failures = whole ? 0 : Math.min(pace.failures + 1, 5)
    if (!whole) this.#readIn(Math.min(limits.listRetry * 2 ** (pace.failures - 1), longestPause), slot, base, false)
    const before = this.#byClass.get(capabilityClass)
    const same = before !== undefined && sameCatalogue(before, catalogue)
    pace.settle = same ? Math.min(2 * pace.settle, longestSettle) : settle
    if (slot.key.affinity !== 'shared' && before !== undefined) {
      // News on one client's own connection are that client's own, until they turn out to be what its class has.
      if (same && slot.catalogue === undefined) return
      slot.catalogue = same ? undefined : catalogue
      this.#deps.listed()
      return
    }
    if (same) return
    this.#byClass.set(capabilityClass, catalogue)
    const oldest = this.#byClass.size > limits.classesPerServer ? [...this.#byClass.keys()].find((each) => each !== plainClass) : undefined
    if (oldest !== undefined) this.#byClass.delete(oldest)
    // What the gateway is shown has changed: what classes without a shared link are shown may have, too.
    if (base && before !== undefined) for (const other of this.#byClass.keys()) if (other !== capabilityClass) this.#byClass.delete(other)
    this.#known = true
    this.keep()
    this.#deps.listed()
  }
}

function * textOf (target: string, catalogues: readonly Catalogue[]): Generator<string> {
  yield `{"target":${JSON.stringify(target)},"catalogues":[`
  for (const [at, catalogue] of catalogues.entries()) {
    if (at > 0) yield ','
    yield * catalogueText(catalogue)
  }
  yield ']}'
}
