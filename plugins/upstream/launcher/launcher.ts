import { fork, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { entryPath } from '../../../package.ts'
import { killGroup } from '../../../protocol/transports/process-group.ts'
import { processOf, runs } from '../../../protocol/transports/process-table.ts'
import {
  startChild,
  type ProcessExit,
  type ProcessOrder,
  type StartedProcess
} from '../../../protocol/transports/started-process.ts'
import { addressOf, headerSize, streams, type LaunchOrder, type LaunchReport } from './wire.ts'

/** Time that the launcher has for a start, in ms. Beyond: another one is started for the next. */
const longestStart = 20_000
/** Time in which a connection has to say what it is for, in ms. Any program on the machine can open some. */
const headerTime = 2_000
/** How many may be about to say so. Beyond, the oldest is closed. */
const mostUnnamed = 64
/** Time for the streams of a process that has ended, in ms. Without them, this process may open no more files. */
const streamTime = 500
/** Time that the launcher has to end what it started, in ms. */
const longestEnd = 4_000
/** Time after which it is looked again whether a process has ended, in ms. */
const endInterval = 100

/** A start that is under way, or a process that runs. */
interface Launch {
  readonly token: string
  /** The launcher's. */
  readonly channel: ChildProcess['channel']
  readonly sockets: Map<number, Socket>
  readonly resolve: (started: StartedProcess) => void
  readonly reject: (error: Error) => void
  readonly exited: Promise<ProcessExit>
  readonly exit: (exit: ProcessExit) => void
  readonly timer: NodeJS.Timeout
  pid?: number
}

/** The launcher process, and the server that the streams of what it starts connect to. */
interface Running { readonly child: ChildProcess, readonly server: Server }

/**
 * Starts processes by a small process, the launcher, which is started with the first of them. Linux copies the page tables of the process
 * that starts another one, which holds the event loop for 10 to 20 ms where that has hundreds of megabytes, and each page that it writes
 * afterwards costs a fault; the launcher has few. It also ends what it started if the gateway is killed. The gateway reads and writes the
 * streams itself. On other systems than Linux, and where there can be no launcher, processes are children of the gateway.
 */
export class Launcher {
  #running: Promise<Running | undefined> | undefined
  #lastId = 0
  readonly #launches = new Map<number, Launch>()
  /** Those that wait for their streams. */
  readonly #byToken = new Map<string, Launch>()
  /** Connections of which it is not known yet what they are for. */
  readonly #unnamed = new Set<Socket>()
  readonly #path: string

  /** @param path of the launcher's module */
  constructor (path = entryPath('plugins/upstream/launcher/main')) {
    this.#path = path
  }

  /** As `StartProcess`. @param warn called where processes have to be children of the gateway */
  async start (order: ProcessOrder, warn: (sentence: string) => void): Promise<StartedProcess> {
    const running = process.platform === 'linux' ? await (this.#running ??= this.#open(warn)) : undefined
    if (!running) return await startChild(order)
    const id = ++this.#lastId
    const token = randomBytes(16).toString('hex')
    return await new Promise((resolve, reject) => {
      let exit: Launch['exit'] = () => {}
      const exited = new Promise<ProcessExit>((resolve) => { exit = resolve })
      const timer = setTimeout(() => {
        this.#fail(id, new Error('the launcher did not start it in time'))
        running.child.kill('SIGKILL')
      }, longestStart)
      const launch: Launch = { token, channel: running.child.channel, sockets: new Map(), resolve, reject, exited, exit, timer }
      this.#launches.set(id, launch)
      this.#byToken.set(token, launch)
      // Whoever waits for the start or the end of a process waits for a report.
      launch.channel?.ref()
      running.child.send({ ...order, id, token } satisfies LaunchOrder, (error) => { if (error) this.#fail(id, error) })
    })
  }

  /** Ends the launcher, with what it started and still runs. Resolves when it has ended, or after some seconds. */
  async close (): Promise<void> {
    const running = await this.#running
    if (!running) return
    const ended = once(running.child, 'exit')
    running.child.disconnect()
    await Promise.race([ended, sleep(longestEnd, undefined, { ref: false })])
  }

  /** @returns undefined where there can be none */
  async #open (warn: (sentence: string) => void): Promise<Running | undefined> {
    try {
      const name = `tool-hub-launcher-${randomBytes(16).toString('hex')}`
      const server = createServer((socket) => { this.#accept(socket) })
      server.on('error', () => {})
      server.listen(addressOf(name))
      await once(server, 'listening')
      server.unref()
      // Its environment is empty: what it starts may read that of its parent.
      const child = fork(this.#path, [name], {
        execArgv: this.#path.endsWith('.ts') ? ['--import', import.meta.resolve('tsx')] : ['--max-semi-space-size=1'],
        env: {},
        detached: true,
        stdio: ['ignore', 'ignore', 'ignore', 'ipc']
      })
      child.on('error', () => {})
      const ended = once(child, 'exit').then(([code, signal]) => { throw new Error(`it ended (${signal ?? code})`) })
      await Promise.race([once(child, 'message'), ended])
      ended.catch(() => { this.#ended(server) })
      child.on('message', (report: LaunchReport) => { this.#take(report) })
      child.unref()
      child.channel?.unref()
      return { child, server }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      warn(`there is no launcher of processes, so the gateway starts them itself, which delays calls: ${why}`)
      return undefined
    }
  }

  /** What it started goes on. How that ends is not told any more. */
  #ended (server: Server): void {
    this.#running = undefined
    server.close()
    for (const [id, { pid, exit, token }] of this.#launches) {
      if (pid === undefined || this.#byToken.has(token)) this.#fail(id, new Error('the launcher has ended'))
      else void endOf(pid).then(() => { exit({ code: null, signal: null }) })
      this.#forget(id)
    }
  }

  #forget (id: number): void {
    const launch = this.#launches.get(id)
    this.#launches.delete(id)
    if (this.#launches.size === 0) launch?.channel?.unref()
  }

  /** A connection says first for which stream it is. What comes after that is the process's. */
  #accept (socket: Socket): void {
    this.#unnamed.add(socket)
    const [oldest] = this.#unnamed
    if (this.#unnamed.size > mostUnnamed) oldest?.destroy()
    socket.on('error', () => {})
    const timer = setTimeout(() => { socket.destroy() }, headerTime)
    const named = (): void => {
      clearTimeout(timer)
      socket.off('readable', read).off('close', named)
      this.#unnamed.delete(socket)
    }
    const read = (): void => {
      const header = socket.read(headerSize) as Buffer | null
      if (header === null) return
      named()
      this.#join(header.toString('latin1'), socket)
    }
    socket.on('readable', read).once('close', named)
  }

  #join (header: string, socket: Socket): void {
    const launch = this.#byToken.get(header.slice(0, -2))
    const stream = Number(header.at(-2))
    if (!launch || launch.sockets.has(stream)) { socket.destroy(); return }
    launch.sockets.set(stream, socket)
    this.#complete(launch)
  }

  #take (report: LaunchReport): void {
    if (!('id' in report)) return
    const launch = this.#launches.get(report.id)
    if (!launch) return
    if ('error' in report) this.#fail(report.id, Object.assign(new Error(report.error.message), { code: report.error.code }))
    else if ('pid' in report) {
      launch.pid = report.pid
      this.#complete(launch)
    } else {
      launch.exit(report.exit)
      const isComplete = !this.#byToken.has(launch.token)
      if (isComplete) this.#forget(report.id)
      else setTimeout(() => { this.#fail(report.id, new Error('there are no streams for it: too many open files?')) }, streamTime).unref()
    }
  }

  /** The start has succeeded once the process runs and its streams are there. */
  #complete ({ token, pid, sockets, exited, timer, resolve }: Launch): void {
    const [stdin, stdout, stderr] = streams.map((stream) => sockets.get(stream))
    if (pid === undefined || !stdin || !stdout || !stderr) return
    clearTimeout(timer)
    this.#byToken.delete(token)
    // A process writes nothing there, but its end is noticed by reading.
    stdin.resume()
    resolve({ pid, stdin, stdout, stderr, exited })
  }

  /** The start has failed. */
  #fail (id: number, error: Error): void {
    const launch = this.#launches.get(id)
    this.#forget(id)
    if (!launch || !this.#byToken.delete(launch.token)) return
    clearTimeout(launch.timer)
    for (const socket of launch.sockets.values()) socket.destroy()
    if (launch.pid !== undefined) void killGroup(launch.pid, launch.exited.then(() => {}), 0)
    launch.reject(error)
  }
}

/** Resolves when a process has ended. */
async function endOf (pid: number): Promise<void> {
  const child = processOf(pid)
  if (!child) return
  while (runs(child)) await sleep(endInterval)
}

/** The launcher of this program. */
export const launcher = new Launcher()
