import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import { UpstreamError } from '../errors.ts'
import { toOneLine } from '../json.ts'
import type { Message } from '../message.ts'
import { Chunks } from '../pieces.ts'
import { LastLines, maxKeptLine, readStderr, toRedactedLine, type PrintedLine } from './printed-line.ts'
import { killGroupOnExit, ProcessTree } from './process-tree.ts'
import {
  type ChildCommand, findWorkingFolder, startChild, startFailureMessage, type ProcessExit, type StartedProcess,
  type StartProcess
} from './started-process.ts'
import {
  guessAnsweredId, parseMessages, noMeter, transportLimits, type MemoryMeter, type Receiver, type SendOptions,
  type Transport
} from './transport.ts'
import { createUnsolicitedCounter, noRateLimit, type ReadingOptions, withSlowServerPause, Valve } from './valve.ts'

export interface StdioOptions {
  child: ChildCommand
  /** Starts the process. Default: as a child of this process. */
  startProcess?: StartProcess
  /** Called for each non-empty line of stderr, and for each non-empty line of stdout that is not a message. */
  onLine: (line: PrintedLine) => void
  /** Masks secrets in a line before it is truncated. */
  redact?: (line: string) => string
  reading?: ReadingOptions
  /** Time between TERM and KILL for the process group, in ms. Default: 2,000. */
  grace?: number
}

/** If a process has left more bytes of its stdin unread than this, its output is read more slowly. */
const maxUnread = 1024 * 1024
/** Max length of the text of a reported line, in characters. */
const lineLimit = 8 * 1024
/** Time for a process that has closed its output to exit, in ms. */
const closeGrace = 500
/** Max wait for the last output of a process that has exited, in ms. */
const lastOutputTimeout = 500
/** Max unread bytes in the child's stdin; beyond that, requests fail. */
const stdinLimit = 64 * 1024 * 1024
/**
 * Max length of a text that a pipe accepts either completely or not at all, in characters: PIPE_BUF (POSIX) is 4 KiB on
 * Linux, and a character takes up to 4 bytes.
 */
const atomicWriteSize = 1_024
/** Interval between attempts to read from a process while there is no memory, in ms. */
const memoryRetry = 50
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d

/**
 * MCP over the standard streams of a child process (specification: Transports, "stdio"). The child leads its own
 * process group, which is ended as a whole. The child's stderr is always read, since a full pipe would block the child.
 */
export class StdioTransport implements Transport {
  readonly #options: StdioOptions
  readonly #mark = randomUUID()
  readonly #show = (line: string): string => toRedactedLine(line, this.#options.redact ?? ((text) => text))
  readonly #lastLines = new LastLines(this.#show)
  #child: StartedProcess | undefined
  #starting: Promise<StartedProcess> | undefined
  #receiver: Receiver | undefined
  readonly #chunks = new Chunks()
  #account: ReturnType<MemoryMeter['openAccount']> | undefined
  readonly #valve: Valve
  /** Why the process's output is currently not read. */
  readonly #pauses = new Set<'memory' | 'valve'>()
  /** Messages to write at the end of this turn of the event loop. */
  #unsent = ''
  /** The ids of the requests in `#unsent`. */
  #unsentIds: number[] = []
  /** The ids of requests that the process has certainly not read. They fail once the reason is known. */
  #unreadIds: number[] = []
  #closing = false
  #hasExited = false
  /** Why the connection ended. */
  #ended: string | undefined

