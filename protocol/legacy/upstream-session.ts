import { Call, type CallOptions } from '../call.ts'
import { refuseEchoedRequest, instanceId, instanceMetaKey } from '../instance.ts'
import { extraIdentityMembersOf } from '../identity.ts'
import { rpcCode, RpcError, UpstreamError } from '../errors.ts'
import type { Exchange, Question } from '../exchange.ts'
import { isObject, memberOf, withMembers } from '../json.ts'
import type { LogLevel } from '../listener.ts'
import { cancelledKeyOf, requestKeyOf, type Notification, type Request, type Response } from '../message.ts'
import { toLegacyToolResult } from '../modern/for-legacy-clients.ts'
import { RpcConnection, type RpcConnectionHandlers, openRpcConnection } from '../peer.ts'
import { progressTokenOf, restoreProgressToken } from '../progress.ts'
import { RequestTable } from '../table.ts'
import { detachedCopy, largeTextLength } from '../text.ts'
import type { Transport } from '../transports/transport.ts'
import type {
  ClientIdentity, MessageOrigin, ServerIdentity, SessionHandlers, UpstreamSession
} from '../upstream-session.ts'
import { legacyParams } from './outgoing.ts'
import { LegacyServerTasks } from './tasks.ts'
import {
  alternativeVersions, isLegacyVersion, latestLegacyVersion, type LegacyVersion, legacyVersions
} from './versions.ts'

interface OpenQuestion {
  readonly controller: AbortController
  /** Params of the server's `notifications/cancelled` about it. */
  withdrawal?: string
}

/** Max wait for the answer to a request that checks whether the server still knows the session, in ms. */
const sessionCheckTimeout = 10_000

/**
 * A connection to a server that uses a revision up to 2025-11-25: `initialize`, then requests in both directions. It
 * does not reconnect by itself.
 */
export class LegacyUpstreamSession implements UpstreamSession {
  identity: ServerIdentity = {
    version: latestLegacyVersion, capabilities: {}, serverInfo: '{}', instructions: undefined
  }

