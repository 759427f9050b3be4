import type { Change, Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'
import { maskToken, sha256 } from '../base/secrets/index.ts'

/** Replaces a key's plain-text token, which only a hand-edited settings file contains, by its hash and mask. */
export function withHashedToken ({ token, ...key }: BearerKey): BearerKey {
  return token === undefined
    ? key
    : { ...key, tokenHash: key.tokenHash ?? sha256(token), tokenMask: key.tokenMask ?? maskToken(token) }
}

/**
 * Creates the changes that every commit adds to the requested ones: they replace the plain-text tokens of a hand-edited
 * settings file by hashes. Keys that the requested changes affect are left out.
 */
export function createTokenHashChanges ({ keys }: Snapshot, requested: readonly Change[]): Change[] {
  const touched = new Set(requested.flatMap((change) => change.entity === 'bearerKeys' ? [change.key] : []))
  return [...keys.values()].flatMap((key): Change[] =>
    key.token === undefined || touched.has(key.id)
      ? []
      : [{ entity: 'bearerKeys', key: key.id, value: withHashedToken(key) }]
  )
}
