import { isObject, parseIfJson } from '../../../../protocol/json.ts'
import { withoutBom } from '../../../../protocol/text.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import type { EmbeddingOptions } from './options.ts'
import { extensionsLimits } from '../../limits.ts'

/**
 * A failed request for embeddings. The message is a clause for the log, in which "it" is the API. It contains neither
 * the API key nor text that the API sent.
 */
export class EmbeddingsError extends Error {
  /** The time after which the API accepts a retry (its `Retry-After` header), in ms; undefined if unknown. */
  readonly retryAfter: number | undefined
  /** Whether the API rejected the texts of the request, so that it is pointless to repeat the request. */
  readonly isRefusal: boolean

  constructor (message: string, { retryAfter, isRefusal = false }: {
    readonly retryAfter?: number, readonly isRefusal?: boolean
  } = {}) {
    super(message)
    this.name = 'EmbeddingsError'
    this.retryAfter = retryAfter
    this.isRefusal = isRefusal
  }
}

const bounds = extensionsLimits.smartRouting.embeddings

/** A client of an OpenAI-compatible embeddings API: `POST <base>/embeddings {model, input, dimensions?}`. */
export class EmbeddingsApi {
  readonly #outbound: Pick<Outbound, 'fetch'>
  readonly #options: EmbeddingOptions

  constructor (outbound: Pick<Outbound, 'fetch'>, options: EmbeddingOptions) {
    this.#outbound = outbound
    this.#options = options
  }

  /** Requests embeddings. @returns a vector for each text, in the same order @throws EmbeddingsError, UpstreamError */
  async embed (texts: readonly string[], signal: AbortSignal): Promise<number[][]> {
    const { url, apiKey, model, dimensions } = this.#options
    const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' }
    if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(headers.authorization ?? '')) {
      throw new EmbeddingsError('its key contains characters that are not allowed in a header')
    }
    const answer = await this.#outbound.fetch(url, {
      // Only admins can set this URL, so its address is trusted.
      trusted: true,
      method: 'POST',
      headers,
      body: JSON.stringify({ model, input: texts, ...(dimensions !== undefined && { dimensions }) }),
      maxSize: bounds.answerSize,
      timeout: bounds.requestTimeout,
      signal
    })
    const { status } = answer
    if (status !== 200) {
      const retryAfter = retryAfterOf(answer.headers['retry-after'])
      throw new EmbeddingsError(
        `it answered HTTP ${status}`, { retryAfter, isRefusal: [400, 413, 422].includes(status) }
      )
    }
    return embeddingsOf(answer.body, texts.length)
  }
}

/**
 * Parses a `Retry-After` header, which contains seconds or a date (RFC 9110 §10.2.3).
 * @returns the time from now, in ms; undefined if the header is absent, invalid or not in the future
 */
function retryAfterOf (header: string | undefined): number | undefined {
  if (header === undefined) return undefined
  const time = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now()
  return Number.isFinite(time) && time > 0 ? time : undefined
}

function embeddingsOf (body: Buffer, count: number): number[][] {
  const value = parseIfJson(withoutBom(body.toString()))
  if (value === undefined) throw new EmbeddingsError('its answer is not JSON')
  const data: unknown[] = isObject(value) && Array.isArray(value.data) ? value.data : []
  const embeddings: number[][] = []
  for (const [at, each] of data.entries()) {
    if (!isObject(each)) continue
    const index = typeof each.index === 'number' ? each.index : at
    if (isEmbedding(each.embedding)) embeddings[index] = each.embedding
  }
  if (embeddings.length !== count || Array.from(embeddings).includes(undefined as never)) {
    throw new EmbeddingsError('its answer does not contain an embedding for each text')
  }
  return embeddings
}

/** Whether a value is a non-zero vector of finite numbers. */
function isEmbedding (value: unknown): value is number[] {
  if (!Array.isArray(value) || value.length > bounds.vectorLength) return false
  return value.every((each) => Number.isFinite(each)) && value.some((each) => each !== 0)
}
