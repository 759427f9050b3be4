import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { createConnection } from 'node:net'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js'
import { bearerKey, deadline, freePort, npmServer, path, until, type Cleanup, type Hub } from './hub.ts'

export type Json = Record<string, unknown>

/** A JSON-RPC message as it stood on the wire. */
export interface Message {
  jsonrpc?: string
  id?: string | number | null
  method?: string
  params?: Json
  result?: Json
  error?: { code: number, message: string, data?: unknown }
}

/** The token of `bearerKey()`, which `settings()` puts into every file. */
export const KEY = bearerKey().token

/** A second key, for tests about strangers. */
export const OTHER = `thk_${'b'.repeat(64)}`
export const otherKey = (more: Json = {}): Json =>
  bearerKey({ id: '22222222-2222-4222-8222-222222222222', name: 'other', token: OTHER, ...more })

/** A settings file with these servers, opened by KEY. */
export const settings = (mcpServers: Json, more: Json = {}): Json => ({ mcpServers, bearerKeys: [bearerKey()], ...more })

/** Waits until the gateway says that so many servers are connected. */
export async function connected (hub: Hub, count: number): Promise<void> {
  let seen: unknown
  await until(async () => {
    const health: unknown = await (await fetch(`${hub.url}/health`)).json()
    seen = at(health, 'servers')
    return Number(at(health, 'servers', 'connected')) >= count
  }, () => `${count} servers were never connected: ${JSON.stringify(seen)}\n${hub.output().slice(-4_000)}`)
}

/** Waits until the global route lists a tool of each of these servers. */
export async function listed (hub: Hub, servers: string[]): Promise<void> {
  const session = await Session.open(`${hub.url}/mcp`)
  let seen: string[] = []
  await until(async () => {
    seen = await session.tools()
    return servers.every((server) => seen.some((name) => name.startsWith(`${server}-`)))
  }, () => `not all of ${servers.join(' ')} among ${seen.join(' ')}\n${hub.output().slice(-4_000)}`)
}

/** The value below a path of keys, or undefined. */
export function at (value: unknown, ...path: (string | number)[]): unknown {
  let found = value
  for (const key of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = (found as Json)[key]
  }
  return found
}

/** The text of a tool result (all its text blocks), or of a prompt's first message. */
export function text (result: unknown): string {
  const blocks = at(result, 'content') ?? [at(result, 'messages', 0, 'content')]
  assert.ok(Array.isArray(blocks), `no content: ${JSON.stringify(result)}`)
  return blocks.map((block: unknown) => String(at(block, 'text') ?? '')).join('\n')
}

export const names = (items: unknown): string[] => (items as { name: string }[]).map((item) => item.name)

// ---- the SDK's own client -----------------------------------------------------------------------

export interface AgentOptions {
  /** The bearer key; null: none. */
  key?: string | null
  name?: string
  capabilities?: ClientCapabilities
  headers?: Record<string, string>
  /** Sets handlers before the client connects. */
  prepare?: (client: Client) => void
}

const fresh = async (options: AgentOptions): Promise<Client> => {
  // Only who wants a client of the SDK loads it: it takes longer than all of Node.
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const client = new Client({ name: options.name ?? 'test', version: '1.0.0' }, { capabilities: options.capabilities ?? {} })
  options.prepare?.(client)
  return client
}

const authorization = (key: string | null | undefined): Record<string, string> =>
  key === null ? {} : { authorization: `Bearer ${key ?? KEY}` }

/** An SDK client on a streamable HTTP endpoint, initialized. */
export async function agent (t: Cleanup, url: string, options: AgentOptions = {}): Promise<Client> {
  const client = await fresh(options)
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...authorization(options.key), ...options.headers } }
  })
  await client.connect(transport)
  t.after(async () => { await client.close() })
  return client
}

