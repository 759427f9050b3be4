import { fileURLToPath } from 'node:url'
import { freePort } from '../test/helpers/hub.ts'
import { Connection } from './connection.ts'
import { waitFor, type Processes, type Running } from './processes.ts'
import { toolList, Session, resultOf, type Endpoint } from './session.ts'

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** The reference that ratios are taken to: reference.mjs, or the file that REFERENCE names. */
export const referenceFile = process.env.REFERENCE ?? file('reference.mjs')

/** A process that listens on a port of this machine. `ready`: the time from spawning until then, in ms. */
export interface Listening { port: number, running: Running, ready: number }

/** Starts an echo upstream over HTTP, on any path. A silent one accepts connections and never answers; a modern one speaks 2026-07-28. */
export async function startEcho (
  processes: Processes,
  { tools = 1, silent = false, modern = false, port }: { tools?: number, silent?: boolean, modern?: boolean, port?: number } = {}
): Promise<Listening> {
  const env = { TOOLS: String(tools), SILENT: silent ? '1' : '0', MODERN: modern ? '1' : '0' }
  return await listen(processes, [process.execPath, file('echo-http.mjs')], env, port)
}

/** Starts the pass-through proxy in front of an upstream. */
export async function startReference (processes: Processes, upstream: Listening): Promise<Listening> {
  return await listen(processes, [process.execPath, referenceFile], { UPSTREAM: `http://127.0.0.1:${upstream.port}` })
}

async function listen (processes: Processes, command: string[], env: Record<string, string>, given?: number): Promise<Listening> {
  const port = given ?? await freePort()
  const running = processes.start(command, { env: { ...env, PORT: String(port) } })
  const ready = await waitFor(async () => {
    (await Connection.open(port)).close()
    return true
  }, running)
  return { port, running, ready }
}

/** Settings of the echo upstream over HTTP. */
export function httpServer ({ port }: Listening, path = '/mcp'): { type: string, url: string } {
  return { type: 'streamable-http', url: `http://127.0.0.1:${port}${path}` }
}

/** Settings of the echo upstream over stdio. */
export const stdioServer = { type: 'stdio', command: process.execPath, args: [file('echo-stdio.mjs')] }

/** Repeats `tools/list` in one session until it has `count` tools. Returns the time since the server was spawned, in ms. */
export async function waitUntilListed ({ running }: Listening, endpoint: Endpoint, count: number): Promise<number> {
  const { request, isCorrect } = toolList(count)
  const connection = await Connection.open(endpoint.port)
  try {
    const session = await Session.open(connection, endpoint)
    let id = 0
    const listed = await waitFor(async () => isCorrect(resultOf(await connection.send(session.encode(request(++id))), id), id), running)
    await session.end(connection)
    return listed
  } finally {
    connection.close()
  }
}
