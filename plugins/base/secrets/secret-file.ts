import { randomBytes } from 'node:crypto'
import {
  closeSync, constants, fstatSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorCode } from '../../../db/errors.ts'
import { makeFolder } from '../../../db/folder.ts'
import { StorageError } from '../../../db/store.ts'
import type { Env } from '../../../schemas/env.ts'

/** The name of a secret file, and words for messages about the file. */
interface SecretFileKind {
  /** The file name in DATA_DIR. */
  readonly name: string
  /** The secret in the file, in words. */
  readonly noun: string
  /** The environment variable that can be set instead of the file. */
  readonly variable: string
  /** What to do if the content is not valid, as sentences. */
  readonly remedy: string
}

/** A file in DATA_DIR with 32 random bytes in hex, readable by its owner only. */
export class SecretFile {
  readonly #path: string
  readonly #kind: SecretFileKind
  #secret: Buffer | undefined

  constructor (dataDir: string, kind: SecretFileKind) {
    this.#path = join(resolve(dataDir), kind.name)
    this.#kind = kind
  }

  /** Reads the bytes; undefined if there is no file. @throws Error with a sentence if the file cannot be used */
  read (): Buffer | undefined {
    this.#secret ??= this.#read()
    return this.#secret
  }

  /**
   * Creates the file unless it exists, and returns its bytes. If several processes do so at the same time, all get the
   * bytes of the first.
   * @throws StorageError if it cannot be written, Error with a sentence if an existing file cannot be used
   */
  create (): Buffer {
    const folder = dirname(this.#path)
    try {
      const first = makeFolder(folder, 'DATA_DIR')
      this.#link()
      // If folders were created, the entry of each one in its parent must be durable, too.
      for (let at = folder; ; at = dirname(at)) {
        syncFolder(at)
        if (first === undefined || at.length < first.length || at === dirname(at)) break
      }
    } catch (error) {
      const code = errorCode(error) ?? 'unknown error'
      const isFull = code === 'ENOSPC' || code === 'EDQUOT'
      const advice = isFull ? 'Free some space there' : 'Make that folder writable'
      throw new StorageError(
        `The ${this.#kind.noun} cannot be written into DATA_DIR (${code}). ${advice}, or set ${this.#kind.variable}.`,
        isFull,
        code === 'EIO'
      )
    }
    const secret = this.read()
    if (secret === undefined) {
      throw new StorageError(`The ${this.#kind.noun} disappeared from DATA_DIR while it was being created.`, false)
    }
    return secret
  }

  /**
   * Writes the file unless it exists. A hard link appears with its whole content and never replaces a file, so no
   * process reads half a key, and the first key is kept.
   */
  #link (): void {
    const temp = `${this.#path}.${randomBytes(6).toString('hex')}`
    try {
      writeFileSync(temp, `${randomBytes(32).toString('hex')}\n`, { flag: 'wx', mode: 0o600, flush: true })
      linkSync(temp, this.#path)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    } finally {
      rmSync(temp, { force: true })
    }
  }

  #read (): Buffer | undefined {
    let file: number
    try {
      // O_NONBLOCK: opening a named pipe would block until somebody writes to it.
      file = openSync(this.#path, constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      const code = errorCode(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw new Error(`The key file ${this.#path} cannot be read ` +
        `(${code}). Make the gateway's user its owner, with mode 600.`)
    }
    try {
      const stats = fstatSync(file)
      if (!stats.isFile()) {
        throw new Error(
          `${this.#path} is not a regular file. Put the key file there, or set DATA_DIR to another folder.`
        )
      }
      if (process.platform !== 'win32' && (stats.mode & 0o077) !== 0) {
        const mode = (stats.mode & 0o777).toString(8)
        throw new Error(`The key file ${this.#path} is accessible to users other than its owner (mode ${mode}). Run ` +
          `chmod 600 ${this.#path}`)
      }
      const text = stats.size > 1_024 ? undefined : readFileSync(file, 'utf8').trim()
      if (text !== undefined && /^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
      const problem = text === '' ? 'is empty' : 'does not contain 64 hexadecimal digits'
      throw new Error(
        `The key file ${this.#path} ${problem}, and was not changed. ${this.#kind.remedy}`
      )
    } finally {
      closeSync(file)
    }
  }
}

/** Makes the entries of a folder durable. File systems that do not support fsync of folders do not need it. */
function syncFolder (path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR'].includes(errorCode(error) ?? '')) throw error
  } finally {
    closeSync(folder)
  }
}

/** What to set JWT_SECRET to, as the end of a sentence. */
export const loginSecretAdvice = 'at least 32 random bytes, for example from "openssl rand -hex 32"'

const loginKeyFile = (dataDir: string): SecretFile => new SecretFile(dataDir, {
  name: 'login.key',
  noun: 'secret of logins',
  variable: 'JWT_SECRET',
  remedy: 'Delete it: a new one is then generated, and all logins end.'
})

/**
 * Returns a warning if replicas may have different secrets and then reject each other's logins; otherwise undefined.
 */
export const replicasProblem = (
  { JWT_SECRET: given, DB_URL: dbUrl }: Pick<Env, 'JWT_SECRET' | 'DB_URL'>
): string | undefined =>
  given !== undefined || dbUrl === undefined || dbUrl.startsWith('pglite:')
    ? undefined
    : 'JWT_SECRET is not set, so a secret in DATA_DIR signs logins: several gateways on one database each accept ' +
      `only their own logins. Set it to ${loginSecretAdvice}`

/** Checks the file with the login secret, if it exists. @throws Error with a sentence if the file cannot be used */
export const checkLoginSecretFile = (dataDir: string): void => { loginKeyFile(dataDir).read() }

/**
 * Returns the secret that signs login tokens: JWT_SECRET, or a secret that is created once and stored in DATA_DIR, so
 * that logins survive a restart.
 * @param warn called with a sentence if the secret cannot be stored, or if replicas may have different secrets
 * @returns undefined if the secret cannot be stored
 * @throws Error with a sentence if the file cannot be used
 */
export function readOrCreateLoginSecret (
  env: Pick<Env, 'JWT_SECRET' | 'DB_URL'>, dataDir: string, warn: (sentence: string) => void
): string | undefined {
  const problem = replicasProblem(env)
  if (problem !== undefined) warn(problem)
  if (env.JWT_SECRET !== undefined) return env.JWT_SECRET
  const file = loginKeyFile(dataDir)
  try {
    return (file.read() ?? file.create()).toString('hex')
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    warn(error.message)
    return undefined
  }
}
