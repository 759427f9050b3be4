import { exits, CommandError } from './errors.ts'

/** What an HTTP answer is made of, wherever it came from. */
interface Answer { readonly status: number, readonly text: string }

/** Sends one request. @throws Failure when nobody answers */
type Send = (method: string, path: string, body: string | undefined) => Promise<Answer>

/** The management API, by HTTP or within this process. */
export class ManagementApi {
  readonly #send: Send
  readonly #close: () => Promise<void>
  /** The address of the gateway; undefined: it is down, and its settings are worked on here. */
  readonly url: string | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor (
    send: Send,
    { url, headers = {}, close = async () => {} }: { url?: string, headers?: Record<string, string>, close?: () => Promise<void> }
  ) {
    this.#send = send
    this.#close = close
    this.url = url
    this.headers = headers
  }

  /** The whole answer of a request that succeeded. @throws Failure with the API's sentence */
  async whole<Value> (method: string, path: string, body?: object): Promise<Value> {
    const { status, text } = await this.#send(method, path, body === undefined ? undefined : JSON.stringify(body))
    const answer = parsed(text)
    if (status < 400 && answer !== undefined) return answer as Value
    // Where tools are called, `error` is the code.
    const { message, error, code = error, errors } = answer ?? {}
    const findings = findingsOf(errors).filter((each) => !String(message).includes(each)).join(', ')
    if (this.url !== undefined && (answer === undefined || code === 'TH_NOT_FOUND')) {
      throw new CommandError(
        `No gateway answers at ${this.url}: its answer to ${path} was ${status}. The address ends with BASE_PATH, where that is set.`,
        exits.unreachable
      )
    }
    const failure = new CommandError(
      typeof message === 'string' ? `${message}${findings === '' ? '' : `: ${findings}`}` : `The gateway answered ${status}`,
      status === 401 || status === 403 ? exits.forbidden : exits.failed,
      typeof code === 'string' ? code : undefined
    )
    const { data } = answer ?? {}
    if (typeof data === 'object' && data !== null && 'results' in data) failure.results = data.results
    throw failure
  }

  /** `data` of the answer. @throws Failure */
  async get<Value> (path: string): Promise<Value> { return (await this.whole<{ data: Value }>('GET', path)).data }

  async close (): Promise<void> { await this.#close() }
}

/** The sentences in `errors` of an error response: its elements are strings, or objects with a `message` (schema errors). */
const findingsOf = (errors: unknown): string[] => (Array.isArray(errors) ? errors as unknown[] : []).flatMap((each) => {
  if (typeof each === 'string') return [each]
  return typeof each === 'object' && each !== null && 'message' in each && typeof each.message === 'string' ? [each.message] : []
})

function parsed (text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** By HTTP. @param base the address of the gateway, with its base path */
export function httpApi (base: string, key: string): ManagementApi {
  const headers = { authorization: `Bearer ${key}` }
  return new ManagementApi(async (method, path, body) => {
    try {
      const answer = await fetch(`${base}${path}`, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body
      })
      return { status: answer.status, text: await answer.text() }
    } catch (error) {
      const { cause } = error as { cause?: { code?: string, message?: string } }
      throw new CommandError(`No gateway answers at ${base} (${cause?.code ?? cause?.message ?? String(error)}).`, exits.unreachable)
    }
  }, { url: base, headers })
}
