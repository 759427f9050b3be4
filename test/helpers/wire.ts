// JSON-RPC messages and events as they stand on the wire, for clients and servers that a test speaks by hand.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { tool, type Call } from '../fakes/fault-http.ts'
import type { Json, Message } from './client.ts'
import type { Cleanup } from './hub.ts'
import { listen } from './listen.ts'

export const call = (name: string, args: Json = {}, id: string | number = 'call'): Json =>
  ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })

export const eventOf = (message: Json): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`

/** A log message: method and params. */
export const log = (data: string): [string, Json] => ['notifications/message', { level: 'info', data }]

/** A question to a client that declares `elicitation`: method and params. */
export const question: [string, Json] =
  ['elicitation/create', { message: 'may I?', requestedSchema: { type: 'object', properties: {} } }]

export const methods = (messages: Message[]): string[] => messages.map(({ method }) => method ?? 'response')

/** Answers a call at once, and leaves its stream open. */
export function answerAndStay ({ res, id }: Call): 'taken' {
  if (!res.headersSent) res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.write(eventOf({ jsonrpc: '2.0', id, result: { content: [] } }))
  return 'taken'
}

/** A promise and what resolves it: holds what waits for it until the test says so. */
export interface Gate<Value = void> { promise: Promise<Value>, open: (value: Value) => void }

export function gate<Value = void> (): Gate<Value> {
  let open: (value: Value) => void = () => {}
  const promise = new Promise<Value>((resolve) => { open = resolve })
  return { promise, open }
}

export interface SseServer { url: string, received: Array<{ stream: number, method: string, headers: IncomingHttpHeaders }> }

export interface SseOptions {
  /** false: takes the GET, and never says where to post. */
  endpoint?: boolean
  tools?: string[]
  /** Answers a call. @param answer takes the result as JSON */
  on?: (message: Message, answer: (result: string) => void) => void
}

/** A server of the transport HTTP+SSE (MCP 2024-11-05): one event stream, and an address to POST to. */
export async function startSse (t: Cleanup, { endpoint = true, tools = ['echo'], on }: SseOptions = {}): Promise<SseServer> {
  const received: SseServer['received'] = []
  const streams: ServerResponse[] = []
  const server = createServer((req, res) => {
    if (req.method === 'GET') {
      received.push({ stream: streams.length, method: 'GET', headers: req.headers })
      const number = streams.push(res.writeHead(200, { 'content-type': 'text/event-stream' })) - 1
      res.write(endpoint ? `event: endpoint\ndata: /messages?stream=${number}\n\n` : ': hello\n\n')
      return
    }
    let body = ''
    req.on('data', (chunk) => { body += String(chunk) }).on('end', () => {
      const message = JSON.parse(body) as Message
      const { id, method = '', params } = message
      const stream = Number(new URL(req.url ?? '', 'http://h').searchParams.get('stream'))
      received.push({ stream, method, headers: req.headers })
      res.writeHead(202).end()
      if (id === undefined) return
      const answer = (result: string): void => {
        streams[stream]?.write(`event: message\ndata: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n\n`)
      }
      if (method === 'initialize') {
        const serverInfo = { name: 'sse', version: '1' }
        answer(JSON.stringify({ protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo }))
      } else if (method === 'tools/list') answer(JSON.stringify({ tools: tools.map((name) => tool(name)) }))
      else if (on) on(message, answer)
      else answer('{"content":[]}')
    })
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}/sse`, received }
}
