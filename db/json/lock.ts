import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from './write.ts'

/** Who holds a lock: a process, and when it started, since pids are used again. */
interface Holder { readonly pid: number, readonly started?: string, readonly id: string }

/** Another process works on the file. */
export class Held extends Error {
  override readonly name = 'Held'
}

/** When a process started, in words that only mean something on this machine; undefined where the system does not tell. `dead`: it is none. */
function startOf (pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold anything; after it come the state and, 19 further, the start in ticks since boot.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return 'dead'
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}/${fields[19]}`
  } catch {
    return undefined
  }
}

function isAlive ({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false
  }
  const now = startOf(pid)
  return now !== 'dead' && (now === undefined || started === undefined || now === started)
}

/**
 * A lock on a file for as long as this process lives: `<path>.lock`. One left by a process that is gone is taken over. It sees
 * the processes of this machine and container only.
 */
export class FileLock {
  readonly #path: string
  readonly #mine: Holder = { pid: process.pid, started: startOf(process.pid), id: randomUUID() }
  #held = false

  constructor (path: string) {
    this.#path = `${path}.lock`
  }

  get held (): boolean { return this.#held }

  /** Takes the lock, once. @throws Held with a sentence, or the system's error */
  async hold (): Promise<void> {
    if (this.#held) return
    const temp = `${this.#path}.${this.#mine.id}`
    try {
      writeFileSync(temp, `${JSON.stringify(this.#mine)}\n`, { flag: 'wx', mode: 0o600 })
      try {
        linkSync(temp, this.#path)
      } catch {
        // There already, or a file system without links. Looking and renaming are one moment here; who does it at the very same
        // one renames last, and only that one finds its own mark afterwards.
        const holder = this.#read()
        if (holder && isAlive(holder)) throw new Held(`in use by another process (pid ${holder.pid})`)
        renameSync(temp, this.#path)
        await sleep(100)
        const now = this.#read()
        if (now?.id !== this.#mine.id) throw new Held(`in use by another process (pid ${now?.pid ?? 'unknown'})`)
      }
      this.#held = true
    } finally {
      rmSync(temp, { force: true })
    }
  }

  release (): void {
    if (!this.#held) return
    this.#held = false
    if (this.#read()?.id === this.#mine.id) rmSync(this.#path, { force: true })
  }

  #read (): Holder | undefined {
    try {
      const value = JSON.parse(readFileSync(this.#path, 'utf8')) as Partial<Holder> | null
      if (typeof value?.pid !== 'number' || !Number.isInteger(value.pid) || value.pid <= 0) return undefined
      return { pid: value.pid, started: typeof value.started === 'string' ? value.started : undefined, id: String(value.id) }
    } catch {
      return undefined
    }
  }
}