  readonly #transport: Transport
  readonly #connection: RpcConnection
  readonly #client: ClientIdentity
  readonly #handlers: SessionHandlers
  readonly #calls = new RequestTable<number, Call>()
  /** Unanswered questions of the upstream, by `requestKeyOf`. */
  readonly #questions = new Map<unknown, OpenQuestion>()
  readonly #tasks = new LegacyServerTasks({
    send: async (exchange, options) => await this.#send(exchange, options),
    request: async (method, paramsText) => await this.request(method, paramsText),
    nextToken: () => this.#connection.nextId
  })

  #closed = false

  /** @param connection an open connection; undefined: `open` opens one */
  constructor (transport: Transport, client: ClientIdentity, handlers: SessionHandlers, connection?: RpcConnection) {
    this.#transport = transport
    this.#client = client
    this.#handlers = handlers
    const inbound: RpcConnectionHandlers = {
      request: (request, origin) => { void this.#question(request, origin) },
      notification: (notification, origin) => { this.#notification(notification, origin) },
      // A server that has lost the session says so in its answer; the transport then closes the connection.
      restartSuspected: async () => { await this.#checkSession().catch(() => {}) },
      mended: handlers.mended,
      closed: (error) => { this.#lost(error) }
    }
    this.#connection = connection ?? new RpcConnection(transport, inbound)
    this.#connection.handlers = inbound
  }

  get openCalls (): readonly Call[] { return this.#calls.values() }
  get busy (): boolean { return this.#calls.size > 0 }
  get closed (): boolean { return this.#closed }

  async open (onDialled: () => void): Promise<void> {
    try {
      await openRpcConnection(this.#connection, onDialled, this.#client.initTimeout)
      await this.handshake()
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** Performs `initialize` on an open connection, which stays open on failure. @throws UpstreamError, RpcError */
  async handshake (): Promise<void> {
    this.identity = identityOf(await this.#initialize())
    this.#connection.notify('notifications/initialized')
    await this.#transport.onNegotiated(this.identity.version)
  }

  /**
   * Sends `initialize` with the latest revision, and with others only if the server answers with an error instead of a
   * revision of its own.
   * @returns the result, as JSON text
   */
  async #initialize (): Promise<string> {
    const { capabilities, clientInfo } = this.#client
    let left: readonly LegacyVersion[] = legacyVersions
    let failure: unknown
    do {
      // The instance id lets a gateway detect that it is its own upstream.
      const params = { protocolVersion: left[0], capabilities, clientInfo, _meta: { [instanceMetaKey]: instanceId } }
      try {
        return await this.request('initialize', JSON.stringify(params))
      } catch (error) {
        failure ??= error
        left = error instanceof RpcError ? alternativeVersions(error.toText(), left.slice(1)) : []
      }
    } while (left.length > 0)
    throw failure
  }

  call (exchange: Exchange, options: Omit<CallOptions, 'onEnd'>): Promise<Response> {
    return this.#tasks.serve(exchange, options) ?? this.#send(exchange, options)
  }

  #send (exchange: Exchange, { changes, deadlines, headers }: Omit<CallOptions, 'onEnd'>): Promise<Response> {
    const call = new Call(this.#connection, exchange, {
      changes, deadlines, headers, onEnd: this.#onCallEnd, paramsOf: legacyParams
    })
    if (!call.isOver) this.#calls.set(call.id, call)
    return call.answer
  }

  readonly #onCallEnd = (call: Call, response: Response | undefined): void => {
    this.#calls.take(call.id)
    if (response?.resultText !== undefined) response.resultText = readableResult(call, response.resultText)
    // Legacy revisions do not define `resultType`, so it may have another meaning. A modern client would misread it.
    const text = call.exchange.canSuspend ? response?.resultText : undefined
    if (text?.includes('"resultType"') === true) {
      const type = memberOf(text, 'resultType') ?? '"complete"'
      if (response && type !== '"complete"') response.resultText = withMembers(text, { resultType: undefined })
    }
    this.#handlers.callEnded(call, response)
  }

  async request (method: string, paramsText = '{}', timeout = this.#client.initTimeout): Promise<string> {
    return await this.#connection.requestResult(method, paramsText, timeout)
  }

  notify (method: string, paramsText?: string): void { this.#connection.notify(method, paramsText) }

  async subscribe (uri: string, paramsText = JSON.stringify({ uri })): Promise<string> {
    return await this.request('resources/subscribe', paramsText)
  }

  async unsubscribe (uri: string, paramsText = JSON.stringify({ uri })): Promise<string> {
    return await this.request('resources/unsubscribe', paramsText)
  }

  async setLevel (level: LogLevel, paramsText = '{}'): Promise<void> {
    await this.request('logging/setLevel', withMembers(paramsText, { level: JSON.stringify(level) }))
  }

  /** Sends a request that requires a session, if the server has one; a ping may be answered without. */
  async #checkSession (): Promise<void> {
    const kind = (['prompts', 'resources', 'tools'] as const).find((each) => each in this.identity.capabilities)
    await this.request(kind === undefined ? 'ping' : `${kind}/list`, '{}', sessionCheckTimeout)
  }

  async ping (timeout: number): Promise<void> { await this.request('ping', undefined, timeout) }

  async close (): Promise<void> {
    this.#closed = true
    this.#connection.closed(new UpstreamError('broken', 'its connection was closed', { isPublic: true }))
    await this.#transport.close()
  }

  #lost (error: UpstreamError): void {
    for (const { controller } of this.#questions.values()) controller.abort('the upstream has disconnected')
    this.#questions.clear()
    if (this.#closed) return
    this.#closed = true
    this.#handlers.closed(error)
    void this.#transport.close()
  }

  async #question (request: Request, origin: number | undefined): Promise<void> {
    const { id, idText, method, params } = request
    // The question may stay open for minutes. The copy allows the text that contains it to be freed.
    const paramsText = request.paramsText.length > largeTextLength
      ? request.paramsText
      : detachedCopy(request.paramsText)
    if (method === 'ping') { this.#connection.answer(idText, { kind: 'response', id, resultText: '{}' }); return }
    if (refuseEchoedRequest(this.#connection, request)) return
    const key = requestKeyOf(id, idText)
    const controller = new AbortController()
    const open: OpenQuestion = { controller }
    const question: Question = {
      method,
      params,
      paramsText,
      signal: controller.signal,
      outlivesRequest: origin === undefined && this.#client.exclusive,
      withdrawal: () => open.withdrawal,
      progress: (progressText) => {
        const token = progressTokenOf(params, paramsText)
        if (token === undefined) return
        this.#connection.notify('notifications/progress', restoreProgressToken(progressText, token))
      }
    }
    this.#questions.set(key, open)
    try {
      const answer = await this.#handlers.question(question, this.#originOf(origin))
      if (!controller.signal.aborted) this.#connection.answer(idText, answer)
    } catch (error) {
      const failure = error instanceof RpcError
        ? error
        : new RpcError(rpcCode.internal, 'The request could not be answered', 'internal')
      if (!controller.signal.aborted) {
        this.#connection.answer(
          idText, { kind: 'response', id, errorText: failure.toText() }
        )
      }
    } finally {
      this.#questions.delete(key)
    }
  }

  #notification (notification: Notification, origin: number | undefined): void {
    const { method, params, paramsText } = notification
    const call = method === 'notifications/progress' ? this.#callOf(Number(params.progressToken)) : undefined
    if (call) call.progress(paramsText)
    else if (method === 'notifications/cancelled') {
      const reason = typeof params.reason === 'string' ? params.reason : 'the upstream cancelled the request'
      const open = this.#questions.get(cancelledKeyOf(notification))
      if (open) {
        open.withdrawal = paramsText
        open.controller.abort(reason)
      }
    } else this.#handlers.notification(notification, this.#originOf(origin))
  }

  /** Returns the call with this progress token; if it has ended, the call that waits for the task that it created. */
  #callOf (token: number): Call | undefined {
    const call = this.#calls.get(token)
    const wait = call ? undefined : this.#tasks.waitingExchangeOf(token)
    return wait ? this.openCalls.find(({ exchange }) => exchange === wait) : call
  }

  #originOf (origin: number | undefined): MessageOrigin {
    if (origin === undefined) return undefined
    // If the connection serves a single client, the message is for that client.
    return this.#calls.get(origin) ?? (this.#client.exclusive ? undefined : 'over')
  }
}

/** Matches structured content that is not an object, and some other texts. */
const otherStructuredContent = /"structuredContent"\s*:\s*[^{\s]/

/** Converts a result for clients of earlier revisions. Modern clients and plain HTTP callers get it unchanged. */
function readableResult ({ method, exchange, client }: Call, result: string): string {
  const isForLegacyClient = method === 'tools/call' && !exchange.canSuspend && client.listener !== undefined
  return isForLegacyClient && otherStructuredContent.test(result) ? toLegacyToolResult(result) : result
}

/**
 * Reads the server's identity.
 * @param result the result of `initialize`, as JSON text
 * @throws UpstreamError if server and gateway have no revision in common
 */
function identityOf (result: string): ServerIdentity {
  const value: unknown = JSON.parse(result)
  const { protocolVersion: version, capabilities, instructions } = isObject(value) ? value : {}
  if (version === undefined || version === null) {
    throw new UpstreamError(
      'refused', 'the answer to initialize is not valid: its result has no protocolVersion', { isPublic: true }
    )
  }
  if (!isLegacyVersion(version)) {
    throw new UpstreamError(
      'refused', `the server speaks MCP ${JSON.stringify(version)}, which Tool-Hub does not support`
    )
  }
  return {
    version,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: memberOf(result, 'serverInfo') ?? '{}',
    instructions: typeof instructions === 'string' ? instructions : undefined,
    identityExtra: extraIdentityMembersOf(result)
  }
}
