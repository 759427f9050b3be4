import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import bcrypt from 'bcryptjs'
import { limits } from '../limits/index.ts'
import { Semaphore } from '../limits/semaphore.ts'

interface Cost { N: number, r: number, p: number }

const derive = promisify<string, Buffer, number, Cost & { maxmem: number }, Buffer>(scrypt)

/** OWASP's second choice for scrypt: 32 MiB of memory for each guess. */
const cost: Cost = { N: 2 ** 15, r: 8, p: 3 }
const keyLength = 32
const maxmem = 128 * 1024 * 1024

/** Nobody's password: what is worked on where there is none to compare with, so that it takes as long. */
const nobody = { cost, salt: Buffer.alloc(16), key: Buffer.alloc(keyLength) }

/** Hashes and checks passwords, a few at once: each takes a tenth of a second of a core, and memory. */
export class Passwords {
  readonly #slots = new Semaphore(limits.concurrentHashes)

  /** A password as it is kept: `scrypt$N$r$p$salt$key`, base64. */
  async hash (password: string): Promise<string> {
    const salt = randomBytes(16)
    const key = await this.#inSlot(async () => await derive(password.normalize('NFKC'), salt, keyLength, { ...cost, maxmem }))
    return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64'), key.toString('base64')].join('$')
  }

  /**
   * Whether a password is the one that was kept; no less work where there is none.
   * @param stored as `hash` made it, or bcrypt of an imported file
   * @param all what is stored of anybody: where some are imported, checking takes for all as long as for these
   */
  async verify (password: string, stored: string | undefined, all: Iterable<string | undefined> = []): Promise<boolean> {
    const kept = read(stored) ?? nobody
    const imported = isImported(stored) ? stored : undefined
    const costliest = [...all, imported]
      .filter(isImported)
      .reduce<string | undefined>((most, each) => (most === undefined || costOf(each) > costOf(most) ? each : most), undefined)
    return await this.#inSlot(async () => {
      const deriving = derive(password.normalize('NFKC'), kept.salt, kept.key.length, { ...kept.cost, maxmem })
      const compare = async (hash: string | undefined): Promise<boolean> =>
        hash === undefined ? false : await bcrypt.compare(password, hash).catch(() => false)
      const [key, same] = await Promise.all([deriving, compare(imported), imported === costliest ? false : compare(costliest)])
      return kept === nobody ? same : timingSafeEqual(key, kept.key)
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

const isImported = (stored: string | undefined): stored is string => stored !== undefined && /^\$2[aby]\$\d\d\$/.test(stored)
const costOf = (imported: string): number => Number(imported.slice(4, 6))

/** What `hash` made, in its parts; undefined: it is none of ours, or asks for more than we give. */
function read (stored: string | undefined): { cost: Cost, salt: Buffer, key: Buffer } | undefined {
  const [, N, r, p, salt = '', key = ''] =
    /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]{22,})$/.exec(stored ?? '') ?? []
  const asked = { N: Number(N), r: Number(r), p: Number(p) }
  const fits =
    asked.N > 1 && Number.isInteger(Math.log2(asked.N)) && asked.r > 0 && asked.p > 0 && 128 * asked.r * (asked.N + asked.p + 2) <= maxmem
  return fits ? { cost: asked, salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') } : undefined
}

/** True for what should be hashed anew, now that the password is at hand. */
export const isOutdated = (stored: string): boolean => !stored.startsWith(`scrypt$${cost.N}$${cost.r}$${cost.p}$`)
