// Attacks, each by its own process, which holds as much as the limits allow and continues at a fixed rate. The
// servers that an attack needs are in this process as well. Told what to do by IPC: test/soak/attacks.ts.
import { randomBytes } from 'node:crypto'
import { Agent, createServer as createHttpServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net'
import { path, type Cleanup } from '../helpers/hub.ts'
import { initialize, type Json } from '../helpers/client.ts'
import { modernRequest } from '../helpers/modern-request.ts'
import { Raw, startUpstream, tool, type Options } from './fault-http.ts'
import { nameServer } from './name-server.ts'
import { json, restApi } from './rest-api.ts'

/** The gateway that is attacked. */
export interface Victim {
  readonly url: string
  readonly port: number
  /** The key of `ann`, who has no admin rights. */
  readonly key: string
  /** A login of hers, for the management API. */
  readonly login: string
}

/** What the gateway is to be started with. */
export interface Setting {
  readonly servers: Json
  readonly env: Record<string, string>
  /** Members of `systemConfig`. */
  readonly system: Json
}

export type Order = { readonly begin: Victim } | { readonly end: true }
export type Report = { readonly setting: Setting } | { readonly held: true } | { readonly ended: Record<string, number> }

/** Ends an attack, and gives back what it holds. */
type End = () => unknown
/** Prepares an attack. @returns what the gateway is started with, and how the attack begins; it resolves once everything is held */
type Prepare = () => Promise<Partial<Setting> & { begin: (victim: Victim) => Promise<End> }>

const MiB = 1024 * 1024
const cleanup: Cleanup = { after: () => {} }
const agent = new Agent({ keepAlive: true, maxSockets: 200 })

/** How often each thing happened, for the table. */
const counts: Record<string, number> = {}
const count = (what: string): void => { counts[what] = (counts[what] ?? 0) + 1 }

interface Sent {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly own?: boolean
}
interface Answered { readonly status: number, readonly headers: IncomingMessage['headers'], readonly body: string }

/** Sends one request and reads its answer; status 0: the connection was closed. @param own on a connection of its own */
async function send ({ port }: Victim, where: string, { method = 'POST', headers = {}, body, own = false }: Sent = {}): Promise<Answered> {
  return await new Promise((resolve) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      path: where,
      method,
      agent: own ? false : agent,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers }
    }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => { if (chunks.length < 16) chunks.push(chunk) })
      answer.on('end', () => { resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks).toString() }) })
      answer.on('error', () => { resolve({ status: 0, headers: {}, body: '' }) })
    })
    sent.on('error', () => { resolve({ status: 0, headers: {}, body: '' }) })
    sent.end(body)
  })
}

/** Does something at a fixed rate, at most 200 of them at the same time. @returns the end */
function keepTrying (perSecond: number, work: () => Promise<unknown>): End {
  let running = 0
  const timer = setInterval(() => {
    if (running >= 200) return
    running++
    work().catch(() => {}).finally(() => { running-- })
  }, 1_000 / perSecond)
  return () => { clearInterval(timer) }
}

/** Sends a request at a fixed rate, and counts the answers by status, or by what `name` says of them. @returns the end */
const flooding = (perSecond: number, ask: () => Promise<Answered>, name = ({ status }: Answered) => String(status)): End =>
  keepTrying(perSecond, async () => { count(name(await ask())) })

/** What an answer says of a call. */
const ofCall = ({ body }: Answered): string => body.includes('"error"') ? 'calls -32001' : 'calls 200'

/** Runs work for each of a number, 32 at the same time, until it says that it is enough. */
async function many (most: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => { while (next < most) if (await work(next++) === 'enough') next = most }
  await Promise.all(Array.from({ length: 32 }, run))
}

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })
const mcp = { accept: 'application/json, text/event-stream' }
const stdio = (file: string, more: Json = {}): Json => ({ command: process.execPath, args: [path(file)], visibility: 'public', ...more })
const word = (bytes = 6): string => randomBytes(bytes).toString('hex')
const upstream = async (options: Options): Promise<string> => (await startUpstream(cleanup, options)).url
/** A server that ann stored. */
const anns = (url: string, more: Json = {}): Json => ({ url, owner: 'ann', storedByUser: true, visibility: 'public', ...more })
const mapOf = (length: number, entry: (n: number) => [string, Json]): Json => Object.fromEntries(Array.from({ length }, (_, n) => entry(n)))

