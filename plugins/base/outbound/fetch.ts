import type { IncomingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream'
import type { Dispatcher } from 'undici'
import { outOfMemoryError, UpstreamError } from '../../../protocol/errors.ts'
import { defaultHeaders } from '../../../protocol/instance.ts'
import { memoryBudget } from '../limits/index.ts'
import { Chunks } from '../../../protocol/pieces.ts'
import { decoderOf, networkFailureMessage } from '../../../protocol/transports/http-answer.ts'
import { resolveRedirect } from '../../../protocol/transports/redirect.ts'
import { request } from './undici.ts'

export interface FetchOptions {
  /** Default: GET. */
  method?: Dispatcher.HttpMethod
  /** The names must be in lower case. */
  headers?: Record<string, string>
  body?: string | Buffer
  /** Max size of the decompressed body, in bytes. */
  maxSize: number
  /** Max time of the whole request, including redirects and the response body, in ms. Default: no limit. */
  timeout?: number
  /**
   * The owner against whose memory share the response counts. Default: an owner shared by all requests without one.
   */
  memoryOwner?: string
  signal?: AbortSignal
  /**
   * `false` (default): a redirect that cannot be followed is an error; `true`: such a redirect is returned as the
   * answer; `all`: no redirect is followed, each is returned as the answer.
   */
  returnsRedirects?: boolean | 'all'
}

/** An HTTP response of any status, with its decompressed body. */
export interface FetchedResponse { status: number, headers: IncomingHttpHeaders, body: Buffer }

/** Codes of errors that occur before a connection is established. The request was then not sent. */
const unsentCodes = new Set([
  'OUTBOUND_REFUSED',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT'
])

/**
 * Sends one request and reads the whole response. Redirects are followed only within the origin: 301 and 302 only for
 * GET and HEAD, 303 with GET (with HEAD for HEAD), 307 and 308 with the same method and body.
 * @throws UpstreamError with a message for the operator, which contains no text of the response body. Its `fault` is
 * `unreachable` if the request was not sent, `refused` for a redirect that is not followed, `broken` for a response
 * that is cut off, too large or not decodable, `timeout`, or `closed` if the signal ended the request
 */
export async function fetchWhole (
  start: URL,
  dispatcher: Dispatcher,
  {
    method = 'GET', headers = {}, body, maxSize, timeout, memoryOwner = '', signal, returnsRedirects = false
  }: FetchOptions
): Promise<FetchedResponse> {
  const aborter = new AbortController()
  const end = (): void => { aborter.abort() }
  let isLate = false
  const onTimeout = (): void => {
    isLate = true
    end()
  }
  const timer = timeout === undefined ? undefined : setTimeout(onTimeout, timeout)
  if (signal?.aborted === true) end()
  signal?.addEventListener('abort', end)
  try {
    let url = start
    let sent: Pick<FetchOptions, 'method' | 'headers' | 'body'> & {
      method: Dispatcher.HttpMethod
    } = { method, headers, body }
    for (let hops = 0; ; hops++) {
      const answer = await request(url, {
        dispatcher,
        ...sent,
        // No deflate: some servers send it without the zlib header.
        headers: { ...defaultHeaders, 'accept-encoding': 'gzip, br', ...sent.headers },
        signal: aborter.signal,
        headersTimeout: 0,
        bodyTimeout: 0
      })
      // Destroying a body that has not been read emits an error.
      answer.body.on('error', () => {})
      try {
        const { statusCode: status, headers: got } = answer
        if (status === 303 && sent.method !== 'HEAD') {
          sent = { method: 'GET', headers: withoutContentHeaders(headers) }
        }
        const location = typeof got.location === 'string' ? got.location : undefined
        const next = redirectTarget(returnsRedirects, url, sent.method, status, location, hops)
        if (!next) {
          const encoding = sent.method === 'HEAD' ? undefined : String(got['content-encoding'] ?? '')
          return { status, headers: got, body: await readBody(answer.body, encoding, maxSize, memoryOwner) }
        }
        url = next
      } finally {
        answer.body.destroy()
      }
    }
  } catch (error) {
    if (error instanceof UpstreamError) throw error
    if (isLate) throw new UpstreamError('timeout', `${start.host} did not answer within ${(timeout ?? 0) / 1_000} s`)
    if (aborter.signal.aborted) throw new UpstreamError('closed', 'the request was cancelled')
    throw toUpstreamError(error, start)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

const withoutContentHeaders = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !/^content-/i.test(name)))

/**
 * Returns the URL to request next; undefined if the answer is to be returned.
 * @throws the errors of `resolveRedirect`, unless `returnsRedirects` is set
 */
function redirectTarget (
  returnsRedirects: boolean | 'all', ...redirect: Parameters<typeof resolveRedirect>
): URL | undefined {
  if (returnsRedirects === 'all') return undefined
  try {
    return resolveRedirect(...redirect)
  } catch (error) {
    if (returnsRedirects) return undefined
    throw error
  }
}

/** Converts an error of undici or of `readBody`. */
function toUpstreamError (error: unknown, url: URL): UpstreamError {
  const { code = '' } = error as { code?: string }
  if (error instanceof RangeError) {
    return new UpstreamError('broken', `its answer is too large: ${error.message}`, { isPublic: true })
  }
  if (error instanceof SyntaxError || /^(Z_|ERR_BROTLI|ERR__ERROR)/.test(code)) {
    const reason = error instanceof SyntaxError ? `: ${error.message}` : ''
    return new UpstreamError('broken', `its answer cannot be decompressed${reason}`, { isPublic: true })
  }
  return new UpstreamError(
    unsentCodes.has(code) ? 'unreachable' : 'broken',
    networkFailureMessage(error instanceof Error ? error : new Error(String(error)), url)
  )
}

/**
 * Reads and decompresses a body.
 * @param owner the owner against whose memory share the body counts
 * @throws RangeError beyond `maxSize`, SyntaxError for an unknown encoding, UpstreamError for lack of memory
 */
async function readBody (
  body: Dispatcher.ResponseData['body'], encoding: string | undefined, maxSize: number, owner: string
): Promise<Buffer> {
  const decoder = decoderOf(encoding)
  // Errors of the pipeline are thrown by the loop below.
  const bytes = decoder ? pipeline(body, decoder, () => {}) : body
  const chunks = new Chunks()
  const account = memoryBudget.openAccount(owner)
  try {
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      const size = chunks.length + chunk.length
      if (size > maxSize) throw new RangeError(`more than ${maxSize} bytes`)
      if (!account.resize(size)) throw outOfMemoryError(account.isOwnerLimit)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks.take())
  } finally {
    account.close()
  }
}
