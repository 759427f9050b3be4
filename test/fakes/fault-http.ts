import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { until, type Cleanup } from '../helpers/hub.ts'
import { bodyOf } from './answer-by.ts'
import type { Json, Message } from '../helpers/client.ts'

/** A result as the bytes that go on the wire, for what JSON.stringify cannot say. */
export class Raw {
  readonly json: string
  constructor (json: string) { this.json = json }
}

/** A JSON-RPC error to answer with. */
export class Refusal {
  readonly error: Json
  constructor (code: number, message: string, data?: unknown) { this.error = { code, message, ...(data === undefined ? {} : { data }) } }
}

/** What a handler may answer: a result, an error, nothing at all ('never'), or 'taken' when it wrote to `res` itself. */
export type Answer = Json | Raw | Refusal | 'never' | 'taken' | undefined

/** One request of the gateway, as this upstream saw it. */
export interface Call {
  id: string | number
  method: string
  params: Json
  /** The request's body, byte for byte. */
  body: string
  headers: IncomingHttpHeaders
  session: UpstreamSession
  res: ServerResponse
  /** Sends a message on this call's own stream (which makes the answer an SSE stream). */
  notify: (method: string, params: Json) => void
  /** Asks the client a question on this call's own stream; its response, result or error. */
  ask: (method: string, params: Json) => Promise<Message>
}

export interface Options {
  tools?: Json[]
  prompts?: Json[]
  resources?: Json[]
  resourceTemplates?: Json[]
  capabilities?: Json
  serverInfo?: Json
  instructions?: string
  /** Items on each page of a list; nothing: all on one. */
  pageSize?: number
  /** Answers an HTTP request itself, before anything is read of it, and says true; false leaves it to the rest. */
  raw?: (req: IncomingMessage, res: ServerResponse) => boolean
  /** Answers a request in its own way; undefined leaves it to the defaults. */
  on?: (call: Call) => Answer | Promise<Answer>
}

/** What the gateway opened here with one initialize. */
export class UpstreamSession {
  readonly id = randomUUID()
  readonly capabilities: Json
  readonly streams = new Set<ServerResponse>()
  /** The id of the newest question on its GET stream. */
  lastQuestion: string | undefined
  readonly #questions: Map<string | number, (message: Message) => void>

  constructor (capabilities: Json, questions: Map<string | number, (message: Message) => void>) {
    this.capabilities = capabilities
    this.#questions = questions
  }

  /** Sends a notification on the session's GET stream, once there is one. */
  async notify (method: string, params: Json = {}): Promise<void> {
    await this.#stream()
    this.#send({ jsonrpc: '2.0', method, params })
  }

