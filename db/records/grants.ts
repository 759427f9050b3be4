import type { Grants, Taken } from '../ports/grants.ts'
import { collections, retention, type Collection, type Records } from '../records.ts'
import { StorageError } from '../store.ts'

interface Stored { readonly family: string, readonly value?: unknown, readonly isTaken?: true }

/** Grants, stored as records under their hashes. A taken grant is replaced by a record of its family. */
export class RecordedGrants implements Grants {
  readonly #records: Records
  readonly #grants: Collection

  constructor (records: Records, grants: Collection = collections.grants) {
    this.#records = records
    this.#grants = grants
  }

  async put (hash: string, family: string, value: unknown, expiresAt: number): Promise<void> {
    await this.#records.put(
      this.#grants, [{ key: hash, value: { family, value } satisfies Stored, owner: 'waiting', expiresAt }]
    )
  }

  async take (hash: string): Promise<Taken | undefined> {
    for (;;) {
      const found = await this.#records.find(this.#grants, hash)
      if (found === undefined) return undefined
      if (found.isLocked) throw new StorageError('A grant is sealed with a key that is not available.', false)
      const { family, value, isTaken } = found.value as Stored
      if (isTaken) return { first: false, family }
      const taken = {
        key: hash, value: { family, isTaken: true } satisfies Stored, owner: 'taken', expiresIn: retention
      }
      if (await this.#records.swap(this.#grants, found.version, taken)) return { first: true, family, value }
    }
  }
}
