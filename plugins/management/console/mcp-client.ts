import type { FastifyInstance, FastifyRequest } from 'fastify'
import { loadPackage } from '../../../package.ts'
import { isObject, parseIfJson, parseJsonObject, withMembers } from '../../../protocol/json.ts'
import {
  encodeHeader, headerNames, latestModernVersion, metaKeys, mcpNameMemberOf
} from '../../../protocol/modern/envelope.ts'
import { argumentText, parseParamHeaders } from '../../../protocol/modern/param-headers.ts'
import { ownCredentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import { Semaphore } from '../../base/limits/index.ts'
import { managementLimits } from '../limits.ts'
import { estimateTokens } from './costs.ts'
import { holdMemory, shownCost } from './memory.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * On whose behalf a request is sent to the MCP endpoint: a user or key for whom `issueInternalCredential` creates a
 * credential, or the holder of `credential` (a bearer key or access token), which is sent as it is. Undefined: without
 * a credential.
 */
export type ViewerIdentity = Parameters<FastifyInstance['auth']['issueInternalCredential']>[0] | {
  readonly credential: string
} | undefined

/** A JSON-RPC message for display. `method`: for a response, `result` or `error`. */
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
export interface ProgressOptions {
  /** Cancels the request. */
  readonly signal: AbortSignal
  readonly onProgress: (progress: Progress) => void
}

/** The params of `notifications/progress`. */
export interface Progress { readonly progress?: number, readonly total?: number, readonly message?: string }

/** `tool`: the definition of the called tool, which may require headers that repeat arguments (`x-mcp-header`). */
interface Options { readonly tool?: unknown, readonly follow?: ProgressOptions }

/** Max number of pages that are read of one list. */
const maxPages = 50

/**
 * A client of the gateway's own MCP endpoint, in the latest MCP revision. Unless the caller provides a credential, a
 * request has an internal one, which is valid for that request only and never leaves the process.
 */
export class McpClient {
  readonly #outer: FastifyInstance
  /** Few lists are read at a time, since each may have many megabytes. */
  readonly #listing = new Semaphore({ places: managementLimits.console.lists, perOwner: 1 })

  constructor (outer: FastifyInstance) {
    this.#outer = outer
  }

  /**
   * Sends a request. The result may be questions to the client (`input_required`).
   * @param path the path of the MCP route, below the base path
   * @param params the params, an object as JSON text
   * @throws Error if it is cancelled
   */
  async ask (
    request: FastifyRequest, path: string, viewer: ViewerIdentity, method: string, params: string, options: Options = {}
  ): Promise<McpAnswer> {
    const { body, received, status } = await this.#send(request, path, viewer, method, params, options)
    return { ...answerOf(received, status), messages: [sentMessage(method, body), ...received.map(toMessage)] }
  }

  /**
   * Sends a request with the identity of the signed-in user, and reports its progress. No client capabilities are
   * declared, so that the server asks no questions.
   * @throws Error if it is cancelled
   */
  async askWithProgress (
    request: FastifyRequest, path: string, method: string, params: string, options: Options
  ): Promise<Omit<McpAnswer, 'messages'>> {
    const viewer = { username: request.principal?.username ?? '' }
    const { received, status } = await this.#send(request, path, viewer, method, params, options, {})
    return answerOf(received, status)
  }

  async #send (
    request: FastifyRequest,
    path: string,
    viewer: ViewerIdentity,
    method: string,
    params: string,
    { tool, follow }: Options = {},
    clientCapabilities: object = capabilities
  ): Promise<{ body: string, received: string[], status: number }> {
    follow?.signal.throwIfAborted()
    const issued = viewer && !('credential' in viewer) ? this.#outer.auth.issueInternalCredential(viewer) : undefined
    const credential = viewer && 'credential' in viewer ? viewer.credential : issued?.token
    try {
      const sent = JSON.parse(params) as Json
      const meta = JSON.stringify({
        ...isObject(sent._meta) && sent._meta,
        [metaKeys.protocolVersion]: latestModernVersion,
        [metaKeys.clientCapabilities]: clientCapabilities,
        [metaKeys.clientInfo]: { name: 'tool-hub-console', version: this.#outer.config.version },
        ...follow && { progressToken: 1 }
      })
      const whole = withMembers(params, { _meta: meta })
      const body = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${whole}}`
      const member = mcpNameMemberOf(method)
      const named = member && sent[member]
      const answer = await loadPackage('light-my-request').inject((incoming, response) => {
        // To the endpoint, this looks as if the client had disconnected, which cancels the request.
        follow?.signal.addEventListener('abort', () => { response.destroy() }, { once: true })
        this.#outer.routing(incoming, response)
      }, {
        method: 'POST',
        url: `${this.#outer.config.basePath}${path}`,
        headers: {
          host: request.host,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          [headerNames.version]: latestModernVersion,
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
      const text = follow ? await readWithProgress(answer.stream(), isStream, follow) : answer.payload
      holdMemory(request, text.length * shownCost[method.endsWith('/list') ? 'list' : 'result'])
      return { body, received: isStream ? eventsOf(text) : [text], status }
    } finally {
      issued?.revoke()
    }
  }

  /** Returns the name of the header for a credential: for bearer keys, `routing.bearerAuthHeaderName`. */
  #headerOf (credential: string): string {
    const { routing } = this.#outer.settings.current.system
    const { token, internal } = ownCredentialPrefixes
    const name = [token, internal].some((prefix) => credential.startsWith(prefix))
      ? undefined
      : routing?.bearerAuthHeaderName
    return (name ?? 'authorization').toLowerCase()
  }

  /**
   * Returns the items of one kind on a route, from at most `maxPages` pages, with an estimate of the tokens of their
   * list, or why there is no list.
   * @param kind the kind as in the method and in the result, such as `tools`
   */
  async list (
    request: FastifyRequest, path: string, viewer: ViewerIdentity, kind: string
  ): Promise<{ items: Json[], tokens: number } | { problem: string }> {
    const release = await this.#listing.take(request.principal?.username, false)
    try {
      return await this.#readPages(request, path, viewer, kind)
    } finally {
      release()
    }
  }

  async #readPages (
    request: FastifyRequest, path: string, viewer: ViewerIdentity, kind: string
  ): Promise<{ items: Json[], tokens: number } | { problem: string }> {
    const items: Json[] = []
    let cursor: unknown
    for (let page = 0; page < maxPages; page++) {
      const params = JSON.stringify(cursor === undefined ? {} : { cursor })
      const { received, status } = await this.#send(request, path, viewer, `${kind}/list`, params)
      const { result, problem } = answerOf(received, status)
      if (result === undefined) return { problem: problem ?? 'No list was returned.' }
      const part = result[kind]
      if (Array.isArray(part)) items.push(...part.filter(isObject))
      cursor = result.nextCursor
      if (cursor === undefined || cursor === null) break
    }
    // As on all pages, only the items count.
    return { items, tokens: items.reduce((sum, item) => sum + estimateTokens(JSON.stringify(item).length), 0) }
  }
}