/** A message of a client with ann's key. */
const post = async (victim: Victim, message: Json, session?: unknown, where = '/mcp'): Promise<Answered> => await send(victim, where, {
  headers: { ...bearer(victim.key), ...mcp, ...(session === undefined ? {} : { 'mcp-session-id': String(session) }) },
  body: JSON.stringify(message)
})

/** Begins a session. @returns its id, and the answer */
const begin = async (victim: Victim, capabilities: Json = {}, where?: string): Promise<Answered & { id: unknown }> => {
  const answer = await post(victim, initialize('2025-11-25', capabilities), undefined, where)
  return { ...answer, id: answer.headers['mcp-session-id'] }
}

const inSession = async (victim: Victim, id: unknown, method: string, params: Json = {}, where?: string): Promise<Answered> =>
  await post(victim, { jsonrpc: '2.0', id: 1, method, params }, id, where)

/** A request of the management API by ann. */
const manage = async (victim: Victim, method: string, where: string, body?: unknown, own = false): Promise<Answered> =>
  await send(victim, `/api${where}`, {
    method, own, headers: { 'x-auth-token': victim.login }, ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) })
  })

/** Enables servers. @returns what disables them */
async function enabling (victim: Victim, names: readonly string[]): Promise<() => Promise<void>> {
  const toggle = async (enabled: boolean): Promise<void> => {
    for (const name of names) count(`${enabled ? 'enabled' : 'disabled'} ${(await manage(victim, 'POST', `/servers/${name}/toggle`, { enabled })).status}`)
  }
  await toggle(true)
  return async () => { await toggle(false) }
}
const wait = async (ms: number): Promise<void> => { await new Promise((resolve) => { setTimeout(resolve, ms) }) }
const below = (length: number): number => Math.floor(Math.random() * length)

/** A request of a modern client (MCP 2026-07-28). */
const modern = ({ key }: Victim, method: string, params: Json = {}, capabilities: Json = {}): Sent =>
  modernRequest(method, { params, capabilities, key })

/** Ann's servers, made by the management API and removed at the end. */
async function storing (victim: Victim, length: number, configOf: (n: number) => Json): Promise<End> {
  await many(length, async (n) => {
    const body = { name: `pit-${n}`, config: { ...configOf(n), visibility: 'public' } }
    count(`stored ${(await manage(victim, 'POST', '/servers', body)).status}`)
  })
  const stop = flooding(10, async () => await manage(victim, 'POST', `/servers/pit-${below(length)}/reload`), ({ status }) => `reloads ${status}`)
  return async () => {
    stop()
    await many(length, async (n) => await manage(victim, 'DELETE', `/servers/pit-${n}`))
  }
}

/** Connections that are held. @param open called again whenever one was closed */
function holding (length: number, open: () => Socket): End {
  const sockets = new Set<Socket>()
  let isOver = false
  const add = (): void => {
    if (isOver) return
    const socket = open()
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => { sockets.delete(socket); count('cut'); setTimeout(add, 1_000) })
  }
  for (let n = 0; n < length; n++) add()
  return () => { isOver = true; for (const socket of sockets) socket.destroy() }
}

const large = async (): Promise<string> => {
  const text = `{"content":[{"type":"text","text":${JSON.stringify('x'.repeat(15 * MiB))}}]}`
  return await upstream({ tools: [tool('big')], on: ({ method }) => method === 'tools/call' ? new Raw(text) : undefined })
}

const callBig = async (victim: Victim): Promise<Answered> => await send(victim, '/api/tools/big/big', { body: '{}', own: true })

/**
 * A server of ann's that sends messages without end on each of its streams, as fast as they are taken: the one for changes, and those of
 * three calls that it never answers.
 * @param messageOf one of them, by its number
 */
