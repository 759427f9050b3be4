import type { BearerKey } from '../../schemas/settings.ts'
import { maskToken, sha256 } from '../base/secrets/index.ts'

/** A key as it is stored: a plain token, which only an edited settings file has, is replaced by its hash and mask. */
export function withoutToken ({ token, ...key }: BearerKey): BearerKey {
  return token === undefined
    ? key
    : { ...key, tokenHash: key.tokenHash ?? sha256(token), tokenMask: key.tokenMask ?? maskToken(token) }
}