/** An SDK client on a child of its own, without the gateway. */
export async function directStdio (
  t: Cleanup,
  server: { command: string; args: string[] },
  env: Record<string, string> = {},
  options: AgentOptions = {}
): Promise<Client> {
  const client = await fresh(options)
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
  await client.connect(new StdioClientTransport({ ...server, env: { PATH: process.env.PATH ?? '', ...env }, stderr: 'ignore' }))
  t.after(async () => { await client.close() })
  return client
}

/** server-everything over HTTP, as its own process; the URL of its endpoint. */
export async function everything (t: Cleanup, kind: 'streamableHttp' | 'sse' = 'streamableHttp'): Promise<string> {
  const { command, args } = npmServer('everything', kind)
  const port = await freePort()
  const child = spawn(command, args, { env: { PATH: process.env.PATH ?? '', PORT: String(port) }, stdio: 'ignore' })
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  await until(async () => {
    const socket = createConnection(port, '127.0.0.1')
    try { await once(socket, 'connect') } finally { socket.destroy() }
    return true
  }, 'server-everything never listened')
  return `http://127.0.0.1:${port}/${kind === 'sse' ? 'sse' : 'mcp'}`
}

// ---- raw JSON-RPC over fetch --------------------------------------------------------------------

export interface Event { id?: string, name?: string, data: string, message?: Message }

/** One HTTP answer, read as it comes: a JSON body, or the events of an SSE stream. */
export class Stream {
  readonly status: number
  readonly headers: Headers
  readonly events: Event[] = []
  /** Every JSON-RPC message so far, in order (a batch's answers one by one). */
  readonly messages: Message[] = []
  /** Everything received so far, as text. */
  body = ''
  ended = false
  /** Comment lines of an SSE stream so far. */
  comments = 0
  readonly done: Promise<void>
  readonly #abort: AbortController
  #wake: () => void = () => {}

  constructor (response: Response, abort: AbortController) {
    this.status = response.status
    this.headers = response.headers
    this.#abort = abort
    this.done = this.#read(response).catch(() => {}).finally(() => { this.ended = true; this.#wake() })
  }