  /** Asks a question on the session's GET stream, unrelated to any call. */
  async ask (method: string, params: Json): Promise<Message> {
    await this.#stream()
    const id = randomUUID()
    this.lastQuestion = id
    const answer = new Promise<Message>((resolve) => { this.#questions.set(id, resolve) })
    this.#send({ jsonrpc: '2.0', id, method, params })
    return await answer
  }

  async #stream (): Promise<void> { await until(() => this.streams.size > 0, 'the gateway never opened a GET stream upstream') }

  #send (message: Json): void {
    const [stream] = this.streams
    stream?.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
  }
}

/** A streamable HTTP upstream of our own, inside the test's process, that does as it is told. */
export class Upstream {
  options: Options
  url = ''
  port = 0
  /** The sessions that still live, oldest first. */
  readonly sessions = new Map<string, UpstreamSession>()
  /** Every message received, in order. */
  readonly received: { message: Message; body: string; headers: IncomingHttpHeaders; session: string | undefined }[] = []
  readonly #server = createServer((req, res) => {
    this.#handle(req, res).catch((error: unknown) => { res.destroy(error instanceof Error ? error : undefined) })
  })

  readonly #questions = new Map<string | number, (message: Message) => void>()

  constructor (options: Options) { this.options = options }

  async listen (): Promise<this> {
    await new Promise<void>((resolve) => { this.#server.listen(this.port, '127.0.0.1', resolve) })
    this.port = (this.#server.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}/mcp`
    return this
  }

  async close (): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => { this.#server.close(resolve) })
  }

  /** Forgets every session: what comes on them from now on is answered 404. */
  expire (): void {
    for (const session of this.sessions.values()) for (const stream of session.streams) stream.end()
    this.sessions.clear()
  }

  /** Connections that are open to it now. */
  async connections (): Promise<number> {
    return await promisify(this.#server.getConnections.bind(this.#server))()
  }

  count (method: string): number {
    return this.received.filter(({ message }) => message.method === method).length
  }

  /** The ids of the requests that were cancelled here. */
  get cancelled (): unknown[] {
    return this.received.flatMap(({ message: { method, params } }) => method === 'notifications/cancelled' ? [params?.requestId] : [])
  }

  /** Sends a notification on the GET stream of every session. */
  async broadcast (method: string, params: Json = {}): Promise<void> {
    const isOpen = (): boolean => [...this.sessions.values()].some((session) => session.streams.size > 0)
    await until(isOpen, 'the gateway never opened a GET stream upstream')
    for (const session of this.sessions.values()) if (session.streams.size > 0) await session.notify(method, params)
  }

  async #handle (req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (this.options.raw?.(req, res) === true) { req.resume(); return }
    const body = await bodyOf(req)
    const sessionId = req.headers['mcp-session-id'] as string | undefined
    const session = sessionId === undefined ? undefined : this.sessions.get(sessionId)
    const message = req.method === 'POST' ? JSON.parse(body) as Message : undefined
    if (message) this.received.push({ message, body, headers: req.headers, session: sessionId })
    if (message?.method === 'initialize') { await this.#initialize(message, req, res, body); return }
    if (session === undefined) {
      const error = { code: sessionId === undefined ? -32000 : -32001, message: 'Session not found' }
      res.writeHead(sessionId === undefined ? 400 : 404, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: null, error }))
      return
    }
    if (message) { await this.#receive(message, body, req, res, session); return }
    switch (req.method) {
      case 'DELETE':
        for (const stream of session.streams) stream.end()
        this.sessions.delete(session.id)
        res.writeHead(200).end()
        return
      case 'GET':
        res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }).write(': open\n\n')
        session.streams.add(res)
        res.on('close', () => { session.streams.delete(res) })
        return
      default: res.writeHead(405).end()
    }
  }

  async #receive (message: Message, body: string, req: IncomingMessage, res: ServerResponse, session: UpstreamSession): Promise<void> {
    const { id, method, params = {} } = message
    if (method !== undefined && id !== undefined && id !== null) {
      await this.#answer(id, method, params, body, req, res, session)
      return
    }
    if (method === undefined && id !== undefined && id !== null) {
      this.#questions.get(id)?.(message)
      this.#questions.delete(id)
    }
    res.writeHead(202).end()
  }

  async #initialize (message: Message, req: IncomingMessage, res: ServerResponse, body: string): Promise<void> {
    const session = new UpstreamSession((message.params?.capabilities ?? {}) as Json, this.#questions)
    const { options } = this
    this.sessions.set(session.id, session)
    const version = String(message.params?.protocolVersion)
    const hasResources = options.resources !== undefined || options.resourceTemplates !== undefined
    const result: Json = {
      protocolVersion: /^20(24|25)-/.test(version) ? version : '2025-11-25',
      capabilities: options.capabilities ?? {
        tools: { listChanged: true },
        ...(options.prompts && { prompts: { listChanged: true } }),
        ...(hasResources && { resources: { subscribe: true, listChanged: true } }),
        logging: {}
      },
      serverInfo: options.serverInfo ?? { name: 'fault', version: '1.0.0' },
      ...(options.instructions === undefined ? {} : { instructions: options.instructions })
    }
    res.setHeader('mcp-session-id', session.id)
    await this.#answer(message.id ?? 0, 'initialize', message.params ?? {}, body, req, res, session, result)
  }

  async #answer (
    id: string | number, method: string, params: Json, body: string, req: IncomingMessage, res: ServerResponse,
    session: UpstreamSession, fallback?: Json
  ): Promise<void> {
    const write = (message: string): void => {
      if (!res.headersSent) res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
      res.write(`event: message\ndata: ${message}\n\n`)
    }
    const { headers } = req
    const call: Call = {
      id,
      method,
      params,
      body,
      headers,
      session,
      res,
      notify: (name, more) => { write(JSON.stringify({ jsonrpc: '2.0', method: name, params: more })) },
      ask: async (name, more) => {
        const question = randomUUID()
        const answer = new Promise<Message>((resolve) => { this.#questions.set(question, resolve) })
        write(JSON.stringify({ jsonrpc: '2.0', id: question, method: name, params: more }))
        return await answer
      }
    }
    const answer = (await this.options.on?.(call)) ?? fallback ?? this.#usual(call)
    if (answer === 'never' || answer === 'taken') return
    const response = answer instanceof Raw
      ? `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${answer.json}}`
      : JSON.stringify({ jsonrpc: '2.0', id, ...(answer instanceof Refusal ? { error: answer.error } : { result: answer }) })
    if (res.headersSent) { write(response); res.end() } else res.writeHead(200, { 'content-type': 'application/json' }).end(response)
  }

  #page (key: string, items: Json[], params: Json): Json {
    const start = Number(params.cursor ?? 0)
    const size = this.options.pageSize ?? items.length + 1
    const end = start + size
    return { [key]: items.slice(start, end), ...(end < items.length ? { nextCursor: String(end) } : {}) }
  }

  #usual ({ method, params }: Call): Answer {
    const { options } = this
    switch (method) {
      case 'tools/list': return this.#page('tools', options.tools ?? [tool('echo')], params)
      case 'prompts/list': return this.#page('prompts', options.prompts ?? [], params)
      case 'resources/list': return this.#page('resources', options.resources ?? [], params)
      case 'resources/templates/list': return this.#page('resourceTemplates', options.resourceTemplates ?? [], params)
      case 'tools/call':
        return { content: [{ type: 'text', text: String((params.arguments as Json | undefined)?.message ?? params.name) }] }
      case 'ping': case 'logging/setLevel': case 'resources/subscribe': case 'resources/unsubscribe': return {}
      default: return new Refusal(-32601, `Method not found: ${method}`)
    }
  }
}

/** A tool that takes anything. */
export const tool = (name: string, more: Json = {}): Json =>
  ({ name, description: `The tool ${name}`, inputSchema: { type: 'object' }, ...more })

/** Starts an upstream on a free port; closed after the test. */
export async function startUpstream (t: Cleanup, options: Options = {}): Promise<Upstream> {
  const upstream = await new Upstream(options).listen()
  t.after(async () => { await upstream.close() })
  return upstream
}
