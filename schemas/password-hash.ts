/** The cost parameters of scrypt, with their names in `node:crypto`. */
export interface ScryptCost { readonly N: number, readonly r: number, readonly p: number }

/** Max memory of one scrypt computation, in bytes. A stored hash that needs more is rejected without a computation. */
export const maxScryptMemory = 128 * 1024 * 1024

/**
 * Parses a hash of the form `scrypt$N$r$p$salt$key`, with salt and key in base64; undefined for any other text, and for
 * a hash that exceeds `maxScryptMemory`.
 */
export function parseScryptHash (
  stored: string | undefined
): { cost: ScryptCost, salt: string, key: string } | undefined {
  const [, N, r, p, salt = '', key = ''] =
    /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]{22,})$/.exec(stored ?? '') ?? []
  const cost: ScryptCost = { N: Number(N), r: Number(r), p: Number(p) }
  const isValid = cost.N > 1 && Number.isInteger(Math.log2(cost.N)) && cost.r > 0 && cost.p > 0
  const fits = 128 * cost.r * (cost.N + cost.p + 2) <= maxScryptMemory
  return isValid && fits ? { cost, salt, key } : undefined
}

/**
 * Whether a stored password is a hash that a login can be checked against: a valid scrypt hash, or a complete bcrypt
 * hash.
 */
export const isUsablePasswordHash = (stored: string): boolean =>
  parseScryptHash(stored) !== undefined || /^\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/.test(stored)