const serving = (messageOf: (n: number) => object): Prepare => async () => {
  const streams = new Set<ServerResponse>()
  const flood = (stream: ServerResponse): void => {
    let n = 0
    const more = (): void => {
      const messages = Array.from({ length: 200 }, () => `data: ${JSON.stringify({ jsonrpc: '2.0', ...messageOf(n++) })}\n\n`)
      if (!stream.destroyed && stream.write(messages.join(''))) setImmediate(more)
    }
    stream.writeHead(200, { 'content-type': 'text/event-stream' })
    stream.on('drain', more).on('close', () => { streams.delete(stream) })
    streams.add(stream)
    more()
  }
  const answerOf: Record<string, object> = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: true }, logging: {} },
      serverInfo: { name: 'flood', version: '1' }
    },
    'tools/list': { tools: [tool('x')] }
  }
  const server = createHttpServer((asked, answer) => {
    if (asked.method === 'GET') { flood(answer); return }
    const chunks: Buffer[] = []
    asked.on('data', (chunk: Buffer) => { chunks.push(chunk) }).on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const { id, method } = (text === '' ? {} : JSON.parse(text)) as { id?: unknown, method?: string }
      if (method === undefined || id === undefined) {
        if (method === undefined) count('answered')
        answer.writeHead(202).end()
      } else if (method === 'tools/call') flood(answer)
      else answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: answerOf[method] ?? {} }))
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => { server.once('listening', resolve) })
  return {
    servers: { flood: anns(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, { enabled: false }) },
    begin: async (victim) => {
      const disable = await enabling(victim, ['flood'])
      const { id } = await begin(victim, { roots: {} })
      const calls = [1, 2, 3].map(async () => {
        const { status } = await inSession(victim, id, 'tools/call', { name: 'flood-x', arguments: {} })
        count(`calls ended ${status}`)
      })
      return async () => {
        for (const stream of streams) stream.destroy()
        await disable()
        await send(victim, '/mcp', { method: 'DELETE', headers: { ...bearer(victim.key), 'mcp-session-id': String(id) } })
        await Promise.all(calls)
      }
    }
  }
}

