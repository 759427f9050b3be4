import type { FastifyInstance, FastifyRequest } from 'fastify'
import { loadPackage } from '../../../package.ts'
import { isObject, parseIfJson, parseJsonObject, withMembers } from '../../../protocol/json.ts'
import { encodeHeader, headerNames, latestModern, metaKeys, nameMemberOf } from '../../../protocol/modern/envelope.ts'
import { argumentText, paramHeadersOf } from '../../../protocol/modern/param-headers.ts'
import { credentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import { estimateTokens } from './costs.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * The identity for a request to the MCP endpoint; undefined sends no credential. `credential`: a key or an access
 * token, which is sent as it is.
 */
export type ViewerIdentity = Parameters<FastifyInstance['auth']['issueInternalCredential']>[0] | {
  readonly credential: string
} | undefined

/** The text of a JSON-RPC message, for display. */
interface McpMessage { readonly isSent: boolean, readonly method: string, readonly text: string }

/** The response of the endpoint. `problem`: why there is no result. */
export interface McpAnswer {
  readonly messages: readonly McpMessage[]
  readonly result?: Json
  readonly problem?: string
}

/** The client capabilities that the console declares. */
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
/** Options to follow a request while it runs. */
export interface FollowOptions {
  /** Cancels the request. */
  readonly signal: AbortSignal
  readonly onProgress: (progress: Progress) => void
}

/** The params of `notifications/progress`. */
export interface Progress { readonly progress?: number, readonly total?: number, readonly message?: string }

/** `tool`: the called tool, whose schema may require headers that repeat arguments. */
interface Options { readonly tool?: unknown, readonly follow?: FollowOptions }

/** Max number of pages that are read of one list. */
const maxPages = 50

/**
 * A client of the gateway's own MCP endpoint, in the latest MCP revision. Each request uses a temporary credential,
 * which never leaves the process.
 */
export class McpClient {
  readonly #outer: FastifyInstance

  constructor (outer: FastifyInstance) {
    this.#outer = outer
  }

  /**
   * Sends a request; the server may respond with questions to the client.
   * @param path the path of the MCP route, below the base path
   * @param params an object as JSON text
   * @throws if it is cancelled
   */
  async ask (
    request: FastifyRequest, path: string, eyes: ViewerIdentity, method: string, params: string, options: Options = {}
  ): Promise<McpAnswer> {
    const { body, received, status } = await this.#send(request, path, eyes, method, params, options)
    return { ...answerOf(received, status), messages: [sentMessage(method, body), ...received.map(toMessage)] }
  }

  /**
   * Sends a request with the identity of the signed-in user, and reports its progress. The server cannot ask the client
   * anything.
   * @throws if it is cancelled
   */
  async follow (
    request: FastifyRequest, path: string, method: string, params: string, options: Options
  ): Promise<Omit<McpAnswer, 'messages'>> {
    const eyes = { username: request.principal?.username ?? '' }
    const { received, status } = await this.#send(request, path, eyes, method, params, options, {})
    return answerOf(received, status)
  }

  async #send (
    request: FastifyRequest,
    path: string,
    eyes: ViewerIdentity,
    method: string,
    params: string,
    { tool, follow }: Options = {},
    clientCapabilities: object = capabilities
  ): Promise<{ body: string, received: string[], status: number }> {
    const lent = eyes && !('credential' in eyes) ? this.#outer.auth.issueInternalCredential(eyes) : undefined
    const credential = eyes && 'credential' in eyes ? eyes.credential : lent?.token
    try {
      const sent = JSON.parse(params) as Json
      const meta = JSON.stringify({
        ...isObject(sent._meta) && sent._meta,
        [metaKeys.protocolVersion]: latestModern,
        [metaKeys.clientCapabilities]: clientCapabilities,
        [metaKeys.clientInfo]: { name: 'tool-hub-console', version: this.#outer.config.version },
        ...follow && { progressToken: 1 }
      })
      const whole = withMembers(params, { _meta: meta })
      const body = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${whole}}`
      const member = nameMemberOf(method)
      const named = member && sent[member]
      const answer = await loadPackage('light-my-request').inject((incoming, response) => {
        // Appears to the endpoint as a disconnect of the client.
        follow?.signal.addEventListener('abort', () => { response.destroy() }, { once: true })
        this.#outer.routing(incoming, response)
      }, {
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
        payload: body,
        ...follow && { payloadAsStream: true }
      })
      const { statusCode: status, headers } = answer
      const isStream = String(headers['content-type']).startsWith('text/event-stream')
      const text = follow ? await followedText(answer.stream(), isStream, follow) : answer.payload
      return { body, received: isStream ? eventsOf(text) : [text], status }
    } finally {
      lent?.revoke()
    }
  }

  /** Returns the header for a credential; `routing.bearerAuthHeaderName` names the one for keys. */
  #headerOf (credential: string): string {
    const { routing } = this.#outer.settings.current.system
    const name = [credentialPrefixes.token, credentialPrefixes.internal].some((prefix) => credential.startsWith(prefix))
      ? undefined
      : routing?.bearerAuthHeaderName
    return (name ?? 'authorization').toLowerCase()
  }

  /**
   * Returns all items of one kind on a route, with an estimate of the tokens of their list.
   * @param kind the member of the results that contains the items, such as `tools`
   */
  async list (
    request: FastifyRequest, path: string, eyes: ViewerIdentity, kind: string
  ): Promise<{ items: Json[], tokens: number } | { problem: string }> {
    const items: Json[] = []
    let size = 0
    let cursor: unknown
    for (let page = 0; page < maxPages; page++) {
      const params = JSON.stringify(cursor === undefined ? {} : { cursor })
      const { received, status } = await this.#send(request, path, eyes, `${kind}/list`, params)
      const { result, problem } = answerOf(received, status)
      if (result === undefined) return { problem: problem ?? 'No list was returned.' }
      const part = result[kind]
      if (Array.isArray(part)) items.push(...part.filter(isObject))
      size += received.reduce((sum, { length }) => sum + length, 0)
      cursor = result.nextCursor
      if (cursor === undefined || cursor === null) break
    }
    return { items, tokens: estimateTokens(size) }
  }
}

/** Returns the headers that repeat arguments of a call (MCP 2026-07-28, "Custom Headers from Tool Parameters"). */
function paramHeaders (tool: unknown, args: unknown): Record<string, string> {
  const headers = isObject(tool) ? paramHeadersOf(JSON.stringify(tool)) ?? [] : []
  return Object.fromEntries(headers.flatMap(({ header, path }): Array<[string, string]> => {
    const text = argumentText(args, path)
    return text === undefined ? [] : [[header, encodeHeader(text)]]
  }))
}

/** Returns the text of a response; reports its progress notifications as they arrive. */
async function followedText (
  stream: AsyncIterable<Buffer>, isStream: boolean, { onProgress }: FollowOptions
): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let told = 0
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    const end = isStream ? text.lastIndexOf('\n\n') + 2 : 0
    if (end <= told) continue
    for (const event of eventsOf(text.slice(told, end))) {
      const message = parseJsonObject(event)
      if (message?.method === 'notifications/progress' && isObject(message.params)) onProgress(message.params)
    }
    told = end
  }
  return text
}

/** Returns the `data` of each event in a complete SSE stream. */
const eventsOf = (text: string): string[] => text.split(/\r?\n\r?\n/).flatMap((event) => {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'))
  const data = lines.map((line) => line.slice(5).trim()).join('\n')
  return data === '' ? [] : [data]
})

const sentMessage = (method: string, text: string): McpMessage => ({ isSent: true, method, text: prettyPrint(text) })

function toMessage (text: string): McpMessage {
  const message = parseJsonObject(text)
  const kind = message?.error === undefined ? 'result' : 'error'
  return { isSent: false, method: typeof message?.method === 'string' ? message.method : kind, text: prettyPrint(text) }
}

function answerOf (received: readonly string[], status: number): Pick<McpAnswer, 'result' | 'problem'> {
  const messages = received.map(parseJsonObject)
  const answer = messages.find((each) => each !== undefined && each.method === undefined)
  if (isObject(answer?.result)) return { result: answer.result }
  const { error, error_description: described } = answer ?? {}
  const message = isObject(error) ? error.message : described
  return { problem: typeof message === 'string' ? message : `The endpoint answered with status ${status}.` }
}

/** Pretty-prints JSON. Text with numbers that would lose digits is returned unchanged. */
const prettyPrint = (text: string): string => /\d{16}|\d[eE][+-]?\d{3}/.test(text)
  ? text
  : JSON.stringify(parseIfJson(text), undefined, 2) ?? text
