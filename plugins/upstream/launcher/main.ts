// The launcher, a process of its own: it starts the processes of stdio servers, and ends them where the gateway has ended without doing so.
// Signals are the gateway's matter: an operator's Ctrl-C, or a service manager, sends them to all processes at once.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { ProcessTree } from '../../../protocol/transports/process-tree.ts'
import { addressOf, headerOf, streams, type LaunchOrder, type LaunchReport } from './wire.ts'

/** Time between TERM and KILL for those that the gateway left behind, in ms. */
const grace = 2_000

const address = addressOf(process.argv[2] ?? '')
/** What runs, by the ids of the orders. */
const running = new Map<number, { readonly tree: ProcessTree, readonly gone: Promise<void> }>()

const report = (message: LaunchReport): void => { if (process.connected) process.send?.(message) }

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

async function launch ({ id, token, command, args, cwd, uid, gid, env }: LaunchOrder): Promise<void> {
  const stdio = await Promise.all(streams.map(async (stream) => await streamOf(token, stream)))
  try {
    const child = spawn(command, args, { cwd, uid, gid, env, detached: true, stdio })
    const { pid } = child
    const gone = new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        running.delete(id)
        report({ id, exit: { code, signal } })
        resolve()
      })
    })
    if (pid !== undefined) running.set(id, { tree: new ProcessTree(pid, env.TOOL_HUB_CHILD ?? ''), gone })
    await once(child, 'spawn')
    child.on('error', () => {})
    if (pid !== undefined) report({ id, pid })
  } finally {
    for (const stream of stdio) stream.destroy()
  }
}

process.on('message', (order: LaunchOrder) => {
  launch(order).catch((error: NodeJS.ErrnoException) => { report({ id: order.id, error: { code: error.code, message: error.message } }) })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.once('disconnect', () => {
  const ends = [...running.values()].map(async ({ tree, gone }) => {
    await tree.look()
    await tree.end(gone, grace)
  })
  void Promise.allSettled(ends).then(() => { process.exit() })
})
report({ ready: true })
