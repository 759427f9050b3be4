import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A process that was started here. */
export interface Running {
  pid: number
  child: ChildProcess
  /** The time at which it was spawned, by `performance.now()`. */
  spawned: number
  /** The end of its output. */
  output: () => string
}

export interface StartOptions {
  env: Record<string, string>
  /** Opens an IPC channel beside the pipes. */
  ipc?: boolean
}

/** Max characters of output that are kept of each process. */
const maxOutput = 8_000
/** Time from SIGTERM to SIGKILL, in ms. */
const stopTimeout = 12_000

/** The processes under measurement. Each is stopped by its own pid. */
export class Processes {
  readonly #started = new Set<Running>()

  /** Starts a command whose environment is PATH and the given variables. */
  start ([command = '', ...args]: string[], { env, ipc = false }: StartOptions): Running {
    const spawned = performance.now()
    const child = spawn(command, args, {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ipc ? ['ignore', 'pipe', 'pipe', 'ipc'] : ['ignore', 'pipe', 'pipe']
    })
    let output = ''
    const keep = (chunk: unknown): void => { output = (output + String(chunk)).slice(-maxOutput) }
    child.stdout?.on('data', keep)
    child.stderr?.on('data', keep)
    child.on('error', keep)
    if (child.pid === undefined) throw new Error(`could not start ${command}`)
    const running = { pid: child.pid, child, spawned, output: () => output }
    this.#started.add(running)
    return running
  }

  /** Stops a process by SIGTERM, and by SIGKILL after 12 s. */
  async stop (running: Running): Promise<void> {
    this.#started.delete(running)
    const { child } = running
    if (hasEnded(running)) return
    const ended = new Promise((resolve) => { child.once('exit', resolve) })
    child.kill('SIGTERM')
    const killer = setTimeout(() => { child.kill('SIGKILL') }, stopTimeout)
    await ended
    clearTimeout(killer)
  }

  /** The end of the output of each process that was not stopped, also of those that have exited. */
  output (): string {
    return [...this.#started].map(({ child, output }) => `${child.spawnargs.join(' ')}: ${output()}`).join('\n')
  }

  /** Kills all remaining processes without waiting, when this process exits. */
  killAll (): void {
    for (const { child } of this.#started) child.kill('SIGKILL')
  }

  /** Stops all processes by SIGTERM, and by SIGKILL after 12 s. */
  async stopAll (): Promise<void> {
    await Promise.all([...this.#started].map(async (running) => { await this.stop(running) }))
  }
}

function hasEnded ({ child }: Running): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/**
 * Waits until a condition holds, tested every 2 ms; it may throw meanwhile.
 * @returns the time since the process was spawned, in ms
 * @throws where the process ends, or after 30 s
 */
export async function waitFor (condition: () => Promise<boolean>, running: Running): Promise<number> {
  const end = performance.now() + 30_000
  let cause: unknown
  for (;;) {
    try {
      if (await condition()) return performance.now() - running.spawned
    } catch (error) {
      cause = error
    }
    if (hasEnded(running)) throw new Error(`the process ended: ${running.output()}`)
    if (performance.now() > end) throw new Error('not ready after 30 s', { cause })
    await sleep(2)
  }
}

/** CPU time of a process and its live threads so far, in ms: from the scheduler's nanoseconds, else from clock ticks of 10 ms. */
export function cpuTime (pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + scheduled(pid, thread), 0)
  return nanoseconds > 0 ? nanoseconds / 1e6 : ticks(pid) * 10
}

/** CPU time of a thread in nanoseconds; 0 where the kernel has no such figure, or the thread has ended. */
function scheduled (pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0])
  } catch {
    return 0
  }
}

/** utime + stime in clock ticks: the 14th and 15th field. Fields are counted from the end of the name, which may contain spaces. */
function ticks (pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

/** Memory of a process, in KiB. */
export interface Memory {
  /** Resident set size before a garbage collection. */
  standing: number
  /** Resident set size after a garbage collection. */
  collected: number
  /** Used by JavaScript after a garbage collection, inside and outside V8's heap. */
  heap: number
}

/** Idle time before the first reading, and after the garbage collection, in ms. */
const settleTime = 2_000
const collectionTime = 500

/** The memory of a process with the memory probe, after 2 s without work, and again after a garbage collection. */
export async function memoryOf ({ child, pid }: Running): Promise<Memory> {
  await sleep(settleTime)
  const standing = resident(pid)
  const answered = once(child, 'message', { signal: AbortSignal.timeout(10_000) })
  child.send('collect')
  const [{ heap }] = await answered as [{ heap: number }]
  await sleep(collectionTime)
  return { standing, collected: resident(pid), heap: heap / 1_024 }
}

/**
 * Resident set size of a process and its descendants, in KiB.
 * @param except a word of the command line of descendants that do not count
 */
export function residentTree (pid: number, except?: string): number {
  const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  const own = except !== undefined && commandLine.includes(except) ? 0 : resident(pid)
  return childrenOf(pid).reduce((sum, child) => sum + residentTree(child, except), own)
}

function childrenOf (pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter((child) => child !== '').map(Number))
}

/** Resident set size in KiB, summed over the pages; that in /proc/<pid>/status lags behind. */
function resident (pid: number): number {
  return Number(/^Rss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1])
}

/** A folder and processes for a program that measures: neither outlives it. */
export function makeWorkplace (): { folder: string, processes: Processes } {
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-bench-'))
  const processes = new Processes()
  process.once('exit', () => {
    processes.killAll()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => { process.exit(130) })
  return { folder, processes }
}
