// Clients of the transport HTTP+SSE (MCP 2024-11-05): one spoken by hand, and real ones from npm.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMCPClient, ElicitationRequestSchema } from '@ai-sdk/mcp'
import { Client as ModernClient, SSEClientTransport as ModernSseTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { initialize, KEY, names, open, send, type Json, type Message, type SendOptions, type Stream } from './client.ts'
import { path, until, type Cleanup } from './hub.ts'

export interface ConnectionOptions { key?: string | null, capabilities?: Json, headers?: Record<string, string> }

/** A GET that asks for an event stream. */
export const listen = async (url: string, { key, headers }: ConnectionOptions = {}): Promise<Stream> =>
  await open(url, { method: 'GET', key, headers: { accept: 'text/event-stream', ...headers } })

/** The same, read to its end where it is refused, and closed where it is not. */
export const get = async (url: string, { key, headers }: ConnectionOptions = {}): Promise<Stream> => {
  const opened = await listen(url, { key, headers })
  if (opened.status === 200) opened.close()
  await opened.done
  return opened
}

/** One connection of HTTP+SSE, spoken by hand: the stream, and the address that its event `endpoint` names. */
export class Connection {
  readonly stream: Stream
  readonly endpoint: string
  readonly url: string
  readonly #key: string | null | undefined
  #next = 1

  private constructor (stream: Stream, url: string, key?: string | null) {
    this.stream = stream
    this.endpoint = stream.events[0]?.data ?? ''
    this.url = new URL(this.endpoint, url).href
    this.#key = key
  }

  /** Opens the stream and waits for the event `endpoint`. */
  static async start (t: Cleanup, url: string, options: ConnectionOptions = {}): Promise<Connection> {
    const opened = await listen(url, options)
    t.after(() => { opened.close() })
    assert.equal(opened.status, 200, opened.body)
    await until(() => opened.events.length > 0, () => `no first event: ${opened.body}`)
    assert.equal(opened.events[0]?.name, 'endpoint', opened.body)
    return new Connection(opened, url, options.key)
  }

  /** As `start`, and initialized. */
  static async open (t: Cleanup, url: string, options: ConnectionOptions = {}): Promise<Connection> {
    const made = await Connection.start(t, url, options)
    assert.equal((await made.post(initialize('2024-11-05', options.capabilities))).status, 202)
    const { result } = await made.answer('init')
    assert.equal(result?.protocolVersion, '2024-11-05')
    await made.notify('notifications/initialized')
    return made
  }

  get sessionId (): string { return new URL(this.url).searchParams.get('sessionId') ?? '' }

  async post (body: unknown, options: SendOptions = {}): Promise<Stream> {
    return await send(this.url, { key: this.#key, body, ...options })
  }

  async answer (id: string | number): Promise<Message> {
    return await this.stream.wait((message) => message.id === id && message.method === undefined)
  }

  async notify (method: string, params?: Json): Promise<void> {
    assert.equal((await this.post({ jsonrpc: '2.0', method, params })).status, 202, method)
  }

  /** Posts a request, and does not wait for its answer. */
  async begin (method: string, params: Json = {}): Promise<number> {
    const id = this.#next++
    const reply = await this.post({ jsonrpc: '2.0', id, method, params })
    assert.equal(reply.status, 202, `${method}: ${reply.body}`)
    return id
  }

  async request (method: string, params?: Json): Promise<Message> { return await this.answer(await this.begin(method, params)) }

  async tools (): Promise<string[]> { return names((await this.request('tools/list')).result?.tools) }
}

/** A connected client from npm, by what it can do over HTTP+SSE. */
export interface Driver {
  tools: () => Promise<string[]>
  call: (name: string, args?: Json) => Promise<unknown>
  /** Calls a tool; the progress that came before its result. */
  progress?: (name: string, args: Json) => Promise<number[]>
  asks: readonly ('sampling' | 'elicitation')[]
}

const authorized = { authorization: `Bearer ${KEY}` }
/** The answers to questions. */
const answers = {
  sampling: () => ({ model: 'test', role: 'assistant' as const, content: { type: 'text' as const, text: 'sampled here' } }),
  elicitation: () => ({ action: 'accept' as const, content: { name: 'Ada' } })
}

/** The client of @modelcontextprotocol/sdk 1.x, on either transport. */
async function sdkClient (t: Cleanup, transport: SSEClientTransport | StdioClientTransport): Promise<Driver> {
  const client = new Client({ name: 'sdk', version: '1.0.0' }, { capabilities: { sampling: {}, elicitation: {} } })
  client.setRequestHandler(CreateMessageRequestSchema, answers.sampling)
  client.setRequestHandler(ElicitRequestSchema, answers.elicitation)
  await client.connect(transport)
  t.after(async () => { await client.close() })
  return {
    tools: async () => names((await client.listTools()).tools),
    call: async (name, args) => await client.callTool({ name, arguments: args }),
    progress: async (name, args) => {
      const seen: number[] = []
      await client.callTool({ name, arguments: args }, undefined, { onprogress: ({ progress }) => { seen.push(progress) } })
      return seen
    },
    asks: ['sampling', 'elicitation']
  }
}

/** Clients from npm by the name of their package, each connected to a URL with KEY. */
export const clients: Readonly<Record<string, (t: Cleanup, url: string) => Promise<Driver>>> = {
  '@modelcontextprotocol/sdk': async (t, url) =>
    await sdkClient(t, new SSEClientTransport(new URL(url), { requestInit: { headers: authorized } })),
  '@modelcontextprotocol/client': async (t, url) => {
    const client = new ModernClient({ name: 'modern', version: '1.0.0' }, { capabilities: { sampling: {}, elicitation: {} } })
    client.setRequestHandler('sampling/createMessage', answers.sampling)
    client.setRequestHandler('elicitation/create', answers.elicitation)
    await client.connect(new ModernSseTransport(new URL(url), { requestInit: { headers: authorized } }))
    t.after(async () => { await client.close() })
    return {
      tools: async () => names((await client.listTools()).tools),
      call: async (name, args) => await client.callTool({ name, arguments: args }),
      progress: async (name, args) => {
        const seen: number[] = []
        await client.callTool({ name, arguments: args }, { onprogress: ({ progress }) => { seen.push(progress) } })
        return seen
      },
      asks: ['sampling', 'elicitation']
    }
  },
  // It has no way to ask for progress (no progress token, no handler of notifications), and no handler for sampling.
  '@ai-sdk/mcp': async (t, url) => {
    const client = await createMCPClient({ transport: { type: 'sse', url, headers: authorized }, capabilities: { elicitation: {} } })
    client.onElicitationRequest(ElicitationRequestSchema, answers.elicitation)
    t.after(async () => { await client.close() })
    // What a model's call brings along.
    const options = { toolCallId: '1', messages: [], context: {} }
    return {
      tools: async () => names((await client.listTools()).tools),
      call: async (name, args) => await (await client.tools())[name]?.execute(args, options),
      asks: ['elicitation']
    }
  },
  'mcp-remote': async (t, url) => {
    const folder = mkdtempSync(join(tmpdir(), 'tool-hub-remote-'))
    t.after(() => { rmSync(folder, { recursive: true, force: true }) })
    return await sdkClient(t, new StdioClientTransport({
      command: process.execPath,
      args: [path('node_modules/mcp-remote/dist/proxy.js'), url, '--transport', 'sse-only', '--header', `Authorization: Bearer ${KEY}`],
      env: { PATH: process.env.PATH ?? '', HOME: folder, MCP_REMOTE_CONFIG_DIR: folder },
      stderr: 'ignore'
    }))
  }
}
