import { createServer, request as send, type IncomingHttpHeaders } from 'node:http'
import { type Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'

type Json = Record<string, unknown>

/**
 * Stands before a merged route, and gives the tools and prompts of one server the names that the suite knows. Everything else passes.
 * @param prefix of the names on the route
 * @returns its URL
 */
export async function startRawNames (t: Cleanup, url: string, prefix: string): Promise<string> {
  const target = new URL(url)
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => { chunks.push(chunk) })
    request.on('end', () => {
      const { body, headers } = outgoing(Buffer.concat(chunks).toString(), request.headers, prefix)
      const sent = send(target, {
        method: request.method, headers: { ...headers, host: request.headers.host ?? '', 'content-length': Buffer.byteLength(body) }
      }, (answer) => {
        const { 'content-length': _, ...rest } = answer.headers
        response.writeHead(answer.statusCode ?? 502, rest)
        response.flushHeaders()
        let left = ''
        const pass = (text: string): void => { response.write(text.replaceAll(`"name":"${prefix}`, '"name":"')) }
        answer.setEncoding('utf8')
        // A name may be cut in two.
        answer.on('data', (text: string) => {
          left += text
          const end = left.lastIndexOf('\n') + 1
          pass(left.slice(0, end))
          left = left.slice(end)
        })
        answer.on('end', () => { pass(left); response.end() })
      })
      sent.on('error', () => { response.destroy() })
      response.on('close', () => { sent.destroy() })
      sent.end(body)
    })
  })
  return `http://127.0.0.1:${await listen(t, server)}${target.pathname}`
}

/** A request with the names of the route. */
function outgoing (text: string, headers: IncomingHttpHeaders, prefix: string): { body: string, headers: IncomingHttpHeaders } {
  const message = text.startsWith('{') ? JSON.parse(text) as { method?: string, params?: Json } : {}
  const { method, params } = message
  const ref = params?.ref as Json | undefined
  if (method === 'completion/complete' && ref?.type === 'ref/prompt') {
    return { body: JSON.stringify({ ...message, params: { ...params, ref: { ...ref, name: `${prefix}${String(ref.name)}` } } }), headers }
  }
  if ((method !== 'tools/call' && method !== 'prompts/get') || typeof params?.name !== 'string') return { body: text, headers }
  const name = headers['mcp-name']
  return {
    body: JSON.stringify({ ...message, params: { ...params, name: `${prefix}${params.name}` } }),
    // A header that differs stays one that differs.
    headers: typeof name === 'string' ? { ...headers, 'mcp-name': `${prefix}${name.trim()}` } : headers
  }
}
