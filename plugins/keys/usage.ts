import type { Change, Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'
import type { Settings } from '../settings/settings.ts'
import { withoutToken } from '../settings/hashed-key.ts'

/** When keys were last used: in memory at once, written down by `write`. */
export class Usage {
  readonly #settings: Settings
  /** By the id of the key, in ms; what is not written down yet. */
  readonly #used = new Map<string, number>()

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** On the path of every call. */
  note ({ id }: BearerKey): void {
    this.#used.set(id, Date.now())
  }

  /** ISO 8601; undefined: never, as far as anybody knows. */
  of (key: BearerKey): string | undefined {
    const used = this.#used.get(key.id)
    return used === undefined || isNewer(key, used) ? key.lastUsedAt : new Date(used).toISOString()
  }

  /** Writes down what is not yet, all in one commit. What could not be written is there for the next time. */
  async write (): Promise<void> {
    if (this.#used.size === 0) return
    const used = [...this.#used]
    await this.#settings.change(({ keys }) => changesOf(keys, used))
    for (const [id, at] of used) if (this.#used.get(id) === at) this.#used.delete(id)
  }
}

/** Whether what is written down of a key is newer: another replica may know better. */
const isNewer = ({ lastUsedAt }: BearerKey, used: number): boolean => lastUsedAt !== undefined && Date.parse(lastUsedAt) >= used

const changesOf = (keys: Snapshot['keys'], used: ReadonlyArray<readonly [id: string, at: number]>): Change[] => used.flatMap(([id, at]) => {
  const key = keys.get(id)
  return key && !isNewer(key, at)
    ? [{ entity: 'bearerKeys' as const, key: id, value: { ...withoutToken(key), lastUsedAt: new Date(at).toISOString() } }]
    : []
})
