// Requests of clients of the modern era (MCP 2026-07-28), written by hand.
import { encodeHeader } from '../../protocol/modern/envelope.ts'
import { KEY, send, type Json, type Message } from './client.ts'

export const version = '2026-07-28'
export const prefix = 'io.modelcontextprotocol/'
export const envelope = (capabilities: Json = {}, more: Json = {}): Json =>
  ({ [`${prefix}protocolVersion`]: version, [`${prefix}clientCapabilities`]: capabilities, ...more })

export interface ModernCall {
  params?: Json
  capabilities?: Json
  /** Instead of the whole envelope. */
  meta?: Json | undefined
  headers?: Record<string, string | undefined>
  key?: string
}

const namesIn = ['tools/call', 'prompts/get', 'resources/read', 'tasks/get', 'tasks/update', 'tasks/cancel']

/** The headers and the body of one request; what a test gives as undefined is left out. */
export function modernRequest (
  method: string,
  { params = {}, capabilities, meta, headers, key = KEY }: ModernCall
): { headers: Record<string, string>, body: string } {
  const all: Record<string, string | undefined> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${key}`,
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(namesIn.includes(method) ? { 'mcp-name': encodeHeader(String(params.name ?? params.uri ?? params.taskId)) } : {}),
    ...headers
  }
  const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta ?? envelope(capabilities) } })
  return { headers: Object.fromEntries(sent), body }
}

export interface ModernAnswer {
  status: number
  headers: Headers
  /** All messages of the answer, and the last of them. */
  messages: Message[]
  message: Message
}

/** One request, and its answer as a whole. */
export async function askModern (url: string, method: string, call: ModernCall = {}): Promise<ModernAnswer> {
  const { status, headers, messages } = await send(url, { key: null, ...modernRequest(method, call) })
  return { status, headers, messages, message: messages.at(-1) ?? {} }
}
