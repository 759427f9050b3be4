import { UpstreamError } from '../../../protocol/errors.ts'
import { isDeeperThan, parseIfJson } from '../../../protocol/json.ts'
import { withoutBom } from '../../../protocol/text.ts'
import { errors } from '../../base/errors/index.ts'
import { BoundedMap, evictOldest, OutageLog, ShareError, Shares, type ReportOutage } from '../../base/limits/index.ts'
import type { FetchedResponse, Outbound } from '../../base/outbound/index.ts'
import { managementLimits } from '../limits.ts'

/** A request to a service. Requests with the same `key` share a cached response. */
export interface SourceQuery<Value> {
  readonly key: string
  readonly url: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: Record<string, string>
  readonly body?: string
  /** Converts a response to the cached value. @throws Error for an invalid response */
  readonly convert: (answer: unknown) => Value | Promise<Value>
}

/** The value of a response. `staleSince`: the time of this response, in ISO 8601, if a later request has failed. */
export interface SourceAnswer<Value> { readonly value: Value, readonly staleSince?: string }

interface CachedAnswer {
  readonly value: unknown
  readonly etag: string | undefined
  /** The size of the response body, in bytes. */
  readonly size: number
  /** The time of the response or its last revalidation, in ms since the epoch. */
  readonly givenAt: number
  /** The time of the next revalidation, in ms since the epoch. */
  dueAt: number
  /** Whether the last attempt to revalidate the response failed. */
  isStale: boolean
}

interface SourceDeps {
  outbound: Pick<Outbound, 'fetch'>
  /** The name of the service at the start of a sentence, such as "The MCP registry". */
  name: string
  /** Returns the current time, in ms since the epoch. */
  now?: () => number
  /** Logs the start and end of an outage. */
  reportOutage: ReportOutage
}

/** Max length of an ETag that is used for revalidation, in characters. */
const longestEtag = 256

/** The error for a request that the service has rejected with status 400, 404 or 422. */
class RejectedRequestError extends Error {
  readonly status: number

  constructor (status: number) {
    super(`status ${status}`)
    this.status = status
  }
}

/**
 * Fetches parts of a service's catalogue through a cache. A response is used for `freshFor`. Then it is revalidated if
 * it has an ETag (RFC 9110, section 13.1.2), or else requested again. While the service is unavailable, the last
 * response is used. Simultaneous requests with the same key are sent once.
 */
export class CatalogueSource {
  readonly #deps: Required<SourceDeps>
  readonly #cache = new BoundedMap<string, CachedAnswer>(managementLimits.catalogues.cachedAnswers)
  readonly #openRequests = new Map<string, Promise<CachedAnswer>>()
  readonly #shares = new Shares(managementLimits.catalogues.concurrentRequests, 'requests to catalogues')
  readonly #closing = new AbortController()
  readonly #outage: OutageLog

  constructor ({ now = Date.now, ...deps }: SourceDeps) {
    this.#deps = { now, ...deps }
    const { name, reportOutage: report } = deps
    this.#outage = new OutageLog(report, { failing: `${name} is not available`, working: `${name} is available` }, now)
  }

