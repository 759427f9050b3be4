import type { Change, Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { type Settings, withHashedToken } from '../../settings/index.ts'

/** The times of last use of keys, kept in memory until `write` stores them. */
export class KeyUsage {
  readonly #settings: Settings
  /** The times of last use that are not stored yet, in ms since 1970, by key id. */
  readonly #used = new Map<string, number>()

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** Records that a key was used now. Runs for each request with a bearer key. */
  recordUse ({ id }: BearerKey): void {
    this.#used.set(id, Date.now())
  }

  /** Returns the time of last use in ISO 8601; undefined if no use is known. */
  lastUseOf (key: BearerKey): string | undefined {
    const used = this.#used.get(key.id)
    return used === undefined || isNewer(key, used) ? key.lastUsedAt : new Date(used).toISOString()
  }

  /** Stores the new times in one commit. If that fails, they stay in memory for the next attempt. */
  async write (): Promise<void> {
    if (this.#used.size === 0) return
    const used = [...this.#used]
    await this.#settings.change(({ keys }) => changesOf(keys, used))
    for (const [id, at] of used) if (this.#used.get(id) === at) this.#used.delete(id)
  }
}

/** Whether the stored time of a key is not before `used`: another replica may have recorded a later use. */
const isNewer = ({ lastUsedAt }: BearerKey, used: number): boolean =>
  lastUsedAt !== undefined && Date.parse(lastUsedAt) >= used

const changesOf = (keys: Snapshot['keys'], used: ReadonlyArray<readonly [id: string, at: number]>): Change[] =>
  used.flatMap(([id, at]): Change[] => {
    const key = keys.get(id)
    if (!key || isNewer(key, at)) return []
    return [{
      entity: 'bearerKeys',
      key: id,
      value: {
        ...withHashedToken(key),
        lastUsedAt: new Date(at).toISOString()
      }
    }]
  })
