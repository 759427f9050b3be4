import type { BearerKey } from '../../schemas/settings.ts'
import { maskToken, sha256 } from '../secrets/hash.ts'

/** A key as it is written down: a token that somebody wrote into the settings in plain becomes a hash and a mask. */
export function withoutToken ({ token, ...key }: BearerKey): BearerKey {
  return token === undefined ? key : { ...key, tokenHash: key.tokenHash ?? sha256(token), tokenMask: key.tokenMask ?? maskToken(token) }
}
