// The launcher, a process of its own: it starts the processes of stdio servers, and ends them where the gateway has ended without doing so.
// Signals are the gateway's matter: an operator's Ctrl-C, or a service manager, sends them to all processes at once.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ProcessTree } from '../../../protocol/transports/process-tree.ts'
import { addressOf, headerOf, streams, type LaunchOrder, type LaunchReport } from './wire.ts'

/** Time between TERM and KILL for those that the gateway left behind, in ms. */
const grace = 2_000
/** Time in which the gateway ends what a process leaves behind at its own end, in ms. If the gateway ends meanwhile, it is done here. */
const afterlife = 10_000

/** A process that runs, or has ended not long ago. */
interface Started { readonly tree: ProcessTree, readonly gone: Promise<void> }

const address = addressOf(process.argv[2] ?? '')
const started = new Set<Started>()
const starting = new Set<Promise<void>>()

// Without a callback, a gateway that has just ended would be an error that nobody handles.
const report = (message: LaunchReport): void => { process.send?.(message, () => {}) }

/** A connection to the gateway that a process will have as one of its streams. Nothing is sent to it before the process has it. */
async function streamOf (token: string, stream: number): Promise<Socket> {
  const socket = connect(address)
  await once(socket, 'connect')
  socket.on('error', () => {})
  await new Promise<void>((resolve, reject) => {
    socket.write(headerOf(token, stream), (error) => { if (error) reject(error); else resolve() })
  })
  return socket
}

async function streamsOf (token: string): Promise<Socket[]> {
  const opened = await Promise.allSettled(streams.map(async (stream) => await streamOf(token, stream)))
  const sockets = opened.flatMap((each) => each.status === 'fulfilled' ? [each.value] : [])
  if (sockets.length === streams.length) return sockets
  for (const socket of sockets) socket.destroy()
  throw new Error('there are no streams for it: too many open files?')
}

async function launch ({ id, token, command, args, cwd, uid, gid, env }: LaunchOrder): Promise<void> {
  const stdio = await streamsOf(token)
  try {
    const child = spawn(command, args, { cwd, uid, gid, env, detached: true, stdio })
    const { pid } = child
    const gone = new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        report({ id, exit: { code, signal } })
        resolve()
      })
    })
    if (pid !== undefined) keep({ tree: new ProcessTree(pid, env.TOOL_HUB_CHILD ?? ''), gone })
    await once(child, 'spawn')
    child.on('error', () => {})
    if (pid !== undefined) report({ id, pid })
  } finally {
    for (const stream of stdio) stream.destroy()
  }
}

function keep (process: Started): void {
  started.add(process)
  void process.gone.then(async () => { await sleep(afterlife, undefined, { ref: false }) }).then(() => { started.delete(process) })
}

/** Ends all that it started. */
async function endAll (): Promise<void> {
  await Promise.allSettled(starting)
  await Promise.allSettled([...started].map(async ({ tree, gone }) => {
    await tree.look()
    await tree.end(gone, grace)
  }))
}

process.on('message', (order: LaunchOrder) => {
  const start = launch(order)
    .catch(({ code, message }: NodeJS.ErrnoException) => { report({ id: order.id, error: { code, message } }) })
    .finally(() => { starting.delete(start) })
  starting.add(start)
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.once('disconnect', () => { void endAll().finally(() => { process.exit() }) })
report({ ready: true })
