import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { entryPath } from '../../../package.ts'
import { allProcesses, processOf, runs } from '../../../protocol/transports/process-table.ts'
import { ProcessTree } from '../../../protocol/transports/process-tree.ts'
import {
  startChild,
  type ProcessExit,
  type ProcessOrder,
  type StartedProcess
} from '../../../protocol/transports/started-process.ts'
import type { LaunchOrder, LaunchReport } from './wire.ts'

/** Times of a launcher, in ms. */
interface LauncherTimes {
  /** Until it is ready. Beyond: it is killed, and processes are children of the gateway for a while. */
  readonly open: number
  /** Between two starts while there are orders. Beyond: it is killed, and another one makes the next start. */
  readonly start: number
  /** To end what it started. Beyond: it is killed. */
  readonly end: number
}
const usualTimes: LauncherTimes = { open: 10_000, start: 20_000, end: 4_000 }
/** Time for which processes are children of the gateway once a launcher could not be started, in ms. */
const openRetry = 60_000
/** Time after which it is looked again whether a process has ended, in ms. */
const endInterval = 100
/** When it is looked for a process whose launcher did not live to tell its id, in ms after each other: it may be about to appear. */
const searches = [100, 1_000]

/** The launcher process. */
interface Running {
  readonly child: ChildProcess
  /** Resolves when it has ended. */
  readonly ended: Promise<void>
}

/** A start that is under way, or a process that runs. */
interface Launch {
  readonly id: number
  readonly by: ChildProcess
  /** The process has it in its environment. */
  readonly mark: string | undefined
  /** Its standard streams by their numbers, as far as they are there. */
  readonly streams: Map<number, Socket>
  readonly resolve: (started: StartedProcess) => void
  readonly reject: (error: Error) => void
  readonly exited: Promise<ProcessExit>
  readonly exit: (exit: ProcessExit) => void
  readonly timer: NodeJS.Timeout
  /** Undefined: the start is under way. */
  pid?: number
}

/**
 * Starts processes by a small process, the launcher, which is started with the first of them. Linux copies the page tables of the process
 * that starts another one, which holds the event loop for 10 to 20 ms where that has hundreds of megabytes, and each page that it writes
 * afterwards costs a fault; the launcher has few. It also ends what it started if the gateway is killed. The gateway reads and writes the
 * streams itself. On other systems than Linux, and where there can be no launcher, processes are children of the gateway.
 */
export class Launcher {
  #running: Promise<Running | undefined> | undefined
  /** The launcher, and the one that is not ready yet. */
  #child: ChildProcess | undefined
  #opening: ChildProcess | undefined
  /** In ms since the epoch. */
  #opensAgain = 0
  #closing: Promise<void> | undefined
  #lastId = 0
  readonly #launches = new Map<number, Launch>()
  readonly #path: string
  readonly #times: LauncherTimes

  /** @param path of the launcher's module */
  constructor (path = entryPath('plugins/upstream/launcher/main'), times: Partial<LauncherTimes> = {}) {
    this.#path = path
    this.#times = { ...usualTimes, ...times }
  }

