import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isObject, membersOf } from '../../../protocol/json.ts'
import { encodeHeader, headerNames, latestModern, metaKeys, nameMemberOf } from '../../../protocol/modern/envelope.ts'
import { estimateTokens } from './costs.ts'

type Json = Readonly<Record<string, unknown>>

/** With whose eyes the endpoint is asked. `undefined`: without a credential. */
export type Eyes = Parameters<FastifyInstance['auth']['lend']>[0] | undefined

/** A JSON-RPC message, as it was sent or received. */
export interface McpMessage { readonly isSent: boolean, readonly method: string, readonly text: string }

/** What the endpoint answered. `problem`: why there is no result. */
export interface McpAnswer {
  readonly messages: readonly McpMessage[]
  readonly result?: Json
  readonly problem?: string
}

/** What a page can be asked for. */
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
/** Max pages of a list that are read. */
const maxPages = 50

/**
 * A client of the gateway's own MCP endpoint. Its credential is lent for one request, and never leaves the process; all
 * else is as any client of the newest revision does it.
 */
export class McpClient {
  readonly #outer: FastifyInstance

  constructor (outer: FastifyInstance) {
    this.#outer = outer
  }

  /**
   * @param path of the route, below the base path
   * @param params JSON text of an object
   */
  async ask (request: FastifyRequest, path: string, eyes: Eyes, method: string, params: string): Promise<McpAnswer> {
    const { body, received, status } = await this.#send(request, path, eyes, method, params)
    return { ...answerOf(received, status), messages: [sent(method, body), ...received.map(toMessage)] }
  }

  async #send (
    request: FastifyRequest, path: string, eyes: Eyes, method: string, params: string
  ): Promise<{ body: string, received: string[], status: number }> {
    const lent = eyes && this.#outer.auth.lend(eyes)
    try {
      const meta = JSON.stringify({
        [metaKeys.protocolVersion]: latestModern,
        [metaKeys.clientCapabilities]: capabilities,
        [metaKeys.clientInfo]: { name: 'tool-hub-console', version: this.#outer.config.version }
      })
      const body = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${withMeta(params, meta)}}`
      const { name } = JSON.parse(params) as { name?: unknown }
      const { statusCode, payload, headers } = await this.#outer.inject({
        method: 'POST',
        url: `${this.#outer.config.basePath}${path}`,
        headers: {
          host: request.host,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          [headerNames.version]: latestModern,
          [headerNames.method]: method,
          ...nameMemberOf(method) === 'name' && typeof name === 'string' && { [headerNames.name]: encodeHeader(name) },
          ...lent && { authorization: `Bearer ${lent.token}` }
        },
        remoteAddress: request.ip,
        payload: body
      })
      const isStream = String(headers['content-type']).startsWith('text/event-stream')
      return { body, received: isStream ? eventsOf(payload) : [payload], status: statusCode }
    } finally {
      lent?.end()
    }
  }

  /** All tools of a route, and what their list costs in tokens. */
  async tools (
    request: FastifyRequest, path: string, eyes: Eyes
  ): Promise<{ tools: Json[], tokens: number } | { problem: string }> {
    const tools: Json[] = []
    let size = 0
    let cursor: unknown
    for (let page = 0; page < maxPages; page++) {
      const params = JSON.stringify(cursor === undefined ? {} : { cursor })
      const { received, status } = await this.#send(request, path, eyes, 'tools/list', params)
      const { result, problem } = answerOf(received, status)
      if (result === undefined) return { problem: problem ?? 'There is no list.' }
      if (Array.isArray(result.tools)) tools.push(...result.tools.filter(isObject))
      size += received.reduce((sum, { length }) => sum + length, 0)
      cursor = result.nextCursor
      if (cursor === undefined || cursor === null) break
    }
    return { tools, tokens: estimateTokens(size) }
  }
}

/** The params of a request with its `_meta`. */
function withMeta (params: string, meta: string): string {
  const isEmpty = membersOf(params).length === 0
  return `${params.trim().slice(0, -1)}${isEmpty ? '' : ','}"_meta":${meta}}`
}

/** The data of the events of a stream that has ended. */
const eventsOf = (text: string): string[] => text.split(/\r?\n\r?\n/).flatMap((event) => {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'))
  const data = lines.map((line) => line.slice(5).trim()).join('\n')
  return data === '' ? [] : [data]
})

const sent = (method: string, text: string): McpMessage => ({ isSent: true, method, text: pretty(text) })

function toMessage (text: string): McpMessage {
  const message = parsed(text)
  const kind = message?.error === undefined ? 'result' : 'error'
  return { isSent: false, method: typeof message?.method === 'string' ? message.method : kind, text: pretty(text) }
}

function answerOf (received: readonly string[], status: number): Pick<McpAnswer, 'result' | 'problem'> {
  const messages = received.map(parsed)
  const answer = messages.find((each) => each !== undefined && each.method === undefined)
  if (isObject(answer?.result)) return { result: answer.result }
  const { error, error_description: described } = answer ?? {}
  const message = isObject(error) ? error.message : described
  return { problem: typeof message === 'string' ? message : `The endpoint answered with the status ${status}.` }
}

function parsed (text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Text of JSON in lines; as it is, where numbers would lose digits. */
function pretty (text: string): string {
  try {
    return /\d{16}|\d[eE][+-]?\d{3}/.test(text) ? text : JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}
