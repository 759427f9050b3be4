import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorCode } from '../../../db/error-code.ts'
import { makeFolderSync } from '../../../db/folder.ts'
import { StorageError } from '../../../db/store.ts'

/** What a secret file is for, as its messages say it. */
interface SecretFileKind {
  /** Its name in DATA_DIR. */
  readonly name: string
  readonly noun: string
  /** The variable that stands for it. */
  readonly variable: string
  /** What to do where its content is lost. */
  readonly remedy: string
}

/** 32 random bytes of a gateway whose operator has chosen none: a file in DATA_DIR, for its owner only, created once. */
export class SecretFile {
  readonly #path: string
  readonly #kind: SecretFileKind
  #secret: Buffer | undefined

  constructor (dataDir: string, kind: SecretFileKind) {
    this.#path = join(resolve(dataDir), kind.name)
    this.#kind = kind
  }

  /** The bytes; undefined when there is no file. @throws Error with a sentence for a file that cannot be used */
  read (): Buffer | undefined {
    this.#secret ??= this.#read()
    return this.#secret
  }

  /** Creates the file. Of several processes that do so at once, one wins, and all get its bytes. @throws StorageError */
  create (): Buffer {
    const folder = dirname(this.#path)
    try {
      const first = makeFolderSync(folder, 'DATA_DIR')
      this.#link()
      // Every created folder is an entry of its parent, which must be durable, too.
      for (let at = folder; ; at = dirname(at)) {
        syncFolder(at)
        if (first === undefined || at.length < first.length || at === dirname(at)) break
      }
    } catch (error) {
      const code = errorCode(error) ?? 'unknown error'
      throw new StorageError(
        `The ${this.#kind.noun} cannot be written into DATA_DIR (${code}). Make that folder writable, or set ${this.#kind.variable}.`,
        code === 'ENOSPC' || code === 'EDQUOT',
        code === 'EIO'
      )
    }
    const secret = this.read()
    if (secret === undefined) throw new StorageError(`The ${this.#kind.noun} vanished from DATA_DIR while it was created.`, false)
    return secret
  }

  /**
   * Writes the file unless there is one. A hard link appears with its whole content and never replaces a file: no process reads half a
   * key, and the first key stays.
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
      // O_NONBLOCK: opening a named pipe would wait for a writer otherwise.
      file = openSync(this.#path, constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      const code = errorCode(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw new Error(`The key file ${this.#path} cannot be read (${code}). Let the gateway's user own it, with mode 600.`)
    }
    try {
      const stats = fstatSync(file)
      if (!stats.isFile()) {
        throw new Error(`${this.#path} is not a regular file. Put the key file there, or set DATA_DIR to another folder.`)
      }
      if (process.platform !== 'win32' && (stats.mode & 0o077) !== 0) {
        const mode = (stats.mode & 0o777).toString(8)
        throw new Error(`The key file ${this.#path} is open to others than its owner (mode ${mode}). Close it: chmod 600 ${this.#path}`)
      }
      const text = stats.size > 1_024 ? undefined : readFileSync(file, 'utf8').trim()
      if (text !== undefined && /^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
      const problem = text === '' ? 'is empty' : 'does not hold 64 hexadecimal digits'
      throw new Error(
        `The key file ${this.#path} ${problem}, and is left as it is. ${this.#kind.remedy}`
      )
    } finally {
      closeSync(file)
    }
  }
}

/** Makes the entries of a folder durable. Some file systems do not support fsync of folders, and do not need it. */
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