/** Returns the headers that repeat arguments of a call (MCP 2026-07-28, "Custom Headers from Tool Parameters"). */
function paramHeaders (tool: unknown, args: unknown): Record<string, string> {
  const headers = isObject(tool) ? parseParamHeaders(JSON.stringify(tool)) ?? [] : []
  return Object.fromEntries(headers.flatMap(({ header, path }): Array<[string, string]> => {
    const text = argumentText(args, path)
    return text === undefined ? [] : [[header, encodeHeader(text)]]
  }))
}

/** Returns the whole text of a response, and reports its progress notifications as they arrive. */
async function readWithProgress (
  stream: AsyncIterable<Buffer>, isStream: boolean, { onProgress }: ProgressOptions
): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let reported = 0
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    const end = isStream ? text.lastIndexOf('\n\n') + 2 : 0
    if (end <= reported) continue
    for (const event of eventsOf(text.slice(reported, end))) {
      const message = parseJsonObject(event)
      if (message?.method === 'notifications/progress' && isObject(message.params)) onProgress(message.params)
    }
    reported = end
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

/** Pretty-prints JSON. Other text, and JSON with numbers that would lose digits, is returned unchanged. */
const prettyPrint = (text: string): string => /\d{16}|\d[eE][+-]?\d{3}/.test(text)
  ? text
  : JSON.stringify(parseIfJson(text), undefined, 2) ?? text
