import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { apply, type Document } from '../apply.ts'
import { read, type Reading } from '../document.ts'
import { checkInvariants, checkValues } from '../invariants.ts'
import { Queue } from '../queue.ts'
import { Conflict, StorageError, type Change, type Snapshot, type Store, type Vault } from '../store.ts'
import type { Driver, Transaction } from './driver.ts'
import { Lookout } from './lookout.ts'
import { readHead, readIn, readRows, type Found } from './read.ts'
import { follow, noRows, toDocument, toRows, type Rows } from './rows.ts'
import { checkLocks } from './stored.ts'
import { awaySentence, isAway, sentence, storageError } from './trouble.ts'
import { Turn } from './turn.ts'
import { patience, within } from './within.ts'
import { begin, plan, reseal, wasMade, write } from './write.ts'

/** How long a turn waits for the next try, in ms: nobody else can commit meanwhile. */
const turnKept = 200

/** What the database held when it was last looked at, and what that says. */
interface State { readonly found: Found, readonly reading: Reading }

export interface PostgresStoreOptions {
  driver: Driver
  vault: Vault
  warn: (sentence: string) => void
  /** What a database that nothing was ever stored in begins with. @throws Error with a sentence: then it stays empty */
  seed: () => Promise<Document>
}

/**
 * The settings in tables, one row an entry. All is kept in memory as well: a commit is worked out there, and the database takes it
 * if its revision is still the one it was worked out from. What others commit is heard by NOTIFY, and found by a poll behind it.
 */
export class PostgresStore implements Store {
  readonly #driver: Driver
  readonly #vault: Vault
  readonly #warn: (sentence: string) => void
  readonly #seed: () => Promise<Document>
  readonly #queue = new Queue()
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()
  readonly #lookout: Lookout
  #now: State | undefined
  /** Why the database cannot be used, as a sentence. */
  #trouble: string | undefined
  #turn: Turn | undefined
  /** The newest commit that was heard of, and not looked at yet. */
  #heard: string | undefined
  /** Nothing begins any more. */
  #closed = false
  #ended = false

  constructor ({ driver, vault, warn, seed }: PostgresStoreOptions) {
    this.#driver = driver
    this.#vault = vault
    this.#warn = warn
    this.#seed = seed
    this.#lookout = new Lookout({ driver, look: async () => await this.#queue.add(async () => await this.#look()), hear: (head) => { this.#hear(head) } })
  }

