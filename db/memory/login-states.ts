import { maxRecords, type Bounds, type LoginState, type LoginStates } from '../ports.ts'

interface Entry { readonly state: LoginState, readonly expiresAt: number }

/** States of browsers of this process alone; a restart ends them. When there are too many, the oldest are removed. */
export class MemoryLoginStates implements LoginStates {
  readonly #bounds: Bounds
  readonly #now: () => number
  readonly #entries = new Map<string, Entry>()
  /** The hash of each state with a uid. */
  readonly #uids = new Map<string, string>()
  /** The hashes of each user's states. */
  readonly #users = new Map<string, Set<string>>()

  /** @param now the clock, in ms since 1970 */
  constructor (bounds: Bounds = { perUser: maxRecords.loginStatesPerUser, all: maxRecords.loginStates }, now = () => Date.now()) {
    this.#bounds = bounds
    this.#now = now
  }

  async put (hash: string, state: LoginState, expiresAt: number): Promise<void> {
    const { uid, username } = state
    // Inserted at the end, so that the first entry is the oldest.
    this.#remove(hash)
    this.#entries.set(hash, { state, expiresAt })
    if (uid !== undefined) this.#uids.set(uid, hash)
    if (username !== undefined) {
      const own = this.#users.get(username) ?? new Set()
      this.#users.set(username, own.add(hash))
      if (own.size > this.#bounds.perUser) this.#remove(firstOf(own))
    }
    if (this.#entries.size > this.#bounds.all) this.#remove(firstOf(this.#entries.keys()))
  }

  async find (hash: string): Promise<LoginState | undefined> {
    const found = this.#entries.get(hash)
    if (found !== undefined && found.expiresAt > this.#now()) return found.state
    this.#remove(hash)
    return undefined
  }

  async findByUid (uid: string): Promise<LoginState | undefined> {
    const hash = this.#uids.get(uid)
    return hash === undefined ? undefined : await this.find(hash)
  }

  async remove (hash: string): Promise<void> {
    this.#remove(hash)
  }

  async removeAll (username: string): Promise<void> {
    for (const hash of [...this.#users.get(username) ?? []]) this.#remove(hash)
  }

  #remove (hash: string | undefined): void {
    const found = hash === undefined ? undefined : this.#entries.get(hash)
    if (hash === undefined || found === undefined) return
    const { uid, username } = found.state
    this.#entries.delete(hash)
    if (uid !== undefined) this.#uids.delete(uid)
    if (username === undefined) return
    const own = this.#users.get(username)
    own?.delete(hash)
    if (own?.size === 0) this.#users.delete(username)
  }
}

const firstOf = (hashes: Iterable<string>): string | undefined => {
  const [first] = hashes
  return first
}
