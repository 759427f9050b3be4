import { hash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import bcrypt from 'bcryptjs'
import { Semaphore, baseLimits } from '../limits/index.ts'
import { maxScryptMemory, scryptParts, type ScryptCost } from '../../../schemas/password-hash.ts'

/** SHA-256 in hex: for storing tokens of 256 random bits, not for passwords. */
export const sha256 = (text: string): string => hash('sha256', text, 'hex')

/** A token as it may be shown: its first eight and last four characters; only dots for a token of less than 16. */
export const maskToken = (token: string): string =>
  token.length < 16 ? '...' : `${token.slice(0, 8)}...${token.slice(-4)}`

type Derive = (password: string, salt: Buffer, length: number, cost: ScryptCost & { maxmem: number }) => Promise<Buffer>
const derive: Derive = promisify<string, Buffer, number, ScryptCost & { maxmem: number }, Buffer>(scrypt)

/** The second of OWASP's recommendations for scrypt: 32 MiB of memory for each guess. */
const cost: ScryptCost = { N: 2 ** 15, r: 8, p: 3 }
const keyLength = 32
const maxmem = maxScryptMemory

/** A hash that no password matches. It is checked when none is stored, so that both cases take equally long. */
const unmatchable = { cost, salt: Buffer.alloc(16), key: Buffer.alloc(keyLength) }

/**
 * Hashes and checks passwords, `baseLimits.concurrentHashes` at the same time, since each takes CPU time and 32 MiB of
 * memory.
 */
export class Passwords {
  readonly #slots = new Semaphore({ places: baseLimits.concurrentHashes })
  readonly #derive: Derive

  /** @param deriveKey scrypt */
  constructor (deriveKey = derive) {
    this.#derive = deriveKey
  }

  /** The hash of a password as it is stored: `scrypt$N$r$p$salt$key`, salt and key in base64. */
  async hash (password: string): Promise<string> {
    const salt = randomBytes(16)
    const key = await this.#inSlot(async () =>
      await this.#derive(password.normalize('NFKC'), salt, keyLength, { ...cost, maxmem }))
    return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64'), key.toString('base64')].join('$')
  }

  /**
   * Whether a password matches a stored hash. Takes equally long when there is none.
   * @param stored as `hash` made it, or a bcrypt hash of an imported file
   * @param all the hashes of all users: when some of them are bcrypt, every check takes as long as the costliest of
   *   those
   */
  async verify (
    password: string, stored: string | undefined, all: Iterable<string | undefined> = []
  ): Promise<boolean> {
    const parts = parse(stored) ?? unmatchable
    const imported = isImported(stored) ? stored : undefined
    const costliest = costliestOf([...all, imported].filter(isImported))
    return await this.#inSlot(async () => {
      const deriving = this.#derive(password.normalize('NFKC'), parts.salt, parts.key.length, { ...parts.cost, maxmem })
      const compare = async (hash: string | undefined): Promise<boolean> =>
        hash === undefined ? false : await bcrypt.compare(password, hash).catch(() => false)
      const padding = imported === costliest ? undefined : costliest
      const [key, isSame] = await Promise.all([deriving, compare(imported), compare(padding)])
      return parts === unmatchable ? isSame : timingSafeEqual(key, parts.key)
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

/** Whether a hash is bcrypt, which only imported files have. */
const isImported = (stored: string | undefined): stored is string =>
  stored !== undefined && /^\$2[aby]\$\d\d\$/.test(stored)
/** The cost of a bcrypt hash, as a power of 2. */
const costOf = (imported: string): number => Number(imported.slice(4, 6))

const costliestOf = (imported: readonly string[]): string | undefined => {
  const [first, ...others] = imported
  return others.reduce((costliest, each) =>
    costliest === undefined || costOf(each) > costOf(costliest) ? each : costliest, first)
}

/** The parts of a hash that `hash` made; undefined for any other text, and for one whose cost exceeds `maxmem`. */
function parse (stored: string | undefined): { cost: ScryptCost, salt: Buffer, key: Buffer } | undefined {
  const parts = scryptParts(stored)
  return parts && { cost: parts.cost, salt: Buffer.from(parts.salt, 'base64'), key: Buffer.from(parts.key, 'base64') }
}

/**
 * Whether a hash was made with another algorithm or cost, so that the password should be hashed again at the next
 * login.
 */
export const needsRehash = (stored: string): boolean => !stored.startsWith(`scrypt$${cost.N}$${cost.r}$${cost.p}$`)