export const attacks: Record<string, Prepare> = {
  'nothing: the noise of the machine': async () => ({ begin: async () => () => {} }),

  'no attack: 50 small calls a second': async () => ({
    servers: { small: { url: await upstream({ tools: [tool('echo')] }), visibility: 'public' } },
    begin: async (victim) => flooding(50, async () => await send(victim, '/api/tools/small/echo', { body: '{}' }))
  }),

  'sessions without end by one key': async () => ({
    begin: async (victim) => {
      const held: string[] = []
      const open = async (): Promise<number> => {
        const { status, id } = await begin(victim)
        count(`sessions ${status}`)
        if (status === 200) held.push(String(id))
        return status
      }
      await many(12_000, async () => await open() === 200 ? undefined : 'enough')
      const stop = keepTrying(50, open)
      return async () => {
        stop()
        await many(held.length, async (n) =>
          await send(victim, '/mcp', { method: 'DELETE', headers: { ...bearer(victim.key), 'mcp-session-id': held[n] ?? '' } }))
      }
    }
  }),

  'held calls without credentials': async () => ({
    servers: { hold: stdio('test/fakes/fault-stdio.mjs') },
    begin: async ({ port }) => {
      const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
      const refused = { count: 0 }
      const open = (): void => {
        const sent = request({ host: '127.0.0.1', port, path: '/api/tools/hold/hang', method: 'POST', agent })
        sent.on('response', (answer) => { refused.count++; count(`calls ${answer.statusCode}`); answer.resume() }).on('error', () => {})
        sent.setHeader('content-type', 'application/json')
        sent.end('{}')
      }
      for (let n = 0; n < 8_000 && refused.count === 0; n++) {
        open()
        count('calls sent')
        if (n % 20 === 0) await wait(10)
      }
      const stop = keepTrying(50, async () => { open() })
      return () => { stop(); agent.destroy() }
    }
  }),

  '140 logins at a time from one address': async () => ({
    begin: async (victim) => {
      let isOver = false
      const logIn = async (): Promise<void> => {
        const body = JSON.stringify({ username: `nobody-${word()}`, password: 'guess' })
        const { status } = await send(victim, '/api/auth/login', { headers: { 'x-forwarded-for': '203.0.113.7' }, body, own: true })
        count(String(status))
      }
      for (let n = 0; n < 140; n++) void logIn()
      const stop = keepTrying(50, async () => { if (!isOver) await logIn() })
      await wait(200)
      return () => { isOver = true; stop() }
    }
  }),

  'x-session-ids and capabilities that each start a process': async () => ({
    servers: mapOf(3, (n) => [`s${n}`, stdio('test/fakes/fault-stdio.mjs')]),
    begin: async (victim) => {
      const byId = async (): Promise<void> => {
        const headers = { ...bearer(victim.key), 'x-session-id': word() }
        count(`calls ${(await send(victim, '/api/tools/s0/echo', { headers, body: '{"message":"hi"}' })).status}`)
      }
      const byCapabilities = async (): Promise<void> => {
        const { id } = await begin(victim, { sampling: { [word()]: {} }, elicitation: { form: { [word()]: {} } } })
        count(ofCall(await inSession(victim, id, 'tools/call', { name: 's1-echo', arguments: {} })))
      }
      await many(25, async (n) => { await (n % 2 === 0 ? byId() : byCapabilities()) })
      const stops = [keepTrying(25, byId), keepTrying(25, byCapabilities)]
      return () => { for (const stop of stops) stop() }
    }
  }),

  'capabilities that nobody declared, over 20 servers': async () => ({
    servers: mapOf(20, (n) => [`s${n}`, stdio('test/fakes/fault-stdio.mjs')]),
    begin: async (victim) => flooding(25, async () => {
      const { id } = await begin(victim, { roots: { [word()]: {} }, experimental: { [word()]: {} } })
      return await inSession(victim, id, 'tools/list')
    }, ({ status }) => `lists ${status}`)
  }),

  '100 servers that accept and never answer': async () => {
    const server = createServer((socket) => { socket.on('error', () => {}) })
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    const { port } = server.address() as AddressInfo
    return { begin: async (victim) => await storing(victim, 100, (n) => ({ type: 'sse', url: `http://127.0.0.1:${port}/${n}` })) }
  },

  '60 host names that are answered slowly': async () => {
    const { env } = await nameServer(cleanup)
    return { env, begin: async (victim) => await storing(victim, 60, (n) => ({ url: `http://n${n}.slow.test:9/mcp` })) }
  },

  "API descriptions of a user's servers": async () => {
    const api = await restApi(cleanup)
    const operation = (n: number): Json => ({
      operationId: `run${n}`,
      parameters: Array.from({ length: 5 }, (_, at) => ({ name: `p${at}`, in: 'query', schema: { type: 'string', description: 'd'.repeat(200) } }))
    })
    const paths = mapOf(4_000, (n) => [`/p${n}`, { get: operation(n) }])
    api.at('/api.json', (_request, response) => {
      count('descriptions sent')
      json(response, { openapi: '3.0.3', info: { title: 't', version: '1' }, servers: [{ url: api.url }], paths })
    })
    return {
      env: { ALLOW_USER_STDIO: 'true' },
      servers: mapOf(5, (n) => [`api${n}`, {
        type: 'openapi',
        openapi: { url: `${api.url}/api.json` },
        owner: 'ann',
        visibility: 'private',
        enabled: false
      }]),
      begin: async (victim) => {
        const disable = await enabling(victim, Array.from({ length: 5 }, (_, n) => `api${n}`))
        const stop = flooding(2, async () => await manage(victim, 'POST', `/servers/api${below(5)}/reload`), ({ status }) => `reloads ${status}`)
        return async () => {
          stop()
          await disable()
        }
      }
    }
  },

  '60 answers of 15 MiB at once, and 2 a second': async () => ({
    servers: { big: { url: await large(), visibility: 'public' } },
    begin: async (victim) => {
      for (let n = 0; n < 60; n++) void callBig(victim).then(({ status }) => { count(String(status)) })
      return flooding(2, async () => await callBig(victim))
    }
  }),

  'clients that do not read their answers': async () => ({
    servers: { big: { url: await large(), visibility: 'public' } },
    begin: async ({ port }) => {
      const text = 'POST /api/tools/big/big HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'
      const end = holding(30, () => {
        const socket = createConnection(port, '127.0.0.1', () => { count('sent'); socket.write(text) })
        socket.pause()
        return socket
      })
      await wait(3_000)
      return end
    }
  }),

  'bodies of 0.99 MiB, 2 a second': async () => {
    const url = await upstream({ tools: [tool('echo')] })
    const body = `{"message":[${'[],'.repeat(0.99 * MiB / 3)}[]]}`
    return {
      servers: { small: { url, visibility: 'public' } },
      begin: async (victim) => flooding(2, async () => await send(victim, '/api/tools/small/echo', { body, own: true }))
    }
  },

  'large bodies that are sent slowly': async () => ({
    servers: { small: { url: await upstream({ tools: [tool('echo')] }), visibility: 'public' } },
    begin: async ({ port }) => {
      const head = `POST /api/tools/small/echo HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${MiB}\r\n\r\n`
      const end = holding(100, () => {
        const socket = createConnection(port, '127.0.0.1', () => { count('sent'); socket.write(head + ' '.repeat(0.9 * MiB)) })
        return socket
      })
      await wait(2_000)
      return end
    }
  }),

  'five public servers of one user that list without end': async () => {
    const changed: Array<() => Promise<void>> = []
    const servers: Json = {}
    for (let n = 0; n < 5; n++) {
      const one = await startUpstream(cleanup, {
        on: ({ method, params }) => {
          if (method !== 'tools/list') return undefined
          const page = Number(params.cursor ?? 0)
          count('pages listed')
          return {
            tools: [tool(`t${page}-${Math.floor(Date.now() / 1_000)}`, { inputSchema: { type: 'object', description: 'x'.repeat(200_000) } })],
            nextCursor: String(page + 1)
          }
        }
      })
      changed.push(async () => { await one.broadcast('notifications/tools/list_changed') })
      servers[`endless${n}`] = anns(one.url, { enabled: false })
    }
    return {
      servers,
      begin: async (victim) => {
        const disable = await enabling(victim, Object.keys(servers))
        await wait(2_000)
        const stop = keepTrying(5, async () => { await Promise.all(changed.map(async (notify) => { await notify() })) })
        return async () => {
          stop()
          await disable()
        }
      }
    }
  },

  'questions without end': serving((n) => ({ id: `q${n}`, method: 'roots/list' })),
  'pings without end': serving((n) => ({ id: `q${n}`, method: 'ping' })),
  'log messages without end': serving((n) => ({ method: 'notifications/message', params: { level: 'info', data: `${'x'.repeat(200)}${n}` } })),

  'configs with 40,000 headers, 2 a second': async () => {
    const config = { url: 'http://127.0.0.1:9/', headers: mapOf(40_000, (n) => [`x-${n}`, `key-${n}` as unknown as Json]) }
    const body = JSON.stringify({ name: 'many', config })
    return {
      begin: async (victim) => flooding(2, async () => await manage(victim, 'POST', '/servers', body))
    }
  },

  'a child that writes single bytes': async () => ({
    servers: { drip: stdio('test/fakes/drip.mjs', { owner: 'ann' }) },
    begin: async (victim) => {
      const call = async (name: string): Promise<void> => {
        count(`${name} ${(await send(victim, `/api/tools/drip/${name}`, { headers: bearer(victim.key), body: '{}' })).status}`)
      }
      await call('begin')
      return async () => { await call('end') }
    }
  }),

  'hostile schemas on 20 servers of one owner': async () => {
    const pattern = { type: 'object', properties: { text: { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' } } }
    const url = await upstream({ tools: Array.from({ length: 10 }, (_, n) => tool(`evil${n}`, { inputSchema: pattern })) })
    const body = JSON.stringify({ text: 'a'.repeat(40) })
    return {
      servers: mapOf(20, (n) => [`evil${n}`, anns(url)]),
      begin: async (victim) => flooding(50, async () =>
        await send(victim, `/api/tools/evil${below(20)}/evil${below(10)}`, { headers: bearer(victim.key), body }))
    }
  },

  'API descriptions of 0.6 MiB within configs, 2 a second': async () => {
    const operation = (n: number): Json => ({ operationId: `run${n}`, responses: { 200: { description: 'done' } } })
    const paths = mapOf(8_000, (n) => [`/p${n}`, { get: operation(n) }])
    const schema = { openapi: '3.0.3', info: { title: 't', version: '1' }, servers: [{ url: 'http://127.0.0.1:9' }], paths }
    const bodyOf = (n: number): string => JSON.stringify({ name: 'described', config: { type: 'openapi', description: String(n), openapi: { schema } } })
    return {
      env: { ALLOW_USER_STDIO: 'true' },
      begin: async (victim) => {
        let n = 0
        count(`stored ${(await manage(victim, 'POST', '/servers', bodyOf(n))).status}`)
        const stop = flooding(2, async () => await manage(victim, 'PUT', '/servers/described', bodyOf(++n)), ({ status }) => `changed ${status}`)
        return async () => {
          stop()
          await manage(victim, 'DELETE', '/servers/described')
        }
      }
    }
  },

  'searches of catalogues that nobody made before': async () => {
    const api = await restApi(cleanup)
    const argument = { type: 'named', name: '--key', isRequired: true, description: 'd'.repeat(200) }
    const pack = { registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' }, packageArguments: [argument] }
    const servers = Array.from({ length: 1_000 }, (_, n) => ({
      server: { name: `com.example/s${n}`, description: 'd'.repeat(100), version: '1.0.0', packages: [pack, pack] }
    }))
    const text = JSON.stringify({ servers, metadata: { count: servers.length } })
    api.answer((_request, response) => {
      count('asked')
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    })
    return {
      env: { REGISTRY_URL: api.url },
      begin: async (victim) => flooding(50, async () => await manage(victim, 'GET', `/registry/servers?search=${word()}`))
    }
  },

  'results of 1 MiB that are compressed, 10 a second': async () => {
    const lines = Array.from({ length: 10_000 }, (_, n) => `2026-11-23T09:00:00Z INFO request ${n * 7_919} took ${n % 97} ms at worker ${n % 13}, ${word(12)}`)
    const result = new Raw(JSON.stringify({ content: [{ type: 'text', text: lines.join('\n') }] }))
    const url = await upstream({ tools: [tool('log')], on: ({ method }) => method === 'tools/call' ? result : undefined })
    return {
      servers: { verbose: anns(url) },
      system: { toolResultCompression: { enabled: true } },
      begin: async (victim) => {
        const { id } = await begin(victim)
        return flooding(10, async () => await inSession(victim, id, 'tools/call', { name: 'verbose-log', arguments: {} }),
          ({ body }) => body.includes('"error"') ? 'calls -32001' : body.length < 0.5 * MiB ? 'compressed' : 'as they were')
      }
    }
  },

  'uploads of bundles by who may not': async () => {
    const limit = '--x\r\ncontent-disposition: form-data; name="mcpbFile"; filename="a.mcpb"\r\n\r\n'
    const body = `${limit}${'x'.repeat(5 * MiB)}\r\n--x--\r\n`
    return {
      begin: async (victim) => flooding(20, async () => {
        const headers = { 'x-auth-token': victim.login, 'content-type': 'multipart/form-data; boundary=x' }
        return await send(victim, '/api/mcpb/upload', { headers, body, own: true })
      })
    }
  },

  'modern calls whose questions are never answered, 50 a second': async () => {
    const question = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
    const url = await upstream({
      tools: [tool('ask')],
      on: async ({ method, ask }) => {
        if (method !== 'tools/call') return undefined
        await ask('elicitation/create', question)
        return { content: [] }
      }
    })
    return {
      servers: { asks: anns(url, { isolation: 'shared' }) },
      begin: async (victim) => {
        const call = async (): Promise<void> => {
          const { body } = await send(victim, '/mcp/asks', modern(victim, 'tools/call', { name: 'ask', arguments: {} }, { elicitation: {} }))
          count(body.includes('input_required') ? 'parked' : body.slice(0, 60))
        }
        await many(2_000, call)
        return keepTrying(50, call)
      }
    }
  },

  'modern requests with other capabilities each time, 50 a second': async () => ({
    servers: mapOf(5, (n) => [`s${n}`, stdio('test/fakes/fault-stdio.mjs')]),
    begin: async (victim) => flooding(50, async () => {
      const capabilities = { sampling: { [word()]: {} }, elicitation: { form: { [word()]: {} } } }
      const params = { name: `s${below(5)}-echo`, arguments: { message: 'hi' } }
      return await send(victim, '/mcp', modern(victim, 'tools/call', params, capabilities))
    }, ofCall)
  }),

  'subscriptions/listen without end': async () => ({
    begin: async (victim) => {
      const held = new Set<() => void>()
      const { headers, body } = modern(victim, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
      const listen = async (): Promise<'enough' | undefined> => await new Promise((resolve) => {
        const sent = request({
          host: '127.0.0.1',
          port: victim.port,
          path: '/mcp',
          method: 'POST',
          agent: false,
          headers: { 'content-type': 'application/json', ...headers }
        }, (answer) => {
          count(`listen ${answer.statusCode}`)
          const isOpen = String(answer.headers['content-type']).startsWith('text/event-stream')
          if (isOpen) held.add(() => { sent.destroy() })
          answer.on('error', () => {}).resume()
          resolve(isOpen ? undefined : 'enough')
        })
        sent.on('error', () => { resolve('enough') })
        sent.end(body)
      })
      await many(8_000, listen)
      const stop = keepTrying(50, listen)
      return () => { stop(); for (const end of held) end() }
    }
  }),

  'subscriptions to resources without end': async () => {
    const url = await upstream({
      capabilities: { tools: {}, resources: { subscribe: true } },
      on: ({ method }) => method === 'resources/subscribe' ? {} : undefined
    })
    return {
      servers: { feed: anns(url) },
      begin: async (victim) => {
        const subscribe = async (id: unknown): Promise<'enough' | undefined> => {
          const { body } = await inSession(victim, id, 'resources/subscribe', { uri: `feed://${word(500)}` }, '/mcp/feed')
          count(body.includes('"error"') ? 'refused' : 'subscribed')
          return body.includes('"error"') ? 'enough' : undefined
        }
        const ids = await Promise.all(Array.from({ length: 20 }, async () => (await begin(victim, {}, '/mcp/feed')).id))
        await many(20_000, async (n) => await subscribe(ids[n % 20]))
        return keepTrying(50, async () => { await subscribe(ids[below(20)]) })
      }
    }
  },

  '50 changes a second, with configs of 3.9 MiB': async () => ({
    servers: mapOf(4, (n) => [`large${n}`, anns('http://127.0.0.1:9/', { enabled: false, description: 'x'.repeat(0.98 * MiB) })]),
    begin: async (victim) => {
      await manage(victim, 'POST', '/groups', { name: 'anns-group' })
      return keepTrying(50, async () => {
        const isLarge = Math.random() < 0.5
        const { status } = isLarge
          ? await manage(victim, 'POST', `/servers/large${below(4)}/toggle`, { enabled: false })
          : await manage(victim, 'POST', '/groups', { name: `g-${word()}` })
        count(`${isLarge ? 'toggle' : 'group'} ${status}`)
      })
    }
  }),

  'lists of servers with 14 MiB of items, 20 a second': async () => {
    const items = Array.from({ length: 14 }, (_, n) => tool(`t${n}`, { inputSchema: { type: 'object', title: 'x'.repeat(1_000_000) } }))
    return {
      servers: { heavy: anns(await upstream({ tools: items })) },
      begin: async (victim) => flooding(20, async () => await manage(victim, 'GET', '/servers', undefined, true))
    }
  },

  'tests of servers that list 14 MiB': async () => {
    const items = Array.from({ length: 70 }, (_, n) => tool(`t${n}`, { inputSchema: { type: 'object', title: 'x'.repeat(200_000) } }))
    const url = await upstream({ tools: items, pageSize: 1 })
    return {
      begin: async (victim) => flooding(5, async () => await manage(victim, 'POST', '/servers/test', { config: { url } }))
    }
  },

  'slow senders': async () => ({
    begin: async ({ port }) => {
      const drips = new Set<Socket>()
      const end = holding(1_000, () => {
        const socket = createConnection(port, '127.0.0.1', () => { count('opened'); socket.write('POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ') })
        drips.add(socket)
        socket.on('close', () => { drips.delete(socket) })
        return socket.resume()
      })
      const timer = setInterval(() => { for (const socket of drips) if (socket.writable) socket.write('x') }, 1_000)
      return () => { clearInterval(timer); end() }
    }
  }),

  'wrong keys, 250 a second': async () => ({
    begin: async (victim) => flooding(250, async () => (await begin({ ...victim, key: `thk_${word(32)}` })))
  })
}

const report = (message: Report): void => { process.send?.(message) }

// The names are read by the process that starts this one, too.
if (/attacker\.[jt]s$/.test(process.argv[1] ?? '')) {
  const prepare = attacks[process.argv[2] ?? '']
  if (!prepare) throw new Error(`there is no such attack: ${process.argv[2]}`)
  const { servers = {}, env = {}, system = {}, begin } = await prepare()
  let end: End = () => {}
  process.on('message', (order: Order) => {
    void (async () => {
      if ('begin' in order) {
        end = await begin(order.begin)
        report({ held: true })
      } else {
        await end()
        report({ ended: counts })
      }
    })()
  })
  process.on('disconnect', () => { process.exit() })
  report({ setting: { servers, env, system } })
}
