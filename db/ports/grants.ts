import { StorageError } from '../errors.ts'
import { recordCollections, tombstoneRetention, RecordPort } from '../records.ts'

const { grants } = recordCollections

/** The result of `OneTimeValues.take`: only the first caller gets the value. */
type TakeResult =
  | { readonly first: true, readonly family: string, readonly value: unknown }
  | { readonly first: false, readonly family: string }

/**
 * Stores values that can be taken once, such as the data of an authorization code or of a login's `state`, as records.
 * A value is keyed by the SHA-256 of the secret that was issued for it. Once it is taken, only its family is kept.
 */
export class OneTimeValues extends RecordPort {
  /**
   * Stores a value.
   * @param hash SHA-256, in hex, of at least 128 random bits
   * @param family the id of the token family to which the tokens issued for the value will belong: a caller that takes
   *   the value a second time gets this id, in order to revoke these tokens
   * @param value plain JSON
   */
  async put (hash: string, family: string, value: unknown, expiresAt: number): Promise<void> {
    await this.records.put(
      grants, [{ key: hash, value: { family, value } satisfies StoredValue, owner: 'waiting', expiresAt }]
    )
  }

  /**
   * Takes a value. If several callers, on any replica, take the same value, exactly one is the first. For an hour, the
   * others get the value's family instead.
   * @returns undefined if the hash is unknown, or the value has expired or was taken more than an hour ago
   * @throws StorageError also if the value cannot be decrypted
   */
  async take (hash: string): Promise<TakeResult | undefined> {
    for (;;) {
      const found = await this.records.find(grants, hash)
      if (found === undefined) return undefined
      if (found.isLocked) throw new StorageError('A grant is sealed with a key that is not available.', false)
      const { family, value, isTaken } = found.value as StoredValue
      if (isTaken) return { first: false, family }
      const taken = {
        key: hash, value: { family, isTaken: true } satisfies StoredValue, owner: 'taken', expiresIn: tombstoneRetention
      }
      if (await this.records.swap(grants, found.version, taken)) return { first: true, family, value }
    }
  }
}

interface StoredValue { readonly family: string, readonly value?: unknown, readonly isTaken?: true }
