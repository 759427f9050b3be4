// The launcher, a process of its own: it starts the processes of stdio servers, and ends them where the gateway has ended without doing so.
// Signals are the gateway's matter: an operator's Ctrl-C, or a service manager, sends them to all processes at once.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ProcessTree } from '../../../protocol/transports/process-tree.ts'
import type { LaunchOrder, LaunchReport } from './wire.ts'

/** Time between TERM and KILL for those that the gateway left behind, in ms. */
const grace = 2_000
/** Time in which the gateway ends what a process leaves behind at its own end, in ms. If the gateway ends meanwhile, it is done here. */
const afterlife = 10_000

/** A process that runs, or has ended not long ago. */
interface Started { readonly tree: ProcessTree, readonly gone: Promise<void> }

const started = new Set<Started>()
/** The last start. They take turns: open here are the streams of one process at a time, and the limit of open files may be low. */
let last = Promise.resolve()
let isEnding = false

/** Resolves when it has been sent. Without a callback, a gateway that has just ended would be an error that nobody handles. */
const report = async (message: LaunchReport, handle?: Socket): Promise<void> => {
  await new Promise<void>((resolve) => { process.send?.(message, handle, undefined, () => { resolve() }) })
}

/** Starts a process, and resolves when the gateway has its streams. */
async function launch ({ id, command, args, cwd, uid, gid, env }: LaunchOrder): Promise<void> {
  if (isEnding) return
  const child = spawn(command, args, { cwd, uid, gid, env, detached: true, stdio: 'pipe' })
  const { pid } = child
  const gone = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      void report({ id, exit: { code, signal } })
      resolve()
    })
  })
  if (pid !== undefined) keep({ tree: new ProcessTree(pid, env.TOOL_HUB_CHILD ?? ''), gone })
  // It comes in the same turn of the event loop, so nothing of its output has been read yet.
  await once(child, 'spawn')
  child.on('error', () => {})
  for (const output of [child.stdout, child.stderr]) stopReading(output)
  const streams = [child.stdin, child.stdout, child.stderr] as unknown as Socket[]
  for (const [stream, socket] of streams.entries()) void report({ id, stream }, socket)
  if (pid !== undefined) await report({ id, pid })
}

/** A socket reads from its begin on, and Node has no other way to stop that: what was read here, the gateway would never see. */
function stopReading (output: Readable): void {
  (output as unknown as { readonly _handle: { readStop: () => void } })._handle.readStop()
}

/** Why a process could not be started. */
function failureOf ({ code, message }: NodeJS.ErrnoException): { code?: string | undefined, message: string } {
  if (code !== 'EMFILE') return { code, message }
  return { message: 'the launcher has as many files open as it may have: raise the gateway\'s limit (ulimit -n, LimitNOFILE)' }
}

function keep (process: Started): void {
  started.add(process)
  void process.gone.then(async () => { await sleep(afterlife, undefined, { ref: false }) }).then(() => { started.delete(process) })
}

/** Ends all that it started, and itself. */
async function end (): Promise<void> {
  if (isEnding) return
  isEnding = true
  await Promise.allSettled([...started].map(async ({ tree, gone }) => {
    await tree.look()
    await tree.end(gone, grace)
  }))
  process.exit()
}

process.on('message', (order: LaunchOrder) => {
  last = last
    .then(async () => { await launch(order) })
    .catch(async (error: unknown) => { await report({ id: order.id, error: failureOf(error as NodeJS.ErrnoException) }) })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
// The gateway holds the other end of the input, and writes nothing. The end of the IPC channel would not do: Node does not tell it while a
// stream that was sent has not been taken.
process.stdin.on('error', () => {}).once('close', () => { void end() }).resume()
void report({ ready: true })
