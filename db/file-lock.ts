import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorCode } from './errors.ts'

/**
 * The content of a lock file. `started`: the start time of the process (`startTimeOf`), which distinguishes the process
 * from a later one with the same pid; `id`: unique for each `FileLock`.
 */
interface LockHolder { readonly pid: number, readonly started?: string, readonly id: string }

/** The error for a lock that another process holds. */
export class LockHeldError extends Error {
  override readonly name = 'LockHeldError'
  /** The pid of the holder; undefined if it is not known. */
  readonly pid: number | undefined

  constructor (pid: number | undefined) {
    super(`in use by another process (pid ${pid ?? 'unknown'})`)
    this.pid = pid
  }
}

/**
 * Returns the start time of a process as a text, which can only be compared with start times on the same machine.
 * @returns `dead` if the process has ended; undefined if the system does not provide the time
 */
function startTimeOf (pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The process name in parentheses may contain any character. After it come the state and, 19 fields later, the
    // start time in ticks since boot.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return 'dead'
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}/${fields[19]}`
  } catch {
    return undefined
  }
}

function isAlive ({ pid, started }: LockHolder): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false
  }
  const now = startTimeOf(pid)
  return now !== 'dead' && (now === undefined || started === undefined || now === started)
}

/**
 * A lock on a file or folder: the file `<path>.lock`. It is held until `release`; the lock of a process that has ended
 * is taken over. The lock excludes only processes on the same machine and in the same container.
 */
export class FileLock {
  readonly #path: string
  readonly #own: LockHolder = { pid: process.pid, started: startTimeOf(process.pid), id: randomUUID() }
  #isHeld = false

  constructor (path: string) {
    this.#path = `${path}.lock`
  }

  /** Whether this object holds the lock. */
  get isHeld (): boolean { return this.#isHeld }

  /** Returns the process id of the running process that holds the lock; undefined if no running process does. */
  findHolder (): number | undefined {
    const holder = this.#read()
    return holder && isAlive(holder) ? holder.pid : undefined
  }

  /**
   * Acquires the lock, unless this object holds it already. Does not wait for another holder.
   * @throws LockHeldError when another process holds the lock; the system's error when the lock file cannot be written
   */
  async acquire (): Promise<void> {
    if (this.#isHeld) return
    const temp = `${this.#path}.${this.#own.id}`
    try {
      writeFileSync(temp, `${JSON.stringify(this.#own)}\n`, { flag: 'wx', mode: 0o600 })
      try {
        linkSync(temp, this.#path)
      } catch {
        // The lock file exists, or the file system has no hard links. Nothing else runs in this process between reading
        // and renaming. If another process does the same at the same time, the last rename wins, and only the process
        // that made it finds its own id afterwards.
        const holder = this.#read()
        if (holder && isAlive(holder)) throw new LockHeldError(holder.pid)
        renameSync(temp, this.#path)
        await sleep(100)
        const newHolder = this.#read()
        if (newHolder?.id !== this.#own.id) throw new LockHeldError(newHolder?.pid)
      }
      this.#isHeld = true
    } finally {
      rmSync(temp, { force: true })
    }
  }

  /** Removes the lock file. If that fails (a read-only file system), the lock ends with this process. */
  release (): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    try {
      if (this.#read()?.id === this.#own.id) rmSync(this.#path, { force: true })
    } catch {}
  }

  /** Reads the lock file. @returns undefined if it does not exist, or its content is not valid */
  #read (): LockHolder | undefined {
    try {
      const value = JSON.parse(readFileSync(this.#path, 'utf8')) as Partial<LockHolder> | null
      if (typeof value?.pid !== 'number' || !Number.isInteger(value.pid) || value.pid <= 0) return undefined
      return {
        pid: value.pid, started: typeof value.started === 'string' ? value.started : undefined, id: String(value.id)
      }
    } catch {
      return undefined
    }
  }
}