  /**
   * Returns the response to a request, from the cache if possible.
   * @param owner the caller, whose share of requests is used (`chargedOwnerOf`)
   * @throws NoSuch for 404, InvalidInput for 400 and 422, UpstreamFailed if the service fails and nothing is cached,
   *   ShareError
   */
  async ask<Value> (query: SourceQuery<Value>, owner: string): Promise<SourceAnswer<Value>> {
    const kept = this.#cache.get(query.key)
    if (kept && kept.dueAt > this.#deps.now()) return answerOf(kept)
    const release = this.#shares.take(owner)
    try {
      const { key } = query
      let openRequest = this.#openRequests.get(key)
      if (!openRequest) {
        openRequest = this.#request(query, kept, owner).finally(() => { this.#openRequests.delete(key) })
        this.#openRequests.set(key, openRequest)
      }
      return answerOf(await openRequest)
    } catch (error) {
      return this.#answerAfterFailure(error, query.key)
    } finally {
      release()
    }
  }

  /** Aborts all requests. */
  close (): void {
    this.#closing.abort()
    this.#outage.stop()
  }

  /** Returns the cached response after a failed request. @throws the errors of `ask` */
  #answerAfterFailure<Value> (error: unknown, key: string): SourceAnswer<Value> {
    const { name, now } = this.#deps
    if (error instanceof RejectedRequestError) {
      this.#cache.delete(key)
      if (error.status === 404) throw new errors.NoSuch('entry in this catalogue')
      throw new errors.InvalidInput(`${name} does not accept this query: check "cursor" and the other parameters`)
    }
    if (error instanceof ShareError) throw error
    const cause = reasonOf(error)
    if (!this.#closing.signal.aborted) this.#outage.recordFailure(cause)
    const kept = this.#cache.get(key)
    if (!kept) throw new errors.UpstreamFailed(`${name} is not available: ${cause}`)
    kept.dueAt = now() + managementLimits.catalogues.retryDelay
    kept.isStale = true
    return answerOf(kept)
  }

  async #request (query: SourceQuery<unknown>, kept: CachedAnswer | undefined, owner: string): Promise<CachedAnswer> {
    const { key, url, method = 'GET', headers, body, convert: read } = query
    const { outbound, now } = this.#deps
    const answer = await outbound.fetch(url, {
      // This service was chosen by an admin or the operator.
      trusted: true,
      method,
      headers: {
        accept: 'application/json', ...headers, ...(kept?.etag !== undefined && { 'if-none-match': kept.etag })
      },
      body,
      maxSize: managementLimits.catalogues.answerSize,
      timeout: managementLimits.catalogues.time,
      memoryOwner: owner,
      signal: this.#closing.signal
    })
    const times = { givenAt: now(), dueAt: now() + managementLimits.catalogues.freshFor, isStale: false }
    if (answer.status !== 304 || !kept) checkStatus(answer, method === 'GET')
    this.#outage.recordSuccess()
    if (answer.status === 304 && kept) return this.#storeAnswer(key, { ...kept, ...times })
    const { etag = '' } = answer.headers
    const isUsable = method === 'GET' && etag !== '' && etag.length <= longestEtag
    const value = await read(parse(answer.body))
    return this.#storeAnswer(key, { value, etag: isUsable ? etag : undefined, size: answer.body.length, ...times })
  }

  #storeAnswer (key: string, kept: CachedAnswer): CachedAnswer {
    this.#cache.setNewest(key, kept)
    evictOldest(this.#cache, managementLimits.catalogues.cachedSize, ({ size }) => size, key)
    return kept
  }
}

const answerOf = <Value>({ value, givenAt, isStale }: CachedAnswer): SourceAnswer<Value> =>
  ({ value: value as Value, ...(isStale && { staleSince: new Date(givenAt).toISOString() }) })

/**
 * Checks the status of a response.
 * @param isCallersRequest whether the caller's parameters may be the cause of a status 400, 404 or 422
 * @throws RejectedRequestError in that case; UpstreamError for any other status but 2xx
 */
function checkStatus ({ status }: FetchedResponse, isCallersRequest: boolean): void {
  if (status >= 200 && status < 300) return
  if (isCallersRequest && (status === 404 || status === 400 || status === 422)) throw new RejectedRequestError(status)
  if (status === 401 || status === 403) {
    throw new UpstreamError('unauthorized', `it rejected the credentials (HTTP ${status})`, { isPublic: true })
  }
  throw new UpstreamError('refused', `it answered HTTP ${status}`, { isPublic: true })
}

/** Parses the body of a response as JSON. @throws UpstreamError */
function parse (body: Buffer): unknown {
  const text = withoutBom(body.toString())
  if (isDeeperThan(text, managementLimits.catalogues.answerDepth)) {
    throw new UpstreamError('broken', 'its answer is nested too deeply', { isPublic: true })
  }
  const value = parseIfJson(text)
  if (value === undefined) throw new UpstreamError('broken', 'its answer is not JSON', { isPublic: true })
  return value
}

/** Returns the reason of a failed request as a clause, without addresses and without text from the service. */
const reasonOf = (error: unknown): string =>
  error instanceof UpstreamError ? error.messageForClients : 'its answer does not have the expected format'
