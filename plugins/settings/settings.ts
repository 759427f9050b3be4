import { EventEmitter } from 'node:events'
import { Conflict, Invalid, StorageError, type Change, type Snapshot, type Store } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import { maskToken, sha256 } from '../secrets/hash.ts'

/** What one commit wrote, and who asked for it. */
export interface Committed { by: string | undefined, changes: readonly Change[], former: Snapshot, next: Snapshot }

/** How often changes are worked out anew when somebody else was faster. */
const tries = 20

/** All that is written down: read from a snapshot in memory, changed by commits that are on disk when they resolve. */
export class Settings extends EventEmitter<{ changed: [next: Snapshot, former: Snapshot], committed: [Committed] }> {
  readonly #store: Store
  readonly #unsubscribe: () => void
  #current: Snapshot
  #last: Promise<unknown> = Promise.resolve()

  static async open (store: Store): Promise<Settings> {
    return new Settings(store, await store.load())
  }

  private constructor (store: Store, current: Snapshot) {
    super()
    this.setMaxListeners(0)
    this.#store = store
    this.#current = current
    this.#unsubscribe = store.onChange((snapshot) => { this.#take(snapshot) })
  }

  get current (): Snapshot { return this.#current }

  /** Why nothing can be written now; undefined: it can. */
  get problem (): string | undefined { return this.#store.health() }

  /**
   * Changes what is written down.
   * @param work the changes, from the newest snapshot; it may run again when somebody else was faster, and throws what is wrong
   * @param by the username of whoever asked for them; undefined: nobody did
   * @returns the snapshot that holds them
   * @throws EditedOnDisk, InvalidChange, StorageFull, DiskFailing, StorageAway
   */
  async change (work: (snapshot: Snapshot) => readonly Change[], by?: string): Promise<Snapshot> {
    // One after the other: a conflict is then always with somebody outside of this process.
    const changing = this.#last.catch(() => {}).then(async () => await this.#change(work, by))
    this.#last = changing
    return await changing
  }

  async #change (work: (snapshot: Snapshot) => readonly Change[], by: string | undefined): Promise<Snapshot> {
    for (let left = tries; ; left--) {
      const base = this.#current
      const asked = work(base)
      if (asked.length === 0) return base
      const changes = [...asked, ...hashTokens(base, asked)]
      try {
        const next = await this.#store.commit(changes, base.version)
        this.#take(next)
        this.emit('committed', { by, changes: asked, former: base, next })
        return next
      } catch (error) {
        if (error instanceof Conflict) {
          if (left > 0 && this.#current !== base) continue
          if (error.edited) throw new errors.EditedOnDisk(error.message)
          if (left > 0) { await new Promise((resolve) => { setImmediate(resolve) }); continue }
          throw new errors.StorageAway('too many changes at once')
        }
        if (error instanceof Invalid) throw new errors.InvalidChange(error.message)
        if (error instanceof StorageError && error.failing) throw new errors.DiskFailing()
        if (error instanceof StorageError) throw error.full ? new errors.StorageFull() : new errors.StorageAway(error.message)
        throw error
      }
    }
  }

  async close (): Promise<void> {
    this.#unsubscribe()
    await this.#store.close()
  }

  #take (next: Snapshot): void {
    if (next.version <= this.#current.version) return
    const former = this.#current
    this.#current = next
    this.emit('changed', next, former)
  }
}

/** Tokens that somebody wrote into the settings file in plain go into it as hashes, now that it is written anyway. */
function hashTokens ({ keys }: Snapshot, asked: readonly Change[]): Change[] {
  const touched = new Set(asked.flatMap((change) => change.entity === 'bearerKeys' ? [change.key] : []))
  return [...keys.values()].flatMap((key): Change[] => {
    const { token, ...rest } = key
    if (token === undefined || touched.has(key.id)) return []
    return [{ entity: 'bearerKeys', key: key.id, value: { ...rest, tokenHash: key.tokenHash ?? sha256(token), tokenMask: key.tokenMask ?? maskToken(token) } }]
  })
}
