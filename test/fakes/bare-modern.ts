// An MCP server of the modern era (2026-07-28) by hand, over HTTP: for answers that the official SDK would not give.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { bodyOf } from './answer-by.ts'

type Json = Record<string, unknown>
export interface BareRequest { readonly method: string, readonly params: Json, readonly headers: IncomingHttpHeaders }
/** What a request is answered with; undefined: as usual. */
export type BareAnswer = { readonly result: Json } | { readonly error: Json, readonly status?: number } | undefined

export interface BareModern { readonly url: string, readonly seen: BareRequest[] }

/** @param tools as they are listed @param on answers a request in its own way */
export async function startBareModern (
  t: Cleanup,
  tools: Json[],
  on: (request: BareRequest) => BareAnswer | Promise<BareAnswer> = () => undefined,
  capabilities: Json = { tools: {}, resources: {} }
): Promise<BareModern> {
  const seen: BareRequest[] = []
  const usual = ({ method, params }: BareRequest): Json => {
    switch (method) {
      case 'server/discover': return { supportedVersions: ['2026-07-28'], capabilities }
      case 'tools/list': return { tools }
      case 'resources/list': return { resources: [] }
      case 'resources/templates/list': return { resourceTemplates: [] }
      default: return { content: [{ type: 'text', text: JSON.stringify(params) }] }
    }
  }
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const text = await bodyOf(request)
      const { id, method = '', params = {} } = (text === '' ? {} : JSON.parse(text)) as { id?: number, method?: string, params?: Json }
      const asked = { method, params, headers: request.headers }
      seen.push(asked)
      if (id === undefined || method === 'subscriptions/listen') { response.writeHead(id === undefined ? 202 : 404).end(); return }
      const answer = await on(asked) ?? { result: { resultType: 'complete', ...usual(asked) } }
      const { status, ...rest } = { status: 200, ...answer }
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...rest }))
    }
    serve().catch(() => { response.destroy() })
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}/mcp`, seen }
}
