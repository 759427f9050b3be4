import type { OneTimeValues, TakeResult } from '../ports/grants.ts'
import { recordCollections, tombstoneRetention, type RecordCollection, type Records } from '../records.ts'
import { StorageError } from '../store.ts'

interface StoredValue { readonly family: string, readonly value?: unknown, readonly isTaken?: true }

/** One-time values as records under their hashes. A value that is taken is replaced by a record of its family. */
export class RecordedOneTimeValues implements OneTimeValues {
  readonly #records: Records
  readonly #grants: RecordCollection

  constructor (records: Records, grants: RecordCollection = recordCollections.grants) {
    this.#records = records
    this.#grants = grants
  }

  async put (hash: string, family: string, value: unknown, expiresAt: number): Promise<void> {
    await this.#records.put(
      this.#grants, [{ key: hash, value: { family, value } satisfies StoredValue, owner: 'waiting', expiresAt }]
    )
  }

  async take (hash: string): Promise<TakeResult | undefined> {
    for (;;) {
      const found = await this.#records.find(this.#grants, hash)
      if (found === undefined) return undefined
      if (found.isLocked) throw new StorageError('A grant is sealed with a key that is not available.', false)
      const { family, value, isTaken } = found.value as StoredValue
      if (isTaken) return { first: false, family }
      const taken = {
        key: hash, value: { family, isTaken: true } satisfies StoredValue, owner: 'taken', expiresIn: tombstoneRetention
      }
      if (await this.#records.swap(this.#grants, found.version, taken)) return { first: true, family, value }
    }
  }
}
