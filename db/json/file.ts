import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { apply, type Document } from '../apply.ts'
import { checkInvariants, checkValues } from '../invariants.ts'
import { Conflict, StorageError, type Change, type Snapshot, type Store } from '../store.ts'
import { Listeners } from '../listeners.ts'
import { begin, readable } from './begin.ts'
import { Disk } from './disk.ts'
import { checkKinds, holdsTokens, read, type Reading } from '../document.ts'
import { FileLock, Held } from './lock.ts'
import { parse } from './parse.ts'
import { Queue } from '../queue.ts'
import { share } from './share.ts'
import { Watcher } from './watcher.ts'
import type { Kept, SectionFile } from './tokens.ts'
import { Edited, storageError } from './write.ts'

/** How long a bad edit must stay the same before it is told, ms: an editor may be in the middle of it. */
const patience = 500
/** How often to try whether a disk that refused can be written again, ms. */
const probeEvery = 5_000

const edited = 'The settings file was edited and cannot be used as it is; the log says what is wrong.'
const sentence = (error: unknown): string => error instanceof Error ? error.message : String(error)
const toBytes = (document: Document): Buffer => Buffer.from(`${JSON.stringify(document, null, 2)}\n`)

/**
 * The settings in one JSON file that people may edit too. Whatever looks at the file or writes it does so in one queue, so that
 * memory and disk are never compared halfway. A file that is there but cannot be used is never taken for an empty one, and never
 * written over.
 */
export class JsonFileStore implements Store, SectionFile {
  readonly #path: string
  readonly #warn: (sentence: string) => void
  readonly #disk: Disk
  readonly #queue = new Queue()
  readonly #listeners: Listeners
  #lock: FileLock | undefined
  #watcher: Watcher | undefined
  #now: Reading | undefined
  /** What is on disk and cannot be used; `since`: the time it was seen first. */
  #bad: { why: string, since: number, told: boolean } | undefined
  /** The file is gone; it is told at the second look, since an editor may be about to put another one there. */
  #gone: 'seen' | 'told' | undefined
  /** Why the last try to write failed. */
  #trouble: { why: string, since: number } | undefined
  #looking = false
  #closed = false

  constructor (path: string, warn: (sentence: string) => void = () => {}) {
    this.#path = path
    this.#warn = warn
    this.#disk = new Disk(path)
    this.#listeners = new Listeners(warn)
  }

  async load (): Promise<Snapshot> {
    return await this.#queue.add(async () => {
      if (this.#closed) throw new Error('The store is closed.')
      if (this.#now) {
        if (await this.#look() === 'bad') throw new Error(this.#bad?.why)
        return this.#now.snapshot
      }
      const lock = await this.#enter()
      try {
        const { document, problems } = await begin({
          disk: this.#disk,
          path: this.#path,
          locked: lock.held,
          recover: async () => await this.#recover()
        })
        const reading = this.#read(document)
        this.#now = { ...reading, snapshot: { ...reading.snapshot, problems: [...problems, ...reading.snapshot.problems] } }
        this.#watcher = new Watcher(await this.#disk.place(), () => { this.#tick() })
        return this.#now.snapshot
      } catch (error) {
        lock.release()
        throw error
      }
    })
  }

  async commit (changes: readonly Change[], baseVersion: number): Promise<Snapshot> {
    return await this.#queue.add(async () => {
      if (this.#closed) throw new StorageError('The store is closed.', false)
      if (baseVersion !== this.#loaded().snapshot.version) throw new Conflict('The settings were changed meanwhile.', false)
      // Again where an edit came while we wrote, and it was not one of what the file says.
      for (;;) {
        const found = await this.#look()
        if (found === 'bad') {
          throw new Conflict('The settings file was edited and cannot be used as it is; mend it first. The log says what is wrong.', true)
        }
        if (found === 'edited') throw new Conflict('The settings file was edited meanwhile.', true)
        const former = this.#loaded()
        checkValues(changes)
        const document = apply(former.document, changes)
        if (document === former.document && found === 'same') return former.snapshot
        const next = read(document, former.snapshot.version + 1, former)
        checkInvariants(former.snapshot, next.snapshot)
        if (!await this.#write(document)) continue
        this.#now = next
        if (holdsTokens(former.snapshot) && !holdsTokens(next.snapshot)) await this.#disk.renewBackup()
        return next.snapshot
      }
    })
  }

  section (name: string): unknown {
    return this.#loaded().document[name]
  }

  /** Beside `commit`, for what snapshots do not tell: readers go on with the version they have. */
  async keep<Result> (name: string, change: (value: unknown) => Kept<Result>): Promise<Result> {
    return await this.#queue.add(async () => {
      if (this.#closed) throw new StorageError('The store is closed.', false)
      for (;;) {
        if (await this.#look() === 'bad') throw new StorageError(edited, false)
        const now = this.#loaded()
        const { value, result, written } = change(now.document[name])
        if (value === now.document[name]) return result
        const document = { ...now.document, [name]: value }
        if (!await this.#write(document)) continue
        this.#now = { ...now, document }
        written?.()
        return result
      }
    })
  }

  onChange (listener: (snapshot: Snapshot) => void): () => void {
    return this.#listeners.add(listener)
  }

  health (readonly = false): string | undefined {
    if (this.#closed) return 'The store is closed.'
    return this.#bad ? edited : readonly ? undefined : this.#trouble?.why
  }

  async close (): Promise<void> {
    await this.#queue.add(async () => {
      this.#closed = true
      this.#watcher?.close()
      this.#listeners.clear()
      this.#lock?.release()
    })
  }

  #loaded (): Reading {
    if (!this.#now) throw new Error('load comes first')
    return this.#now
  }

  /** @returns whether it was written; false: the file was edited since the last look @throws StorageError */
  async #write (document: Document): Promise<boolean> {
    try {
      await this.#hold()
      await this.#disk.write(toBytes(document))
      this.#trouble = undefined
      return true
    } catch (error) {
      if (error instanceof Edited) return false
      const failure = storageError(error)
      this.#trouble = { why: failure.message, since: Date.now() }
      throw failure
    }
  }

