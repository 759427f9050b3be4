import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

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
