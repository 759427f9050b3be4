import { parseJsonObject } from '../protocol/json.ts'
import { exitCodes, CommandError } from './errors.ts'
import { requestLocalGateway, type GatewayResponse } from './request.ts'

/** Sends one request. @throws CommandError if there is no response */
type Send = (
  method: string, path: string, body: string | undefined, headers: Readonly<Record<string, string>>
) => Promise<GatewayResponse>

/** A client of the management API of a running gateway (over HTTP) or of an app in this process. */
export class ManagementApiClient {
  readonly #send: Send
  readonly #close: () => Promise<void>
  /** The address of the running gateway; undefined for an app in this process. */
  readonly url: string | undefined
  /** The headers with the credential, for requests that a command sends itself; empty without a running gateway. */
  readonly headers: Readonly<Record<string, string>>

  constructor (
    send: Send,
    { url, headers = {}, close = async () => {} }: {
      url?: string, headers?: Record<string, string>, close?: () => Promise<void>
    }
  ) {
    this.#send = send
    this.#close = close
    this.url = url
    this.headers = headers
  }

  /**
   * Sends a request.
   * @param ifMatch the `etag` of the version that may be changed; if another is stored, the request fails
   * @returns the parsed body of a successful response
   * @throws CommandError with the API's message
   */
  async request<Value> (method: string, path: string, body?: object, ifMatch?: string): Promise<Value> {
    return (await this.#request<Value>(method, path, body, ifMatch)).value
  }

  async #request<Value> (
    method: string, path: string, body?: object, ifMatch?: string
  ): Promise<{ value: Value, etag?: string }> {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch })
    }
    const { status, text, etag } =
      await this.#send(method, path, body === undefined ? undefined : JSON.stringify(body), headers)
    const answer = parseJsonObject(text)
    if (status < 400 && answer !== undefined) return { value: answer as Value, etag }
    // Some routes send the error code as `error`.
    const { message, error, code = error, errors } = answer ?? {}
    const findings = readErrorMessages(errors).filter((each) => !String(message).includes(each)).join(', ')
    if (this.url !== undefined && (answer === undefined || code === 'TH_NOT_FOUND')) {
      throw new CommandError(
        `No gateway answers at ${this.url}: ${path} returned ${status}. If BASE_PATH is set, the address ` +
        'must end with it.',
        exitCodes.unreachable
      )
    }
    const failure = new CommandError(
      typeof message === 'string'
        ? `${message}${findings === '' ? '' : `: ${findings}`}`
        : `The gateway answered ${status}`,
      status === 401 || status === 403 ? exitCodes.forbidden : exitCodes.failed,
      typeof code === 'string' ? code : undefined
    )
    const { data } = answer ?? {}
    if (typeof data === 'object' && data !== null && 'results' in data) failure.results = data.results
    throw failure
  }

  /** Sends a GET request. @returns `data` of the response @throws CommandError */
  async get<Value> (path: string): Promise<Value> { return (await this.request<{ data: Value }>('GET', path)).data }

  /** Sends a GET request. @returns `data` and the ETag of the response @throws CommandError */
  async getWithEtag<Value> (path: string): Promise<{ data: Value, etag?: string }> {
    const { value, etag } = await this.#request<{ data: Value }>('GET', path)
    // A proxy that compresses marks the ETag as weak, which If-Match does not accept (RFC 9110 §8.8.1).
    return { data: value.data, etag: etag?.replace(/^W\//, '') }
  }

  async close (): Promise<void> { await this.#close() }
}

/** Returns the messages in `errors` of an error response, whose elements are strings or objects with a `message`. */
const readErrorMessages = (errors: unknown): string[] =>
  (Array.isArray(errors) ? errors as unknown[] : []).flatMap((each) => {
    if (typeof each === 'string') return [each]
    return typeof each === 'object' && each !== null && 'message' in each && typeof each.message === 'string'
      ? [each.message]
      : []
  })

/**
 * Creates a client of the management API of a running gateway.
 * @param base the address of the gateway, including the base path
 * @param key the bearer key, or the local credential of a gateway on this machine
 * @param isLocal whether the gateway is on this machine, so that requests need neither TLS nor redirects
 */
export function createHttpApiClient (base: string, key: string, isLocal = false): ManagementApiClient {
  const headers = { authorization: `Bearer ${key}` }
  return new ManagementApiClient(async (method, path, body, more) => {
    try {
      const options = { method, headers: { ...headers, ...more }, body }
      if (isLocal) return await requestLocalGateway(`${base}${path}`, options)
      const response = await fetch(`${base}${path}`, options)
      return { status: response.status, text: await response.text(), etag: response.headers.get('etag') ?? undefined }
    } catch (error) {
      const { cause } = error as { cause?: { code?: string, message?: string } }
      throw new CommandError(`No gateway answers at ${base} ` +
        `(${cause?.code ?? cause?.message ?? String(error)}).`, exitCodes.unreachable)
    }
  }, { url: base, headers })
}
