import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest, InjectOptions } from 'fastify'
import { rememberTextOrder } from '../../../db/text-order.ts'
import { isObject } from '../../../protocol/json.ts'
import { errors } from '../../base/errors/index.ts'
import { holdMemory, shownCost } from './memory.ts'

/** The body of a successful response of the management API. */
export interface ApiAnswer {
  readonly data?: unknown
  readonly message?: string
  readonly warnings?: readonly string[]
  readonly [member: string]: unknown
}

/** The number of object levels of a response that keep the order of their members: down to the names of servers. */
const orderedLevels = 3

/** An error response of the management API. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly statusCode: number
  readonly code: string
  /** Messages about members of the request body, by the path of the member; `''` stands for the whole body. */
  readonly fields: Readonly<Record<string, string>>
  /** The value of `Retry-After`, in seconds. */
  readonly retryAfter: number | undefined

  constructor (statusCode: number, answer: Readonly<Record<string, unknown>>, retryAfter?: number) {
    const { message, code } = answer
    super(typeof message === 'string' ? message : 'The request failed')
    this.statusCode = statusCode
    this.code = typeof code === 'string' ? code : 'TH_FAILED'
    this.fields = fieldsOf(this.message, answer.errors)
    this.retryAfter = retryAfter
  }
}

/**
 * Calls the management API of this gateway as the signed-in user, with a login token that does not leave the process.
 * The API itself applies permissions, validation and audit.
 */
export class ApiClient {
  readonly #outer: FastifyInstance

  constructor (outer: FastifyInstance) {
    this.#outer = outer
  }

  /**
   * Sends a request.
   * @param path the path below `/api`, with the query
   * @param body a JSON value, or its text, in which numbers keep all digits
   * @param revision the expected revision of the record to change (`If-Match`): the API answers 412 if the record has
   *   another revision
   * @throws ApiError for an error response; Unauthorized if the user no longer exists; ShareError
   */
  async ask (
    request: FastifyRequest,
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: object | string,
    revision?: string
  ): Promise<ApiAnswer> {
    return await this.#send(request, {
      method,
      url: path,
      headers: {
        ...body !== undefined && { 'content-type': 'application/json' },
        ...revision !== undefined && { 'if-match': JSON.stringify(revision) }
      },
      ...body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) }
    })
  }

  /**
   * Uploads a file.
   * @param field the form field of the file
   * @param signal aborts the upload
   * @throws the errors of `ask`
   */
  async upload (
    request: FastifyRequest,
    { url, field }: { readonly url: string, readonly field: string },
    file: AsyncIterable<Buffer>,
    signal: AbortSignal
  ): Promise<ApiAnswer> {
    const boundary = `console-${randomUUID()}`
    const body = async function * (): AsyncGenerator<Buffer> {
      yield Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${field}"; filename="file.zip"\r\n` +
        'content-type: application/zip\r\n\r\n')
      yield * file
      yield Buffer.from(`\r\n--${boundary}--\r\n`)
    }
    return await this.#send(request, {
      method: 'POST',
      url,
      headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
      payload: Readable.from(body()),
      signal
    })
  }

  async #send (
    request: FastifyRequest, { url, headers, ...options }: InjectOptions & { readonly url: string }
  ): Promise<ApiAnswer> {
    const { principal, host, ip } = request
    const { auth, config, users } = this.#outer
    const user = users.get(principal?.username ?? '')
    if (!user) throw new errors.Unauthorized('Sign in first')
    const { statusCode, payload, headers: { 'retry-after': retryAfterHeader } } = await this.#outer.inject({
      ...options,
      url: `${config.basePath}/api${url}`,
      headers: { host, 'x-auth-token': auth.createLoginToken(user), ...headers },
      remoteAddress: ip
    })
    // A change has been made by now, whatever its answer takes.
    if (options.method === 'GET') holdMemory(request, payload.length * shownCost.api)
    const answer: unknown =
      payload === '' ? {} : rememberTextOrder(payload, JSON.parse(payload) as unknown, orderedLevels)
    if (!isObject(answer)) throw new Error(`${String(options.method)} ${url}: expected an object as the answer`)
    if (statusCode >= 400) {
      const retryAfter = Number(retryAfterHeader)
      throw new ApiError(statusCode, answer, Number.isNaN(retryAfter) ? undefined : retryAfter)
    }
    return answer
  }
}

/**
 * Returns error messages by the paths of the members that they concern.
 * @param message used if there are no findings: it concerns the member quoted at its beginning, or else the whole body
 * @param found the list of findings in the response, if any
 */
function fieldsOf (message: string, found: unknown): Record<string, string> {
  const findings = Array.isArray(found) ? found.filter(isObject) : []
  if (findings.length > 0) {
    return Object.fromEntries(findings.map(({ path, message: text }) =>
      [String(path).replace(/^body\.?/, ''), String(text)]))
  }
  const [, name, sentence] = /^"([^"]{1,200})"(?:: | (?=must |is |has |belongs ))(.*)$/s.exec(message) ?? []
  return name === undefined || sentence === undefined ? { '': message } : { [name]: sentence }
}
