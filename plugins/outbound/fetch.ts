import type { IncomingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream'
import { request, type Dispatcher } from 'undici'
import { UpstreamError } from '../../protocol/errors.ts'
import { decoderOf } from '../../protocol/transports/decode.ts'
import { networkFailure } from '../../protocol/transports/http-answer.ts'
import { follow } from '../../protocol/transports/redirect.ts'

export interface FetchOptions {
  /** Default: GET. */
  method?: Dispatcher.HttpMethod
  headers?: Record<string, string>
  body?: string | Buffer
  /** The largest body taken, in bytes, after decompression. */
  maxSize: number
  /** For all of it, redirects and body included, in ms; absent: the signal alone ends it. */
  timeout?: number
  signal?: AbortSignal
  /** A redirect that is not followed is an answer; default: it is an error. */
  answersRedirects?: boolean
}

/** An answer, whatever its status, decompressed. */
export interface Fetched { status: number, headers: IncomingHttpHeaders, body: Buffer }

/** Errors of connections that never stood: the request cannot have run. */
const unsent = new Set([
  'OUTBOUND_REFUSED',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT'
])

/**
 * One request, and its whole answer. Redirects are followed within the origin only; a 303 leads to something to GET.
 * @throws UpstreamError in words for the operator, never with what the other side said: `unreachable` it was never sent ·
 * `refused` redirected elsewhere · `broken` cut off, too large or not decodable · `timeout` · `closed` by the signal
 */
export async function fetchWhole (
  start: URL,
  dispatcher: Dispatcher,
  { method = 'GET', headers = {}, body, maxSize, timeout, signal, answersRedirects = false }: FetchOptions
): Promise<Fetched> {
  const ending = new AbortController()
  const end = (): void => {
    ending.abort()
  }
  let late = false
  const timer =
    timeout === undefined
      ? undefined
      : setTimeout(() => {
        late = true
        end()
      }, timeout)
  if (signal?.aborted === true) end()
  signal?.addEventListener('abort', end)
  try {
    let url = start
    let sent: Pick<FetchOptions, 'method' | 'headers' | 'body'> & { method: Dispatcher.HttpMethod } = { method, headers, body }
    for (let hops = 0; ; hops++) {
      const answer = await request(url, {
        dispatcher,
        ...sent,
        headers: { 'accept-encoding': 'gzip, deflate, br', ...sent.headers },
        signal: ending.signal,
        headersTimeout: 0,
        bodyTimeout: 0
      })
      // What is not read is thrown away with its connection.
      answer.body.on('error', () => {})
      try {
        const { statusCode: status, headers: got } = answer
        if (status === 303 && sent.method !== 'HEAD') {
          sent = { method: 'GET', headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !/^content-/i.test(name))) }
        }
        const next = nextOf(answersRedirects, url, sent.method, status, typeof got.location === 'string' ? got.location : undefined, hops)
        if (!next) {
          return {
            status,
            headers: got,
            body: await whole(answer.body, sent.method === 'HEAD' ? undefined : String(got['content-encoding'] ?? ''), maxSize)
          }
        }
        url = next
      } finally {
        answer.body.destroy()
      }
    }
  } catch (error) {
    if (error instanceof UpstreamError) throw error
    if (late) throw new UpstreamError('timeout', `${start.host} did not answer within ${(timeout ?? 0) / 1_000} s`)
    if (ending.signal.aborted) throw new UpstreamError('closed', 'the request was given up')
    throw failure(error, start)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

function nextOf (answersRedirects: boolean, ...redirect: Parameters<typeof follow>): URL | undefined {
  try {
    return follow(...redirect)
  } catch (error) {
    if (answersRedirects) return undefined
    throw error
  }
}

function failure (error: unknown, url: URL): UpstreamError {
  const { code = '' } = error as { code?: string }
  if (error instanceof RangeError) return new UpstreamError('broken', `the answer of ${url.host} is too large: ${error.message}`)
  if (error instanceof SyntaxError || /^(Z_|ERR_BROTLI|ERR__ERROR)/.test(code)) {
    return new UpstreamError('broken', `the answer of ${url.host} cannot be decompressed`)
  }
  return new UpstreamError(
    unsent.has(code) ? 'unreachable' : 'broken',
    networkFailure(error instanceof Error ? error : new Error(String(error)), url)
  )
}

/** @throws RangeError when it is larger · SyntaxError when it cannot be decoded */
async function whole (body: Dispatcher.ResponseData['body'], encoding: string | undefined, maxSize: number): Promise<Buffer> {
  const decoder = decoderOf(encoding)
  // Its errors come out of the loop below.
  const bytes = decoder ? pipeline(body, decoder, () => {}) : body
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of bytes as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxSize) throw new RangeError(`more than ${maxSize} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
