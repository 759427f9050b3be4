import type { Connection, HttpResponse } from './connection.ts'

/** An MCP endpoint on 127.0.0.1. */
export interface Endpoint { port: number, path: string, token: string }

const version = '2025-11-25'
export const modernVersion = '2026-07-28'
export const clientInfo = { name: 'bench', version: '1.0.0' }

/** A session of MCP 2025-11-25 over streamable HTTP, of a client without capabilities. */
export class Session {
  readonly endpoint: Endpoint
  readonly id: string
  readonly #head: string

  private constructor (endpoint: Endpoint, id: string) {
    this.endpoint = endpoint
    this.id = id
    this.#head = `${head('POST', endpoint)}Mcp-Session-Id: ${id}\r\n`
  }

  /** Opens a session over a connection, which it does not close. @throws where a response is not MCP's */
  static async open (connection: Connection, endpoint: Endpoint): Promise<Session> {
    const params = { protocolVersion: version, capabilities: {}, clientInfo }
    const response = await connection.send(
      withBody(head('POST', endpoint), JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }))
    )
    resultOf(response, 0)
    const id = response.headers.get('mcp-session-id')
    if (id === undefined) throw new Error(`${endpoint.path} opened no session: ${response.body.slice(0, 500)}`)
    const session = new Session(endpoint, id)
    const { status } = await connection.send(session.encode(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })))
    if (status !== 202) throw new Error(`${endpoint.path} answered a notification with ${status}`)
    return session
  }

  /** The POST request of a JSON-RPC message, as text. */
  encode (body: string): string {
    return withBody(this.#head, body)
  }

  resultOf (response: HttpResponse, id: number): unknown {
    return resultOf(response, id)
  }

  /** Ends the session by DELETE. */
  async end (connection: Connection): Promise<void> {
    const { status } = await connection.send(`${head('DELETE', this.endpoint)}Mcp-Session-Id: ${this.id}\r\n\r\n`)
    if (status >= 300) throw new Error(`${this.endpoint.path} answered DELETE with ${status}`)
  }
}

/** Requests of plain HTTP, whose response is the result as it is: they need no session. */
export class PlainRequests {
  readonly #head: string

  constructor ({ port, path, token }: Endpoint) {
    this.#head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\nAccept: application/json\r\n`
  }

  encode (body: string): string {
    return withBody(this.#head, body)
  }

  /** @throws where the status is not 200 */
  resultOf ({ status, body }: HttpResponse, id: number): unknown {
    if (status !== 200) throw new Error(`request ${id} was answered ${status}: ${body.slice(0, 500)}`)
    return JSON.parse(body)
  }

  async end (): Promise<void> {}
}

/** Requests of MCP 2026-07-28, which need no session. */
export class ModernRequests {
  readonly #head: string

  constructor (endpoint: Endpoint, { method, name }: { method: string, name: string }) {
    this.#head = `${head('POST', endpoint, modernVersion)}Mcp-Method: ${method}\r\nMcp-Name: ${name}\r\n`
  }

  encode (body: string): string {
    return withBody(this.#head, body)
  }

  resultOf (response: HttpResponse, id: number): unknown {
    return resultOf(response, id)
  }

  async end (): Promise<void> {}
}

function head (method: string, { port, path, token }: Endpoint, revision = version): string {
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n` +
    `Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: ${revision}\r\n`
}

function withBody (headers: string, body: string): string {
  return `${headers}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** The `result` of a JSON-RPC response, from JSON or from the last event of a stream. @throws where it is an error, or has another id */
export function resultOf ({ status, headers, body }: HttpResponse, id: number): unknown {
  const streamed = headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const text = streamed ? body.slice(body.lastIndexOf('data:') + 5) : body
  const wrong = new Error(`request ${id} was answered ${status}: ${body.slice(0, 500)}`)
  if (status !== 200) throw wrong
  const message = JSON.parse(text) as { id?: unknown, result?: unknown }
  if (message.id !== id || message.result === undefined) throw wrong
  return message.result
}

/** A request that is sent many times: by default of JSON-RPC. `id` counts from 1. */
export interface Job {
  /** The body of the request as JSON text. */
  request: (id: number) => string
  /** Whether a `result` is correct for the request with this id. */
  isCorrect: (result: unknown, id: number) => boolean
  /** The request is plain HTTP, without a session, and the body of the response is the result. */
  isPlain?: true
  /** The name that the headers of MCP 2026-07-28 repeat: the request is one of that revision, without a session. */
  modern?: { method: string, name: string }
}

/** `tools/call` of `echo`, with a different message each time. */
export const echoCall: Job = {
  request: (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"message":"${message(id)}"}}}`,
  isCorrect: (result, id) => {
    const { content } = result as { content?: Array<{ type?: string, text?: string }> }
    return content?.length === 1 && content[0]?.type === 'text' && content[0].text === message(id)
  }
}

const envelope = JSON.stringify({
  'io.modelcontextprotocol/protocolVersion': modernVersion,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {}
})

/** The same call in the revision 2026-07-28. */
export const modernEchoCall: Job = {
  request: (id) => {
    const params = `{"name":"echo","arguments":{"message":"${message(id)}"},"_meta":${envelope}}`
    return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`
  },
  isCorrect: echoCall.isCorrect,
  modern: { method: 'tools/call', name: 'echo' }
}

/** The same call of `echo` over plain HTTP: POST /api/tools/:server/echo. */
export const plainEchoCall: Job = {
  request: (id) => `{"message":"${message(id)}"}`,
  isCorrect: echoCall.isCorrect,
  isPlain: true
}

/** The characters of text in the result of `largeCall`. */
export const largeSize = 65_536

/** `tools/call` of `echo`, whose result is filled up to 64 KiB. */
export const largeCall: Job = {
  request: (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call",` +
    `"params":{"name":"echo","arguments":{"message":"${message(id)}","size":${largeSize}}}}`,
  isCorrect: (result, id) => {
    const text = (result as { content?: Array<{ text?: string }> }).content?.[0]?.text
    return text?.length === largeSize && text.startsWith(message(id))
  }
}

const message = (id: number): string => `call ${id} of the bench, a short line of plain text`

/** `tools/list` with `count` tools on one page. */
export function toolList (count: number): Job {
  return {
    request: (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{}}`,
    isCorrect: (result) => (result as { tools?: unknown[] }).tools?.length === count
  }
}