  /** The lock, where the folder lets us have one: without it we can read, and not write. @throws Error when another process has it */
  async #enter (): Promise<FileLock> {
    const place = await this.#disk.place()
    this.#lock = new FileLock(place)
    try {
      await mkdir(dirname(place), { recursive: true, mode: 0o700 })
      await this.#lock.hold()
    } catch (error) {
      if (error instanceof Held) {
        throw new Error(`The settings file ${this.#path} is ${error.message}. Stop that one first, or give this one another SETTINGS_PATH.`)
      }
      this.#trouble = { why: storageError(error).message, since: Date.now() }
      this.#warn(`The settings file ${this.#path} is read, and cannot be written. ${this.#trouble.why}`)
    }
    return this.#lock
  }

  async #hold (): Promise<void> {
    await this.#lock?.hold().catch((error: unknown) => {
      throw error instanceof Held ? new StorageError(`The settings file is ${error.message}. Nothing was changed.`, false) : error
    })
  }

  /** Mends a file that a write in place left in part. @returns whether it was that */
  async #recover (): Promise<boolean> {
    return this.#lock?.held === true && await this.#disk.recover().catch(() => false)
  }

  #read (document: Document, former?: Reading): Reading {
    try {
      if (former) checkKinds(former.document, document)
      return read(document, (former?.snapshot.version ?? 0) + 1, former)
    } catch (error) {
      throw new Error(`The settings file ${this.#path} cannot be used: ${sentence(error)}. It was left as it is: mend it.`)
    }
  }

  /** Takes up what somebody else made of the file. Bad: it cannot be used, and what is in memory stays. */
  async #look (): Promise<'same' | 'gone' | 'edited' | 'bad'> {
    const former = this.#now
    if (!former) return 'same'
    try {
      const found = await readable(this.#disk.look(), this.#path)
      if (found === 'same' || found === 'gone') {
        this.#bad = undefined
        return found
      }
      const document = share(former.document, parse(found.bytes, this.#path))
      const next = document === former.document ? former : this.#read(document, former)
      this.#disk.take(found)
      this.#bad = undefined
      if (next === former) return 'same'
      this.#now = next
      this.#listeners.tell(next.snapshot)
      return 'edited'
    } catch (error) {
      if (await this.#recover()) return await this.#look()
      const why = sentence(error)
      if (this.#bad?.why !== why) this.#bad = { why, since: Date.now(), told: false }
      return 'bad'
    }
  }

  #tick (): void {
    if (this.#looking || this.#closed) return
    this.#looking = true
    void this.#queue.add(async () => {
      if (this.#closed) return
      const found = await this.#look()
      if (found === 'gone' && this.#gone === 'seen') {
        this.#warn(`The settings file ${this.#path} is gone. What was in force stays in force; the next change writes the file anew.`)
      }
      this.#gone = found !== 'gone' ? undefined : this.#gone === undefined ? 'seen' : 'told'
      if (this.#bad && !this.#bad.told && Date.now() - this.#bad.since >= patience) {
        this.#bad.told = true
        this.#warn(`${this.#bad.why} What was in force stays in force, and nothing is written until then.`)
      }
      if (this.#trouble && Date.now() - this.#trouble.since >= probeEvery) await this.#probe()
    }).catch((error: unknown) => { this.#warn(sentence(error)) }).finally(() => { this.#looking = false })
  }

  /** Whether a disk that refused can be written again, so that `health` does not wait for the next change. */
  async #probe (): Promise<void> {
    try {
      await this.#hold()
      await this.#disk.probe()
      this.#trouble = undefined
    } catch (error) {
      this.#trouble = { why: storageError(error).message, since: Date.now() }
    }
  }
}
