import { EventEmitter } from 'node:events'
import { Conflict, Invalid, StorageError, type Change, type Snapshot, type Store } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { withoutToken } from './hashed-key.ts'

/** What one commit wrote, and who asked for it. */
export interface Committed { by: string | undefined, changes: readonly Change[], former: Snapshot, next: Snapshot }

/** How often changes are worked out anew when somebody else was faster. */
const tries = 20

/** All that is written down: read from a snapshot in memory, changed by commits that are on disk when they resolve. */
export class Settings extends EventEmitter<{ changed: [next: Snapshot, former: Snapshot], committed: [Committed] }> {
  readonly #store: Store
  readonly #readonly: boolean
  readonly #unsubscribe: () => void
  #current: Snapshot
  #last: Promise<unknown> = Promise.resolve()

  /** @param readonly whether nobody may change anything (READONLY) */
  static async open (store: Store, readonly = false): Promise<Settings> {
    return new Settings(store, await store.load(), readonly)
  }

  private constructor (store: Store, current: Snapshot, readonly: boolean) {
    super()
    this.setMaxListeners(0)
    this.#store = store
    this.#readonly = readonly
    this.#current = current
    this.#unsubscribe = store.onChange((snapshot) => { this.#take(snapshot) })
  }

  get current (): Snapshot { return this.#current }

  /** Why the store cannot do now what it is there for; undefined: it can. */
  get problem (): string | undefined { return this.#store.health(this.#readonly) }

  /**
   * Changes what is written down.
   * @param work the changes, from the newest snapshot; it may run again when somebody else was faster, and throws what is wrong
   * @param by whoever asked for them: each snapshot that they are worked out from is asked whether it still may. Only a name: it is
   * known to be right. undefined: nobody asked
   * @returns the snapshot that holds them
   * @throws Unauthorized, Forbidden, EditedOnDisk, InvalidChange, StorageFull, DiskFailing, StorageAway
   */
  async change (work: (snapshot: Snapshot) => readonly Change[], by?: Principal | string): Promise<Snapshot> {
    // One after the other: a conflict is then always with somebody outside of this process.
    const changing = this.#last.catch(() => {}).then(async () => await this.#change(work, by))
    this.#last = changing
    return await changing
  }

  async #change (work: (snapshot: Snapshot) => readonly Change[], by: Principal | string | undefined): Promise<Snapshot> {
    const username = typeof by === 'string' ? by : by?.username
    for (let left = tries; ; left--) {
      const base = this.#current
      if (typeof by === 'object') mustStand(base, by)
      const asked = work(base)
      if (asked.length === 0) return base
      // First of all, since what is asked may change the same keys: a server's new name goes into them.
      const changes = [...hashTokens(base, asked), ...asked]
      try {
        const next = await this.#store.commit(changes, base.version)
        this.#take(next)
        this.emit('committed', { by: username, changes: asked, former: base, next })
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

  /** Resolves when all changes that are under way have ended; those that wait for the store after so many ms are given up. */
  async drain (ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#store.hurry?.()
        resolve()
      }, ms)
    })
    await Promise.race([late, this.#settled()])
    clearTimeout(timer)
  }

  async #settled (): Promise<void> {
    for (let last: unknown; last !== this.#last;) {
      last = this.#last
      await this.#last.catch(() => {})
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

/** Whoever asked may be gone, or have lost its rights, while its request was on the way. @throws Unauthorized, Forbidden */
function mustStand (snapshot: Snapshot, { standing, isAdmin }: Principal): void {
  if (standing === undefined) return
  const now = standing(snapshot)
  if (!now) throw new errors.Unauthorized('This credential is not valid any more, and nothing was changed')
  if (isAdmin && !now.isAdmin) throw new errors.Forbidden('You are no admin any more, and nothing was changed')
}

/** Tokens that somebody wrote into the settings file in plain go into it as hashes, now that it is written anyway. */
function hashTokens ({ keys }: Snapshot, asked: readonly Change[]): Change[] {
  const touched = new Set(asked.flatMap((change) => change.entity === 'bearerKeys' ? [change.key] : []))
  return [...keys.values()].flatMap((key): Change[] =>
    key.token === undefined || touched.has(key.id) ? [] : [{ entity: 'bearerKeys', key: key.id, value: withoutToken(key) }]
  )
}
