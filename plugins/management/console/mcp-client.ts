import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isObject, withMembers } from '../../../protocol/json.ts'
import { encodeHeader, headerNames, latestModern, metaKeys, nameMemberOf } from '../../../protocol/modern/envelope.ts'
import { argumentText, paramHeadersOf } from '../../../protocol/modern/param-headers.ts'
import { credentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import { estimateTokens } from './costs.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * The identity for a request to the MCP endpoint; `undefined`: no credential. `credential`: a key or an access token,
 * which is sent as it is.
 */
export type Eyes = Parameters<FastifyInstance['auth']['lend']>[0] | { readonly credential: string } | undefined

/** The text of a JSON-RPC message, for display. */
export interface McpMessage { readonly isSent: boolean, readonly method: string, readonly text: string }

/** The response of the endpoint. `problem`: why there is no result. */
export interface McpAnswer {
  readonly messages: readonly McpMessage[]
  readonly result?: Json
  readonly problem?: string
}

/** The client capabilities that the console declares. */
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
/** Max number of pages of one list that are read. */
const maxPages = 50

/**
 * A client of the gateway's own MCP endpoint, in the latest MCP revision. It uses a temporary credential for each
 * request, which never leaves the process.
 */
export class McpClient {
  readonly #outer: FastifyInstance

  constructor (outer: FastifyInstance) {
    this.#outer = outer
  }

  /**
   * Sends a request.
   * @param path the path of the MCP route, below the base path
   * @param params an object as JSON text
   * @param tool the tool that is called, whose schema may ask for headers that repeat arguments
   */
  async ask (
    request: FastifyRequest, path: string, eyes: Eyes, method: string, params: string, tool?: unknown
  ): Promise<McpAnswer> {
    const { body, received, status } = await this.#send(request, path, eyes, method, params, tool)
    return { ...answerOf(received, status), messages: [sent(method, body), ...received.map(toMessage)] }
  }

  async #send (
    request: FastifyRequest, path: string, eyes: Eyes, method: string, params: string, tool?: unknown
  ): Promise<{ body: string, received: string[], status: number }> {
    const lent = eyes && !('credential' in eyes) ? this.#outer.auth.lend(eyes) : undefined
    const credential = eyes && 'credential' in eyes ? eyes.credential : lent?.token
    try {
      const sent = JSON.parse(params) as Json
      const meta = JSON.stringify({
        ...isObject(sent._meta) && sent._meta,
        [metaKeys.protocolVersion]: latestModern,
        [metaKeys.clientCapabilities]: capabilities,
        [metaKeys.clientInfo]: { name: 'tool-hub-console', version: this.#outer.config.version }
      })
      const whole = withMembers(params, { _meta: meta })
      const body = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${whole}}`
      const member = nameMemberOf(method)
      const named = member && sent[member]
      const { statusCode, payload, headers } = await this.#outer.inject({
        method: 'POST',
        url: `${this.#outer.config.basePath}${path}`,
        headers: {
          host: request.host,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          [headerNames.version]: latestModern,
          [headerNames.method]: method,
          ...typeof named === 'string' && { [headerNames.name]: encodeHeader(named) },
          ...paramHeaders(tool, sent.arguments),
          ...credential !== undefined && { [this.#headerOf(credential)]: `Bearer ${credential}` }
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

  /** The header of a credential: `routing.bearerAuthHeaderName` names that of keys. */
  #headerOf (credential: string): string {
    const { routing } = this.#outer.settings.current.system
    const name = [credentialPrefixes.token, credentialPrefixes.lent].some((prefix) => credential.startsWith(prefix))
      ? undefined
      : routing?.bearerAuthHeaderName
    return (name ?? 'authorization').toLowerCase()
  }

  /**
   * All items of one kind on a route, with an estimate of the tokens of their list.
   * @param kind the member of the results that holds the items, such as `tools`
   */
  async list (
    request: FastifyRequest, path: string, eyes: Eyes, kind: string
  ): Promise<{ items: Json[], tokens: number } | { problem: string }> {
    const items: Json[] = []
    let size = 0
    let cursor: unknown
    for (let page = 0; page < maxPages; page++) {
      const params = JSON.stringify(cursor === undefined ? {} : { cursor })
      const { received, status } = await this.#send(request, path, eyes, `${kind}/list`, params)
      const { result, problem } = answerOf(received, status)
      if (result === undefined) return { problem: problem ?? 'There is no list.' }
      const part = result[kind]
      if (Array.isArray(part)) items.push(...part.filter(isObject))
      size += received.reduce((sum, { length }) => sum + length, 0)
      cursor = result.nextCursor
      if (cursor === undefined || cursor === null) break
    }
    return { items, tokens: estimateTokens(size) }
  }
}

/** The headers that repeat arguments of a call (MCP 2026-07-28, "Custom Headers from Tool Parameters"). */
function paramHeaders (tool: unknown, args: unknown): Record<string, string> {
  const headers = isObject(tool) ? paramHeadersOf(JSON.stringify(tool)) ?? [] : []
  return Object.fromEntries(headers.flatMap(({ header, path }): Array<[string, string]> => {
    const text = argumentText(args, path)
    return text === undefined ? [] : [[header, encodeHeader(text)]]
  }))
}

/** The `data` of each event in a complete SSE stream. */
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

/** Pretty-prints JSON. Text with numbers that would lose digits stays unchanged. */
function pretty (text: string): string {
  try {
    return /\d{16}|\d[eE][+-]?\d{3}/.test(text) ? text : JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}
