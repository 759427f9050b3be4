import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import bcrypt from 'bcryptjs'

const derive = promisify<string, Buffer, number, { N: number, r: number, p: number, maxmem: number }, Buffer>(scrypt)

/** OWASP's second choice for scrypt: 32 MiB of memory for each guess. */
const cost = { N: 2 ** 15, r: 8, p: 3 }
const keyLength = 32
const maxmem = 128 * 1024 * 1024

/** A password as it is kept: `scrypt$N$r$p$salt$key`, base64. */
export async function hashPassword (password: string): Promise<string> {
  const salt = randomBytes(16)
  const key = await derive(password.normalize('NFKC'), salt, keyLength, { ...cost, maxmem })
  return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64'), key.toString('base64')].join('$')
}

/** Nobody's password: what an unknown user's is compared with, so that it takes as long. Made when it is first needed. */
let nobody: Promise<string> | undefined

/**
 * Whether a password is the one that was kept; equal work whether there is one or not.
 * @param stored as `hashPassword` made it, or bcrypt of an imported file
 */
export async function verifyPassword (password: string, stored: string | undefined): Promise<boolean> {
  if (stored !== undefined && /^\$2[aby]\$/.test(stored)) return await bcrypt.compare(password, stored)
  const [scheme, N, r, p, salt, key] = (stored ?? await (nobody ??= hashPassword(randomBytes(32).toString('hex')))).split('$')
  if (scheme !== 'scrypt' || salt === undefined || key === undefined) return false
  const expected = Buffer.from(key, 'base64')
  const actual = await derive(password.normalize('NFKC'), Buffer.from(salt, 'base64'), expected.length, { N: Number(N), r: Number(r), p: Number(p), maxmem })
  return timingSafeEqual(actual, expected) && stored !== undefined
}

/** True for what should be hashed anew, now that the password is at hand. */
export const isOutdated = (stored: string): boolean => !stored.startsWith(`scrypt$${cost.N}$${cost.r}$${cost.p}$`)
