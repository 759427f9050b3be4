import type { Change, Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { type Settings, withoutToken } from '../../settings/index.ts'

/** The times at which keys were last used: kept in memory, and stored by `write`. */
export class Usage {
  readonly #settings: Settings
  /** By the id of the key, in ms since the epoch; only times that are not stored yet. */
  readonly #used = new Map<string, number>()

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** Notes that a key is used now. On the path of every call. */
  note ({ id }: BearerKey): void {
    this.#used.set(id, Date.now())
  }

  /** The time of last use, ISO 8601; undefined when no use is known. */
  of (key: BearerKey): string | undefined {
    const used = this.#used.get(key.id)
    return used === undefined || isNewer(key, used) ? key.lastUsedAt : new Date(used).toISOString()
  }

  /** Stores the new times in one commit. When that fails, they stay in memory for the next attempt. */
  async write (): Promise<void> {
    if (this.#used.size === 0) return
    const used = [...this.#used]
    await this.#settings.change(({ keys }) => changesOf(keys, used))
    for (const [id, at] of used) if (this.#used.get(id) === at) this.#used.delete(id)
  }
}

/** Whether the stored time of a key is newer, as another replica may have seen a later use. */
const isNewer = ({ lastUsedAt }: BearerKey, used: number): boolean => lastUsedAt !== undefined && Date.parse(lastUsedAt) >= used

const changesOf = (keys: Snapshot['keys'], used: ReadonlyArray<readonly [id: string, at: number]>): Change[] =>
  used.flatMap(([id, at]): Change[] => {
    const key = keys.get(id)
    if (!key || isNewer(key, at)) return []
    return [{ entity: 'bearerKeys', key: id, value: { ...withoutToken(key), lastUsedAt: new Date(at).toISOString() } }]
  })
