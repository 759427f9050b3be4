import { randomUUID } from 'node:crypto'
import { apply, type Document } from '../../apply.ts'
import { read, type Reading } from '../../document.ts'
import { checkInvariants, checkValues } from '../../invariants.ts'
import { Listeners } from '../../listeners.ts'
import { Queue } from '../../queue.ts'
import { Conflict, StorageError, type Change, type Snapshot, type Store, type Vault } from '../../store.ts'
import { commit } from './commit.ts'
import type { Driver } from '../connection/driver.ts'
import { ChangeFeed } from './change-feed.ts'
import { readHead, readIn, readRows, type Found } from './read.ts'
import { follow, noRows, toDocument, toRows } from './rows.ts'
import { checkLocks, checkMasks } from './stored.ts'
import { awaySentence, codeOf, isAway, sentence, storageError } from '../connection/failures.ts'
import { CommitLock } from './commit-lock.ts'
import { patience, within } from '../connection/within.ts'
import { begin, plan, reseal } from './write.ts'

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
  readonly #listeners: Listeners
  /** What the log says already of changes that the database refuses, by its codes. */
  readonly #refused = new Set<string>()
  readonly #changeFeed: ChangeFeed
  #now: State | undefined
  /** Why the database cannot be used, as a sentence. */
  #trouble: string | undefined
  #commitLock: CommitLock | undefined
  /** The newest commit that was heard of, and not looked at yet. */
  #heard: string | undefined
  /** Nothing begins any more. */
  #closed = false
  #ended = false

  constructor ({ driver, vault, warn, seed }: PostgresStoreOptions) {
    this.#driver = driver
    this.#vault = vault
    this.#warn = warn
    this.#listeners = new Listeners(warn)
    this.#seed = seed
    this.#changeFeed = new ChangeFeed({
      driver,
      look: async () => await this.#queue.add(async () => await this.#look()),
      hear: (head) => {
        this.#hear(head)
      }
    })
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
      const turn = this.#commitLock
      this.#commitLock = undefined
      try {
        return await this.#commit(this.#now, changes, turn)
      } finally {
        turn?.release()
      }
    })
  }

  onChange (listener: (snapshot: Snapshot) => void): () => void {
    return this.#listeners.add(listener)
  }

  health (): string | undefined {
    return this.#closed ? 'The store is closed.' : this.#trouble
  }

  hurry (): void {
    this.#closed = true
    this.#changeFeed.close()
    this.#driver.reset()
  }

  async close (): Promise<void> {
    this.#changeFeed.close()
    await this.#queue.add(async () => {
      if (this.#ended) return
      this.#closed = this.#ended = true
      this.#commitLock?.release()
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
      const rows = toRows(await this.#seed())
      checkMasks(rows, this.#vault)
      const changes = plan(noRows, rows, this.#vault)
      await within(this.#driver, patience.begin, async (db) => { await begin(db, randomUUID(), changes) })
    }
    // Before reading: what comes in between is then heard of.
    await this.#changeFeed.open()
    const found = await within(this.#driver, patience.read, async (db) => await readRows(db, this.#vault))
    const state = { found, reading: read(toDocument(found.rows), found.version) }
    this.#reseal(found)
    return state
  }

  async #commit ({ found: base, reading: former }: State, changes: readonly Change[], turn: CommitLock | undefined): Promise<Snapshot> {
    checkValues(changes)
    const document = apply(former.document, changes)
    const rows = follow({ rows: base.rows, document: former.document }, document, changes)
    checkLocks(base.rows, rows, this.#vault)
    const reading = document === former.document ? former : read(document, former.snapshot.version + 1, former)
    checkInvariants(former.snapshot, reading.snapshot)
    try {
      const found = await commit({ driver: this.#driver, vault: this.#vault, base, rows, turn, isClosed: () => this.#closed })
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

  /** Takes up what others have committed, and tells of it. */
  async #catchUp (former: State): Promise<State> {
    const head = await within(this.#driver, patience.look, readHead)
    this.#trouble = undefined
    if (head?.version === former.found.version && head.head === former.found.head) return former
    return this.#take(former, await within(this.#driver, patience.read, async (db) => await readRows(db, this.#vault, former.found)))
  }

  /** The same for one who lost a race, and is the next to commit. */
  async #takeTurn (former: State): Promise<void> {
    const turn = await within(this.#driver, patience.write, async (db) => await CommitLock.take(db))
    try {
      this.#take(former, await within(this.#driver, patience.read, async () => await readIn(turn.tx, this.#vault, former.found)))
    } catch (error) {
      turn.release()
      throw error
    }
    this.#commitLock = turn
    setTimeout(() => {
      if (this.#commitLock !== turn) return
      this.#commitLock = undefined
      turn.release()
    }, turnKept)
  }

  #take (former: State, found: Found): State {
    const document = toDocument(found.rows, { rows: former.found.rows, document: former.reading.document })
    const reading = read(document, Math.max(former.reading.snapshot.version + 1, found.version), former.reading)
    this.#now = { found, reading }
    this.#listeners.tell(reading.snapshot)
    return this.#now
  }

  /** An error as a store throws it; one that shows that the database is away is remembered. */
  #failed (error: unknown): Error {
    if (isAway(error)) {
      this.#away(awaySentence(error))
      this.#changeFeed.soon(100)
    }
    const failure = storageError(error)
    const code = codeOf(error)
    if (!isAway(error) && code !== undefined && failure instanceof StorageError && !this.#refused.has(code)) {
      this.#refused.add(code)
      this.#warn(`A change could not be stored. ${failure.message}`)
    }
    return failure
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
    void this.#queue
      .add(async () => {
        if (!this.#closed) {
          await within(this.#driver, patience.read, async (db) => {
            await reseal(db, this.#vault, rows, outdated)
          })
        }
      })
      .catch((error: unknown) => {
        this.#warn(
          `Secrets could not be sealed with the newest key (${sentence(error)}). It is tried again at the next start; keep the former key until then.`
        )
      })
  }
}