  async load (): Promise<Snapshot> {
    return await this.#queue.add(async () => {
      if (this.#closed) throw new Error('The store is closed.')
      try {
        this.#now = this.#now ? await this.#catchUp(this.#now) : await this.#begin()
        return this.#now.reading.snapshot
      } catch (error) {
        throw new Error(sentence(error))
      }
    })
  }

  async commit (changes: readonly Change[], baseVersion: number): Promise<Snapshot> {
    this.#checkHealth()
    return await this.#queue.add(async () => {
      if (!this.#now) throw new Error('load comes before commit')
      if (baseVersion !== this.#now.reading.snapshot.version) throw new Conflict('The settings were changed meanwhile.', false)
      this.#checkHealth()
      const turn = this.#turn
      this.#turn = undefined
      try {
        return await this.#commit(this.#now, changes, turn)
      } finally {
        turn?.release()
      }
    })
  }

  onChange (listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  health (): string | undefined {
    return this.#closed ? 'The store is closed.' : this.#trouble
  }

  hurry (): void {
    this.#closed = true
    this.#lookout.close()
    this.#driver.reset()
  }

  async close (): Promise<void> {
    this.#lookout.close()
    await this.#queue.add(async () => {
      if (this.#ended) return
      this.#closed = this.#ended = true
      this.#turn?.release()
      this.#listeners.clear()
      await this.#driver.end()
    })
  }

  /** Whoever cannot write is told at once, not after the next look at a database that does not answer. @throws StorageError */
  #checkHealth (): void {
    const why = this.health()
    if (why !== undefined) throw new StorageError(this.#closed ? why : `${why} Nothing was changed.`, false)
  }

  async #begin (): Promise<State> {
    if (await within(this.#driver, patience.look, readHead) === undefined) {
      const changes = plan(noRows, toRows(await this.#seed()), this.#vault)
      await within(this.#driver, patience.begin, async (db) => { await begin(db, randomUUID(), changes) })
    }
    // Before reading: what comes in between is then heard of.
    await this.#lookout.open()
    const found = await within(this.#driver, patience.read, async (db) => await readRows(db, this.#vault))
    const state = { found, reading: read(toDocument(found.rows), found.version) }
    this.#reseal(found)
    return state
  }

  async #commit ({ found: base, reading: former }: State, changes: readonly Change[], turn: Turn | undefined): Promise<Snapshot> {
    checkValues(changes)
    const document = apply(former.document, changes)
    const rows = follow({ rows: base.rows, document: former.document }, document, changes)
    checkLocks(base.rows, rows, this.#vault)
    const reading = document === former.document ? former : read(document, former.snapshot.version + 1, former)
    checkInvariants(former.snapshot, reading.snapshot)
    try {
      const found = await this.#write(base, rows, turn)
      if (found !== undefined) {
        this.#now = { found, reading }
        return reading.snapshot
      }
      await this.#takeTurn({ found: base, reading: former })
    } catch (error) {
      throw this.#failed(error)
    }
    throw new Conflict('The settings were changed meanwhile.', false)
  }

  /** @returns what the database holds now; undefined: somebody was faster, and nothing was changed @throws StorageError, or the driver's error when nothing was changed */
  async #write (base: Found, rows: Rows, turn: Turn | undefined): Promise<Found | undefined> {
    const changes = plan(base.rows, rows, this.#vault)
    if (changes.size === 0) {
      const head = await within(this.#driver, patience.look, readHead)
      return head?.version === base.version && head.head === base.head ? base : undefined
    }
    const id = randomUUID()
    let made = false
    const work = async (tx: Transaction): Promise<void> => { made = await write(tx, base, id, changes) }
    try {
      await within(this.#driver, patience.write, async (db) => { await (turn ? turn.run(work) : db.transaction(work)) })
      if (!made) return undefined
    } catch (error) {
      // Where COMMIT was on its way when the connection broke, it may have arrived.
      if (!made || !isAway(error) || !await this.#find(base, id)) throw error
    }
    return { version: base.version + 1, head: id, rows, outdated: [] }
  }

  /** Finds out whether a commit was made. @throws StorageError when that cannot be had */
  async #find (base: Found, id: string): Promise<boolean> {
    const until = Date.now() + patience.write
    while (!this.#closed && Date.now() <= until) {
      try {
        return await within(this.#driver, patience.look, async (db) => await wasMade(db, base, id))
      } catch {
        await sleep(250)
      }
    }
    throw new StorageError('The database went away while it was being written, so it is not known whether the change was made. Look again when it is back.', false)
  }

  /** Takes up what others have committed, and tells of it. */
  async #catchUp (former: State): Promise<State> {
    const head = await within(this.#driver, patience.look, readHead)
    this.#trouble = undefined
    if (head?.version === former.found.version && head.head === former.found.head) return former
    return this.#take(former, await within(this.#driver, patience.read, async (db) => await readRows(db, this.#vault, former.found)))
  }

  /** The same for one who lost a race, and is the next to commit. */
  async #takeTurn (former: State): Promise<void> {
    const turn = await within(this.#driver, patience.write, async (db) => await Turn.take(db))
    try {
      this.#take(former, await within(this.#driver, patience.read, async () => await readIn(turn.tx, this.#vault, former.found)))
    } catch (error) {
      turn.release()
      throw error
    }
    this.#turn = turn
    setTimeout(() => {
      if (this.#turn !== turn) return
      this.#turn = undefined
      turn.release()
    }, turnKept)
  }

  #take (former: State, found: Found): State {
    const document = toDocument(found.rows, { rows: former.found.rows, document: former.reading.document })
    const reading = read(document, Math.max(former.reading.snapshot.version + 1, found.version), former.reading)
    this.#now = { found, reading }
    for (const listener of this.#listeners) {
      try {
        listener(reading.snapshot)
      } catch (error) {
        this.#warn(`A change of the settings could not be taken up everywhere: ${sentence(error)}`)
      }
    }
    return this.#now
  }

  /** An error as a store throws it; one that shows that the database is away is remembered. */
  #failed (error: unknown): Error {
    if (isAway(error)) {
      this.#away(awaySentence(error))
      this.#lookout.soon(100)
    }
    return storageError(error)
  }

  #away (why: string): void {
    if (this.#trouble === undefined) this.#warn(`${why} What was in force stays in force, and nothing can be changed until then.`)
    this.#trouble = why
  }

  /** Takes up a commit that was heard of; one's own is heard of, too. */
  #hear (head: string): void {
    const waiting = this.#heard !== undefined
    this.#heard = head
    if (waiting) return
    void this.#queue.add(async () => {
      const own = this.#heard === this.#now?.found.head
      this.#heard = undefined
      if (!own) await this.#look()
    })
  }

  async #look (): Promise<{ news: boolean, away: boolean }> {
    const former = this.#now
    if (this.#closed || !former) return { news: false, away: false }
    try {
      const now = await this.#catchUp(former)
      return { news: now !== former, away: false }
    } catch (error) {
      this.#away(isAway(error) ? awaySentence(error) : `What another replica has stored cannot be taken up: ${sentence(error)}`)
      return { news: false, away: true }
    }
  }

  #reseal ({ rows, outdated }: Found): void {
    if (outdated.length === 0) return
    void this.#queue.add(async () => {
      if (!this.#closed) await within(this.#driver, patience.read, async (db) => { await reseal(db, this.#vault, rows, outdated) })
    }).catch((error: unknown) => { this.#warn(`Secrets could not be sealed with the newest key (${sentence(error)}). It is tried again at the next start; keep the former key until then.`) })
  }
}
