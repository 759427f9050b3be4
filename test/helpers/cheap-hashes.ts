import crypto, { type BinaryLike, type ScryptOptions } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Makes scrypt take a 256th of its time in this process. For tests that make many accounts: a hash takes a quarter of a second of a core.
 * Import it first. A process with the whole cost cannot check the hashes.
 */
const whole = crypto.scrypt
type Done = (error: Error | null, key: Buffer) => void
const cheap = (password: BinaryLike, salt: BinaryLike, length: number, options: ScryptOptions, done: Done): void => {
  whole(password, salt, length, { ...options, N: Math.max(2, (options.N ?? 2 ** 14) / 256) }, done)
}
Object.assign(crypto, { scrypt: cheap })
syncBuiltinESMExports()
