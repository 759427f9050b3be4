import type { BearerKey } from '../../schemas/settings.ts'
import { maskToken, sha256 } from '../base/secrets/index.ts'

/** Replaces a plain-text token, which only a hand-edited settings file contains, by its hash and mask. */
export function withHashedToken ({ token, ...key }: BearerKey): BearerKey {
  return token === undefined
    ? key
    : { ...key, tokenHash: key.tokenHash ?? sha256(token), tokenMask: key.tokenMask ?? maskToken(token) }
}
