import { hash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import bcrypt from 'bcryptjs'
import { Semaphore, baseLimits } from '../limits/index.ts'
import { maxScryptMemory, parseScryptHash, type ScryptCost } from '../../../schemas/password-hash.ts'

/** Returns the SHA-256 in hex. For tokens of 256 random bits; it is too fast for passwords. */
export const sha256 = (text: string): string => hash('sha256', text, 'hex')

/** Masks a token for display: shows its first eight and last four characters; none if it is shorter than 16. */
export const maskToken = (token: string): string =>
  token.length < 16 ? '...' : `${token.slice(0, 8)}...${token.slice(-4)}`

type Derive = (
  password: string, salt: Buffer, length: number, scryptCost: ScryptCost & { maxmem: number }
) => Promise<Buffer>
const derive: Derive = promisify<string, Buffer, number, ScryptCost & { maxmem: number }, Buffer>(scrypt)

/** The scrypt parameters of new hashes, as recommended by OWASP. Computing a hash takes 32 MiB of memory. */
const cost: ScryptCost = { N: 2 ** 15, r: 8, p: 3 }
const keyLength = 32
const maxmem = maxScryptMemory

/** Stands in for a scrypt hash if none is stored, so that both cases take equally long. No password matches it. */
const dummyHash = { cost, salt: Buffer.alloc(16), key: Buffer.alloc(keyLength) }

/** Hashes and verifies passwords, `baseLimits.concurrentHashes` at a time: each takes CPU time and 32 MiB. */
export class Passwords {
  readonly #slots = new Semaphore({ places: baseLimits.concurrentHashes })
  readonly #derive: Derive

  /** @param deriveKey the key derivation function; default: scrypt */
  constructor (deriveKey = derive) {
    this.#derive = deriveKey
  }

  /** Hashes a password for storage: `scrypt$N$r$p$salt$key`, salt and key in base64. */
  async hash (password: string): Promise<string> {
    const salt = randomBytes(16)
    const key = await this.#inSlot(async () =>
      await this.#derive(password.normalize('NFKC'), salt, keyLength, { ...cost, maxmem }))
    return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64'), key.toString('base64')].join('$')
  }

  /**
   * Whether a password matches a stored hash. Takes equally long if there is none.
   * @param stored a result of `hash`, or a bcrypt hash from an imported file; undefined if there is none
   * @param all the stored hashes of all users; each check takes as long as one against the costliest bcrypt hash in it
   */
  async verify (
    password: string, stored: string | undefined, all: Iterable<string | undefined> = []
  ): Promise<boolean> {
    const parts = parse(stored) ?? dummyHash
    const bcryptHash = isBcrypt(stored) ? stored : undefined
    const costliest = costliestOf([...all, bcryptHash].filter(isBcrypt))
    return await this.#inSlot(async () => {
      const deriving = this.#derive(password.normalize('NFKC'), parts.salt, parts.key.length, { ...parts.cost, maxmem })
      const compare = async (hash: string | undefined): Promise<boolean> =>
        hash === undefined ? false : await bcrypt.compare(password, hash).catch(() => false)
      const padding = bcryptHash === costliest ? undefined : costliest
      const [key, isSame] = await Promise.all([deriving, compare(bcryptHash), compare(padding)])
      return parts === dummyHash ? isSame : timingSafeEqual(key, parts.key)
    })
  }

  async #inSlot<Value> (work: () => Promise<Value>): Promise<Value> {
    const release = await this.#slots.take()
    try {
      return await work()
    } finally {
      release()
    }
  }
}

/** Whether a stored hash is a bcrypt hash. Such hashes come only from imported files. */
const isBcrypt = (stored: string | undefined): stored is string =>
  stored !== undefined && /^\$2[aby]\$\d\d\$/.test(stored)
/** The cost parameter of a bcrypt hash. */
const costOf = (bcryptHash: string): number => Number(bcryptHash.slice(4, 6))

const costliestOf = (bcryptHashes: readonly string[]): string | undefined => {
  const [first, ...others] = bcryptHashes
  return others.reduce((costliest, each) =>
    costliest === undefined || costOf(each) > costOf(costliest) ? each : costliest, first)
}

/** Parses a result of `hash`; undefined for any other text, and for a cost that exceeds `maxmem`. */
function parse (stored: string | undefined): { cost: ScryptCost, salt: Buffer, key: Buffer } | undefined {
  const parts = parseScryptHash(stored)
  return parts && { cost: parts.cost, salt: Buffer.from(parts.salt, 'base64'), key: Buffer.from(parts.key, 'base64') }
}

/** Whether a hash has another algorithm or cost than new hashes, so that the password should be hashed again. */
export const needsRehash = (stored: string): boolean => !stored.startsWith(`scrypt$${cost.N}$${cost.r}$${cost.p}$`)
