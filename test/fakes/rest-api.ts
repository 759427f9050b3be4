import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'

/** One request as it arrived, to the byte. */
export interface Seen { method: string, url: string, headers: IncomingMessage['headers'], rawHeaders: string[], body: Buffer }

export interface RestApi {
  /** Without a final slash. */
  url: string
  port: number
  seen: Seen[]
  /** The last request; fails the test when there is none. */
  last: () => Seen
  /** Answers from now on; what it does not answer stays open. */
  answer: (handler: (request: Seen, response: ServerResponse) => void) => void
  /** Answers under this path, whatever `answer` says, and is not recorded in `seen`. */
  at: (path: string, handler: (request: Seen, response: ServerResponse) => void) => void
}

/** Answers with a value as JSON. */
export const json = (response: ServerResponse, value: unknown, status = 200, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

/** A REST API on a port of its own that records what it is asked, and answers `{"ok":true}`. */
export async function restApi (t: Cleanup): Promise<RestApi> {
  const seen: Seen[] = []
  const fixed = new Map<string, (request: Seen, response: ServerResponse) => void>()
  let handler = (_request: Seen, response: ServerResponse): void => { json(response, { ok: true }) }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => { chunks.push(chunk) })
    request.on('end', () => {
      const one: Seen = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        rawHeaders: request.rawHeaders,
        body: Buffer.concat(chunks)
      }
      const own = fixed.get(one.url.split('?', 1)[0] ?? '')
      if (!own) seen.push(one)
      ;(own ?? handler)(one, response)
    })
  })
  const port = await listen(t, server)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    last: () => {
      const one = seen.at(-1)
      if (!one) throw new Error('the API was not asked')
      return one
    },
    answer: (next) => { handler = next },
    at: (path, next) => { fixed.set(path, next) }
  }
}