  /** As `StartProcess`. @param warn called where processes have to be children of the gateway */
  async start (order: ProcessOrder, warn: (sentence: string) => void): Promise<StartedProcess> {
    if (process.platform !== 'linux') return await startChild(order)
    const child = await this.#ready(warn)
    if (!child) return await startChild(order)
    if (!child.connected) return await this.start(order, warn)
    const id = ++this.#lastId
    return await new Promise((resolve, reject) => {
      let exit: Launch['exit'] = () => {}
      const exited = new Promise<ProcessExit>((resolve) => { exit = resolve })
      const timer = setTimeout(() => {
        this.#leave(child)
        child.kill('SIGKILL')
        this.#fail(id, new Error('the launcher did not start it in time'))
      }, this.#times.start)
      const mark = order.env.TOOL_HUB_CHILD
      const launch: Launch = { id, by: child, mark, streams: new Map(), resolve, reject, exited, exit, timer }
      this.#launches.set(id, launch)
      // Whoever waits for the start or the end of a process waits for a report.
      child.channel?.ref()
      child.send({ ...order, id } satisfies LaunchOrder, (error) => { if (error) this.#fail(id, error) })
    })
  }

  /** Starts the launcher unless it runs. @returns its process; undefined: it could not be started within the last minute */
  async #ready (warn: (sentence: string) => void): Promise<ChildProcess | undefined> {
    for (;;) {
      if (Date.now() < this.#opensAgain) return undefined
      const running = await (this.#running ??= this.#open(warn))
      if (!running || running.child.connected) return running?.child
      // It has just ended.
      this.#leave(running.child)
    }
  }

  /** Ends the launcher, with what it started and still runs. Resolves when it has ended. The next start begins another one. */
  async close (): Promise<void> {
    await (this.#closing ??= this.#close().finally(() => { this.#closing = undefined }))
  }

  async #close (): Promise<void> {
    this.#opening?.kill('SIGKILL')
    const running = await this.#running
    if (!running) return
    const { child, ended } = running
    child.ref()
    const timer = setTimeout(() => { child.kill('SIGKILL') }, this.#times.end)
    if (child.connected) child.disconnect()
    child.stdin?.destroy()
    await ended
    clearTimeout(timer)
  }

  /** @returns undefined where there can be none */
  async #open (warn: (sentence: string) => void): Promise<Running | undefined> {
    try {
      // Its environment is empty: what it starts may read that of its parent.
      const child = this.#opening = fork(this.#path, {
        execArgv: this.#path.endsWith('.ts') ? ['--import', import.meta.resolve('tsx')] : ['--max-semi-space-size=1'],
        env: {},
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore', 'ipc']
      })
      const exit = new Promise<string>((resolve) => { child.once('exit', (code, signal) => { resolve(signal ?? `exit code ${code}`) }) })
      await ready(child, exit, this.#times.open)
      child.on('error', () => {}).on('message', (report: LaunchReport, handle: unknown) => {
        this.#take(report, handle instanceof Socket ? handle : undefined)
      })
      child.unref()
      child.channel?.unref()
      if (child.stdin instanceof Socket) child.stdin.on('error', () => {}).unref()
      this.#child = child
      const ended = exit.then(() => { this.#ended(child) })
      return { child, ended }
    } catch (error) {
      this.#running = undefined
      if (this.#closing) return undefined
      this.#opensAgain = Date.now() + openRetry
      const why = error instanceof Error ? error.message : String(error)
      warn(`there is no launcher of processes, so the gateway starts them itself, which delays calls: ${why}`)
      return undefined
    } finally {
      this.#opening = undefined
    }
  }

  /** A launcher has exited. Its processes go on running, but their exit codes are lost, so their ends are found by polling. */
  #ended (launcher: ChildProcess): void {
    this.#leave(launcher)
    for (const [id, { by, pid, exit }] of this.#launches) {
      if (by !== launcher) continue
      if (pid === undefined) this.#fail(id, new Error('the launcher has ended'))
      else void endOf(pid).then(() => { exit({ code: null, signal: null }) })
      this.#forget(id)
    }
  }

  /** The next start begins another launcher. */
  #leave (launcher: ChildProcess): void {
    if (this.#child !== launcher) return
    this.#child = undefined
    this.#running = undefined
  }

  #forget (id: number): void {
    const by = this.#launches.get(id)?.by
    this.#launches.delete(id)
    if (![...this.#launches.values()].some((launch) => launch.by === by)) by?.channel?.unref()
  }

  #take (report: LaunchReport, socket: Socket | undefined): void {
    socket?.on('error', () => {})
    const launch = 'id' in report ? this.#launches.get(report.id) : undefined
    if (!launch) { socket?.destroy(); return }
    const { id } = launch
    // Without a handle: the process has ended, and its input with it.
    if ('stream' in report) launch.streams.set(report.stream, socket ?? new Socket().destroy())
    else if ('pid' in report) this.#complete(launch, report.pid)
    else if ('exit' in report) {
      launch.exit(report.exit)
      this.#forget(id)
    } else if ('error' in report) this.#fail(id, Object.assign(new Error(report.error.message), report.error))
  }

  /** The process runs, and all of its streams have come that this process could take. */
  #complete (launch: Launch, pid: number): void {
    const { id, by, timer, streams, exited, resolve } = launch
    const [stdin, stdout, stderr] = [0, 1, 2].map((stream) => streams.get(stream))
    if (!stdin || !stdout || !stderr) {
      this.#fail(id, new Error('the gateway has as many files open as it may have: raise its limit (ulimit -n, LimitNOFILE)'))
      return
    }
    clearTimeout(timer)
    launch.pid = pid
    // The others have to wait for their turn.
    for (const each of this.#launches.values()) if (each.by === by && each.pid === undefined) each.timer.refresh()
    // It is written only, so that nothing else tells its end.
    void exited.then(() => { stdin.destroy() })
    resolve({ pid, stdin, stdout, stderr, exited })
  }

  /** The start has failed, unless it has succeeded before. */
  #fail (id: number, error: Error): void {
    const launch = this.#launches.get(id)
    if (!launch || launch.pid !== undefined) return
    this.#forget(id)
    clearTimeout(launch.timer)
    for (const stream of launch.streams.values()) stream.destroy()
    launch.reject(error)
    // It may run all the same.
    if (launch.mark !== undefined && !('code' in error)) void endMarked(launch.mark)
  }
}

/** Resolves when the launcher is ready. @param exit how it ends @param time in ms @throws Error when it ends, or is not ready in time */
async function ready (launcher: ChildProcess, exit: Promise<string>, time: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      launcher.kill('SIGKILL')
      reject(new Error('it was not ready in time'))
    }, time)
  })
  try {
    await Promise.race([once(launcher, 'message'), exit.then((how) => { throw new Error(`it ended with ${how}`) }), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves when a process has ended. */
async function endOf (pid: number): Promise<void> {
  const child = processOf(pid)
  if (!child) return
  while (runs(child)) await sleep(endInterval)
}

/** Ends the processes that have a mark, also those that appear a little later. */
async function endMarked (mark: string): Promise<void> {
  for (const time of searches) {
    await sleep(time)
    const leaders = (await allProcesses()).filter((each) => each.mark === mark && each.group === each.pid)
    for (const { pid } of leaders) {
      const tree = new ProcessTree(pid, mark)
      await tree.look()
      await tree.end(Promise.resolve(), endInterval)
    }
  }
}

/** The launcher of this program. */
export const launcher = new Launcher()