  async #read (response: Response): Promise<void> {
    const sse = this.sse
    const decoder = new TextDecoder()
    let rest = ''
    if (response.body !== null) {
      for await (const chunk of response.body) {
        const part = decoder.decode(chunk as Uint8Array, { stream: true })
        this.body += part
        if (!sse) continue
        rest += part
        const blocks = rest.split(/\r?\n\r?\n/)
        rest = blocks.pop() ?? ''
        for (const block of blocks) this.#event(block)
        this.#wake()
      }
    }
    if (!sse && this.body !== '') {
      const parsed: unknown = JSON.parse(this.body)
      this.messages.push(...(Array.isArray(parsed) ? parsed : [parsed]) as Message[])
    }
  }

  #event (block: string): void {
    const data: string[] = []
    let id: string | undefined
    let name: string | undefined
    for (const line of block.split(/\r?\n/)) {
      if (line.startsWith(':')) this.comments++
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
      else if (line.startsWith('id:')) id = line.slice(3).replace(/^ /, '')
      else if (line.startsWith('event:')) name = line.slice(6).replace(/^ /, '')
    }
    if (data.length === 0 && id === undefined) return
    const event: Event = { id, name, data: data.join('\n') }
    this.events.push(event)
    // Only events of the type `message` carry JSON-RPC; HTTP+SSE has `endpoint` as well.
    if (event.data === '' || (name ?? 'message') !== 'message') return
    const parsed: unknown = JSON.parse(event.data)
    event.message = (Array.isArray(parsed) ? parsed[0] : parsed) as Message
    this.messages.push(...(Array.isArray(parsed) ? parsed : [parsed]) as Message[])
  }

  get sse (): boolean { return (this.headers.get('content-type') ?? '').startsWith('text/event-stream') }

  /** The first message that fits, now or within a minute. */
  async wait (fits: (message: Message) => boolean): Promise<Message> {
    const start = Date.now()
    for (;;) {
      const found = this.messages.find(fits)
      if (found !== undefined) return found
      if (this.ended) throw new Error(`the stream ended without the message (HTTP ${this.status}): ${this.body.slice(0, 2_000)}`)
      if (Date.now() - start > deadline) throw new Error(`no such message in a minute (HTTP ${this.status}): ${this.body.slice(0, 2_000)}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 50)
        this.#wake = () => { clearTimeout(timer); resolve() }
      })
    }
  }

  /** Hangs up. */
  close (): void { this.#abort.abort() }
}

export interface SendOptions {
  method?: string
  key?: string | null
  headers?: Record<string, string>
  /** An object is written as JSON, text and bytes go as they are. */
  body?: unknown
}

/** One HTTP request to an MCP endpoint, with what a legacy client would send. */
export async function open (url: string, options: SendOptions = {}): Promise<Stream> {
  const abort = new AbortController()
  const { body } = options
  const response = await fetch(url, {
    method: options.method ?? 'POST',
    headers: {
      ...authorization(options.key),
      accept: 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers
    },
    body: body === undefined ? undefined : typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    signal: abort.signal
  })
  return new Stream(response, abort)
}

/** As `open`, read to its end; fails when it does not end within a minute. */
export async function send (url: string, options: SendOptions = {}): Promise<Stream> {
  const stream = await open(url, options)
  const timer = setTimeout(() => { stream.close() }, deadline)
  await stream.done
  clearTimeout(timer)
  return stream
}

export const initialize = (version = '2025-11-25', capabilities: Json = {}, id: string | number = 'init'): Json => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion: version, capabilities, clientInfo: { name: 'raw', version: '1.0.0' } }
})

export interface SessionOptions { key?: string | null, version?: string, capabilities?: Json, headers?: Record<string, string> }

/** A legacy session, spoken by hand. */
export class Session {
  readonly url: string
  readonly id: string
  readonly version: string
  readonly init: Json
  readonly #options: SessionOptions
  #next = 1

  private constructor (url: string, id: string, version: string, init: Json, options: SessionOptions) {
    this.url = url
    this.id = id
    this.version = version
    this.init = init
    this.#options = options
  }

  static async open (url: string, options: SessionOptions = {}): Promise<Session> {
    const version = options.version ?? '2025-11-25'
    const reply = await send(url, { key: options.key, headers: options.headers, body: initialize(version, options.capabilities) })
    assert.equal(reply.status, 200, `initialize: HTTP ${reply.status} ${reply.body}`)
    const result = reply.messages.find((message) => message.id === 'init')?.result
    assert.ok(result !== undefined, `initialize: ${reply.body}`)
    const id = reply.headers.get('mcp-session-id')
    assert.ok(id !== null, 'initialize gave no mcp-session-id')
    const session = new Session(url, id, String(result.protocolVersion), result, options)
    assert.equal((await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202)
    return session
  }

  get headers (): Record<string, string> {
    return { 'mcp-session-id': this.id, 'mcp-protocol-version': this.version, ...this.#options.headers }
  }

  #with (options: SendOptions): SendOptions {
    return { key: this.#options.key, ...options, headers: { ...this.headers, ...options.headers } }
  }

  /** A POST, read to its end. */
  async post (body: unknown, headers: Record<string, string> = {}): Promise<Stream> {
    return await send(this.url, this.#with({ body, headers }))
  }

  /** A POST whose answer is read as it comes. */
  async start (body: unknown): Promise<Stream> {
    return await open(this.url, this.#with({ body }))
  }

  /** A GET stream. */
  async listen (lastEventId?: string): Promise<Stream> {
    return await open(
      this.url,
      this.#with({
        method: 'GET',
        headers: { accept: 'text/event-stream', ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }) }
      })
    )
  }

  async end (): Promise<Stream> {
    return await send(this.url, this.#with({ method: 'DELETE' }))
  }

  async notify (method: string, params?: Json): Promise<void> {
    assert.equal((await this.post({ jsonrpc: '2.0', method, params })).status, 202, method)
  }

  /** A request with an id of its own; its response, be it a result or an error. */
  async request (method: string, params?: Json): Promise<Message> {
    const id = this.#next++
    const reply = await this.post({ jsonrpc: '2.0', id, method, params })
    const message = reply.messages.find((one) => one.id === id && one.method === undefined)
    assert.ok(message !== undefined, `${method}: HTTP ${reply.status} ${reply.body.slice(0, 2_000)}`)
    return message
  }

  /** A request that must succeed; its result. */
  async ask (method: string, params?: Json): Promise<Json> {
    const message = await this.request(method, params)
    assert.equal(message.error, undefined, `${method}: ${JSON.stringify(message.error)}`)
    return message.result ?? {}
  }

  /** A tool call that must be answered with a result. */
  async call (name: string, args: Json = {}): Promise<Json> {
    return await this.ask('tools/call', { name, arguments: args })
  }

  /** Every page of a list. */
  async list (method: string, key: string): Promise<Json[]> {
    const items: Json[] = []
    let cursor: unknown
    for (let page = 0; page < 100; page++) {
      const result = await this.ask(method, cursor === undefined ? {} : { cursor: String(cursor) })
      items.push(...(result[key] as Json[]))
      cursor = result.nextCursor
      if (cursor === undefined) return items
    }
    assert.fail(`${method} never ended`)
  }

  async tools (): Promise<string[]> {
    return names(await this.list('tools/list', 'tools'))
  }
}

/** An error that may reach a caller: it says something, and nothing of our insides. */
export function assertPlain (body: string): void {
  assert.doesNotMatch(
    body,
    /\bat [^\n"]{0,200}\.(?:[cm]?[jt]s):\d+|node_modules|node:internal|file:\/\/|\/tmp\//,
    `a stack trace or a path: ${body.slice(0, 2_000)}`
  )
  assert.ok(!body.includes(path('')), `a path: ${body.slice(0, 2_000)}`)
}

/** An HTTP failure of an MCP route: this status, a JSON-RPC error with this code, plain words. */
export function assertRefused (reply: Stream, status: number, code?: number): void {
  assert.equal(reply.status, status, reply.body.slice(0, 2_000))
  assertPlain(reply.body)
  if (code === undefined) return
  const message = reply.messages[0]
  assert.equal(message?.jsonrpc, '2.0', reply.body)
  assert.equal(message?.error?.code, code, reply.body)
  assert.ok((message?.error?.message ?? '') !== '', reply.body)
}

/** True for a call that failed, in either of the two ways a call can fail. */
export const failed = (message: Message): boolean => message.error !== undefined || message.result?.isError === true

export const failure = (message: Message): string => message.error === undefined ? text(message.result) : message.error.message

/** A request by node:http, for what fetch refuses to send (Host, odd headers). */
export async function plain (
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {}
): Promise<{ status: number; headers: IncomingHttpHeaders; body: string }> {
  const request = httpRequest(url, { method: options.method ?? 'GET', headers: options.headers, agent: false })
  request.end(options.body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of response) body += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

export const sleep = async (ms: number): Promise<void> => { await new Promise((resolve) => { setTimeout(resolve, ms) }) }

/**
 * Waits for what must not come. A test calls it behind a marker: something that came, after which the other thing would have come as well.
 * No verdict hangs on it on a slow machine: it can only miss a fault, never see one that is none.
 */
export const silence = sleep

/** The promise's value, or a failure after a minute. */
export async function within<T> (what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((resolve, reject) => {
    timer = setTimeout(() => { reject(new Error(`${what}: not within ${deadline} ms`)) }, deadline)
  })
  try { return await Promise.race([promise, late]) } finally { clearTimeout(timer) }
}
