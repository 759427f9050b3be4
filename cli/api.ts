import { exits, CommandError } from './errors.ts'
import { ask, type Answer } from './request.ts'

/** Sends one request. @throws CommandError without a response */
type Send = (method: string, path: string, body: string | undefined) => Promise<Answer>

/** A client of the management API, by HTTP or within this process. */
export class ManagementApi {
  readonly #send: Send
  readonly #close: () => Promise<void>
  /** The address of the gateway; undefined: the gateway is down, and this process works on its settings. */
  readonly url: string | undefined
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

  /** Sends a request. @returns the whole body of a successful response @throws CommandError with the API's message */
  async whole<Value> (method: string, path: string, body?: object): Promise<Value> {
    const { status, text } = await this.#send(method, path, body === undefined ? undefined : JSON.stringify(body))
    const answer = parsed(text)
    if (status < 400 && answer !== undefined) return answer as Value
    // Routes that call tools send the error code as `error`.
    const { message, error, code = error, errors } = answer ?? {}
    const findings = findingsOf(errors).filter((each) => !String(message).includes(each)).join(', ')
    if (this.url !== undefined && (answer === undefined || code === 'TH_NOT_FOUND')) {
      throw new CommandError(
        `No gateway answers at ${this.url}: its answer to ${path} was ${status}. The address ends with BASE_PATH, ` +
        'where that is set.',
        exits.unreachable
      )
    }
    const failure = new CommandError(
      typeof message === 'string'
        ? `${message}${findings === '' ? '' : `: ${findings}`}`
        : `The gateway answered ${status}`,
      status === 401 || status === 403 ? exits.forbidden : exits.failed,
      typeof code === 'string' ? code : undefined
    )
    const { data } = answer ?? {}
    if (typeof data === 'object' && data !== null && 'results' in data) failure.results = data.results
    throw failure
  }

  /** Sends a GET request. @returns `data` of the response @throws CommandError */
  async get<Value> (path: string): Promise<Value> { return (await this.whole<{ data: Value }>('GET', path)).data }

  async close (): Promise<void> { await this.#close() }
}

/** The messages in `errors` of an error response, whose elements are strings or objects with a `message`. */
const findingsOf = (errors: unknown): string[] => (Array.isArray(errors) ? errors as unknown[] : []).flatMap((each) => {
  if (typeof each === 'string') return [each]
  return typeof each === 'object' && each !== null && 'message' in each &&
    typeof each.message === 'string'
    ? [each.message]
    : []
})

function parsed (text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/**
 * The management API by HTTP.
 * @param base the address of the gateway, with its base path
 * @param isLocal the gateway is on this machine, so there is neither TLS nor a proxy that redirects
 */
export function httpApi (base: string, key: string, isLocal = false): ManagementApi {
  const headers = { authorization: `Bearer ${key}` }
  return new ManagementApi(async (method, path, body) => {
    try {
      const asked = {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body
      }
      if (isLocal) return await ask(`${base}${path}`, asked)
      const answer = await fetch(`${base}${path}`, asked)
      return { status: answer.status, text: await answer.text() }
    } catch (error) {
      const { cause } = error as { cause?: { code?: string, message?: string } }
      throw new CommandError(`No gateway answers at ${base} ` +
        `(${cause?.code ?? cause?.message ?? String(error)}).`, exits.unreachable)
    }
  }, { url: base, headers })
}
