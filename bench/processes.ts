import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process of ours: when it was spawned (`performance.now()`), and the end of what it printed. */
export interface Running { pid: number, child: ChildProcess, spawned: number, output: () => string }

export interface StartOptions {
  env: Record<string, string>
  /** An IPC channel beside the pipes. */
  ipc?: boolean
}

const keptOutput = 8_000
const patience = 12_000

/** The processes under measurement: each started here, and ended here by its own pid. */
export class Processes {
  readonly #started = new Set<Running>()

  /** Starts a command with PATH and the given environment, nothing more. */
  start ([command = '', ...args]: string[], { env, ipc = false }: StartOptions): Running {
    const spawned = performance.now()
    const child = spawn(command, args, {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ipc ? ['ignore', 'pipe', 'pipe', 'ipc'] : ['ignore', 'pipe', 'pipe']
    })
    let output = ''
    const keep = (chunk: unknown): void => { output = (output + String(chunk)).slice(-keptOutput) }
    child.stdout?.on('data', keep)
    child.stderr?.on('data', keep)
    child.on('error', keep)
    if (child.pid === undefined) throw new Error(`could not start ${command}`)
    const running = { pid: child.pid, child, spawned, output: () => output }
    this.#started.add(running)
    return running
  }

  /** SIGTERM, and SIGKILL after 12 s. */
  async stop (running: Running): Promise<void> {
    this.#started.delete(running)
    const { child } = running
    if (hasEnded(running)) return
    const ended = new Promise((resolve) => { child.once('exit', resolve) })
    child.kill('SIGTERM')
    const killer = setTimeout(() => { child.kill('SIGKILL') }, patience)
    await ended
    clearTimeout(killer)
  }

  /** The end of what each process that was not stopped has printed, of those that died too. */
  output (): string {
    return [...this.#started].map(({ child, output }) => `${child.spawnargs.join(' ')}: ${output()}`).join('\n')
  }

  /** SIGKILL to whatever still runs, at once: the last thing this process does. */
  killAll (): void {
    for (const { child } of this.#started) child.kill('SIGKILL')
  }

  /** SIGTERM to all, and SIGKILL after 12 s. */
  async stopAll (): Promise<void> {
    await Promise.all([...this.#started].map(async (running) => { await this.stop(running) }))
  }
}

function hasEnded ({ child }: Running): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** Tries every 2 ms until the condition holds (it may throw meanwhile), and answers how many ms that was after spawning; throws when the process ends, or after 30 s. */
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