  constructor (options: StdioOptions) {
    this.#options = options
    this.#valve = new Valve({
      pace: withSlowServerPause(() => (this.#child?.stdin.writableLength ?? 0) > maxUnread, options.reading?.pace),
      take: (bytes) => { this.#read(bytes) },
      pause: () => { this.#pause('valve') },
      resume: () => { this.#resume('valve') }
    })
  }

  get pid (): number | undefined { return this.#child?.pid }
  get lastLines (): string { return this.#lastLines.detail }

  async start (receiver: Receiver, dialled?: () => void): Promise<void> {
    const { child: { command, args, env, user, cwd: wanted }, startProcess = startChild, reading } = this.#options
    this.#receiver = createUnsolicitedCounter(receiver, reading?.pace ?? noRateLimit)
    const cwd = user ? await findWorkingFolder(user, wanted) : wanted
    if (cwd instanceof Error) {
      throw new UpstreamError('unreachable', `cannot start ${JSON.stringify(command)}: ${cwd.message}`)
    }
    if (this.#closing) throw new UpstreamError('unreachable', 'it was closed before it was started')
    this.#starting =
      startProcess({ command, args, cwd, uid: user?.uid, gid: user?.gid, env: { ...env, TOOL_HUB_CHILD: this.#mark } })
    const child = await this.#starting.catch((error: NodeJS.ErrnoException) => {
      throw new UpstreamError('unreachable', startFailureMessage(command, cwd, error))
    })
    const { pid, stdin, stdout } = child
    killGroupOnExit(pid)
    this.#child = child
    stdout.on('data', (chunk: Buffer) => { this.#valve.push(chunk) })
    readStderr(child.stderr, (line) => { this.#reportLine(line) })
    // If the process exits, `#exited` reports its exit code instead.
    const closed = (): void => { if (!this.#hasExited) this.#fail('it closed its output') }
    stdout.once('close', () => { setTimeout(closed, closeGrace).unref() })
    stdin.on('error', () => {})
    stdout.on('error', () => {})
    void child.exited.then((exit) => { this.#exited(exit) })
    if (this.#closing) throw new UpstreamError('unreachable', 'it was closed while starting')
    dialled?.()
  }

  send (text: string, options?: SendOptions): void {
    const stdin = this.#child?.stdin
    if (!stdin?.writable || this.#closing) {
      if (options?.id !== undefined) this.#failLater([options.id], 'the process is not running')
      return
    }
    if (stdin.writableLength + this.#unsent.length > stdinLimit) {
      if (options?.id !== undefined) {
        this.#receiver?.failed(
          options.id, new UpstreamError('unreachable', 'the process does not read its input', { isPublic: true })
        )
      }
      return
    }
    // Messages of one turn of the event loop are written with one system call, the most expensive part of sending.
    if (this.#unsent === '') setImmediate(() => { this.#flush(stdin) })
    this.#unsent += `${toOneLine(text)}\n`
    if (options?.id !== undefined) this.#unsentIds.push(options.id)
  }

  drop (): void {}

  async onNegotiated (): Promise<void> {}

  async close (): Promise<void> {
    this.#closing = true
    this.#receiver = undefined
    const child = await this.#starting?.catch(() => undefined)
    if (!child) return
    // The scan must precede the end of the process, since afterwards its children have another parent.
    const tree = new ProcessTree(child.pid, this.#mark)
    await tree.scan()
    child.stdin.end()
    await tree.end(child.exited.then(() => {}), this.#options.grace ?? 2_000)
    child.stdin.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
  }

  #flush (stdin: Writable): void {
    const text = this.#unsent
    const ids = this.#unsentIds
    this.#unsent = ''
    this.#unsentIds = []
    // A text this short is written completely or not at all: if writing fails, the process has read none of it.
    const isAtomic = stdin.writableLength === 0 && text.length < atomicWriteSize
    stdin.write(text, (error) => {
      if (error && isAtomic) this.#failLater(ids, 'the process does not read its input')
    })
  }

  /**
   * Fails requests that the process has not read. Waits briefly for the process to exit: its exit code and last lines
   * are a better reason.
   */
  #failLater (ids: readonly number[], reason: string): void {
    this.#unreadIds.push(...ids)
    if (this.#ended !== undefined) this.#failUnread(this.#ended)
    else setTimeout(() => { this.#failUnread(reason) }, closeGrace).unref()
  }

  #read (chunk: Buffer): void {
    if (this.#ended !== undefined) return
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#chunks.push(chunk.subarray(from, at))
      this.#line(this.#chunks.takeWhole())
      this.#account?.close()
      this.#account = undefined
      from = at + 1
    }
    if (from === chunk.length) return
    this.#chunks.push(chunk.subarray(from))
    const { length } = this.#chunks
    if (length > transportLimits.message) this.#fail(`it printed a line of more than ${transportLimits.message} bytes`)
    else if (length > transportLimits.small) this.#reserve()
  }

  #pause (reason: 'memory' | 'valve'): void {
    this.#pauses.add(reason)
    this.#child?.stdout.pause()
  }

  #resume (reason: 'memory' | 'valve'): void {
    this.#pauses.delete(reason)
    if (this.#pauses.size === 0) this.#child?.stdout.resume()
  }

  /** Reserves memory for the line that is being read. While there is not enough memory, reading pauses. */
  #reserve (): void {
    const { meter = noMeter, owner = '' } = this.#options.reading ?? {}
    const account = this.#account ??= meter.openAccount(owner)
    if (this.#pauses.has('memory') || account.resize(this.#chunks.length)) return
    this.#pause('memory')
    setTimeout(() => {
      if (this.#ended !== undefined) return
      this.#resume('memory')
      // The line may be complete, since bytes that had been read before the pause are processed.
      if (this.#chunks.length > 0) this.#reserve()
    }, memoryRetry).unref()
  }

  #line (bytes: Buffer): void {
    if (bytes.length === 0 || (bytes.length === 1 && bytes[0] === CARRIAGE_RETURN)) return
    const text = bytes.toString()
    let messages: Message[]
    try {
      if (!isUtf8(bytes)) throw new SyntaxError('it is not UTF-8')
      messages = parseMessages(text)
    } catch {
      this.#onInvalidLine(text)
      return
    }
    for (const each of messages) this.#receiver?.message(each, undefined)
  }

  /** Counts and reports a line that is not a message, and fails the request that the line seems to answer, if any. */
  #onInvalidLine (text: string): void {
    this.#options.reading?.pace?.count('noise', text.length)
    this.#reportLine(text)
    const id = guessAnsweredId(text)
    if (id !== undefined) {
      this.#receiver?.failed(id, new UpstreamError('broken', 'the answer is not a valid JSON-RPC ' +
        'message', { isPublic: true }))
    }
  }

  /** Reports a line of stderr or an invalid line of stdout, and keeps it for error messages. */
  #reportLine (line: string): void {
    const kept = line.slice(0, maxKeptLine)
    this.#lastLines.add(kept)
    this.#options.onLine({ length: kept.length, text: () => this.#show(kept).slice(0, lineLimit) })
  }

  #exited ({ code, signal }: ProcessExit): void {
    this.#hasExited = true
    const cause = signal !== null ? ` with signal ${signal}` : code !== null ? ` with exit code ${code}` : ''
    const reportExit = (): void => { this.#reportEnd(`the process ended${cause}`) }
    // Some output may still be unread. The wait is short, since a grandchild may keep the pipes open.
    setTimeout(reportExit, lastOutputTimeout).unref()
    const pipes = [this.#child?.stdout, this.#child?.stderr].filter((pipe) => pipe && !pipe.closed)
    let open = pipes.length
    const read = (): void => { this.#valve.runAfterPending(reportExit) }
    if (open === 0) read()
    for (const pipe of pipes) pipe?.once('close', () => { if (--open === 0) read() })
    // The rest of the process group is ended, too, since its output would not be read.
    if (!this.#closing && this.#child) void new ProcessTree(this.#child.pid, this.#mark).endRest()
  }

  /** Reports the connection as closed, stops reading, and ends the process. */
  #fail (reason: string): void {
    if (this.#ended !== undefined || this.#closing) return
    this.#reportEnd(reason)
    this.#child?.stdout.destroy()
    void this.close()
  }

  /** Reports the end of the connection, once. */
  #reportEnd (reason: string): void {
    if (this.#ended !== undefined) return
    // The last line may have no line break.
    if (this.#hasExited && this.#chunks.length > 0) this.#line(this.#chunks.takeWhole())
    this.#ended = reason
    this.#chunks.take()
    this.#account?.close()
    this.#failUnread(reason)
    this.#receiver?.closed(new UpstreamError('broken', reason, { detail: this.#lastLines.detail, isPublic: true }))
  }

  #failUnread (reason: string): void {
    for (const id of this.#unreadIds.splice(0)) {
      this.#receiver?.failed(
        id, new UpstreamError('unreachable', reason, { detail: this.#lastLines.detail, isPublic: true })
      )
    }
  }
}
