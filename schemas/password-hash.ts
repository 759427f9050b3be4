/** The costs of scrypt, as `node:crypto` names them. */
export interface ScryptCost { readonly N: number, readonly r: number, readonly p: number }

/** Max memory of one scrypt hash, in bytes: one whose cost exceeds it is not checked. */
export const maxScryptMemory = 128 * 1024 * 1024

/**
 * The parts of a hash of the form `scrypt$N$r$p$salt$key`, salt and key in base64; undefined for any other text, and
 * beyond the memory.
 */
export function scryptParts (stored: string | undefined): { cost: ScryptCost, salt: string, key: string } | undefined {
  const [, N, r, p, salt = '', key = ''] =
    /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]{22,})$/.exec(stored ?? '') ?? []
  const cost: ScryptCost = { N: Number(N), r: Number(r), p: Number(p) }
  const isValid = cost.N > 1 && Number.isInteger(Math.log2(cost.N)) && cost.r > 0 && cost.p > 0
  const fits = 128 * cost.r * (cost.N + cost.p + 2) <= maxScryptMemory
  return isValid && fits ? { cost, salt, key } : undefined
}

/** Whether a stored password is a hash that a login can be checked against: one of scrypt, or a whole one of bcrypt. */
export const isUsableHash = (stored: string): boolean =>
  scryptParts(stored) !== undefined || /^\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/.test(stored)
