import { Call, type CallOptions, type CallAdapter, type NextStep, type ParamChanges } from '../call.ts'
import { rpcCode, RpcError, UpstreamError } from '../errors.ts'
import { isStreamNotification } from '../events.ts'
import type { Exchange } from '../exchange.ts'
import { isObject, memberOf, withMembers } from '../json.ts'
import type { LogLevel } from '../listener.ts'
import { parseRpcError, type Notification, type Response } from '../message.ts'
import type { RpcConnection } from '../peer.ts'
import { RequestTable } from '../table.ts'
import type { Transport } from '../transports/transport.ts'
import type {
  ClientIdentity, MessageOrigin, ServerIdentity, SessionHandlers, UpstreamSession
} from '../upstream-session.ts'
import { asksForLegacyVersion, discoverServer, NotModernError, type DiscoveredServer } from './discover.ts'
import { isModernErrorCode, modernErrorCode, resultTypes } from './envelope.ts'
import { isResourceNotFound, translateHopError, toLegacyToolResult } from './for-legacy-clients.ts'
import { HeaderCorrection } from './header-correction.ts'
import { InputRounds, isInputRequired, type RoundBounds } from './input-rounds.ts'
import { NotificationReceiver } from './notification-receiver.ts'
import type { OutgoingEnvelope } from './outgoing.ts'
import type { ToolParamHeaders } from './param-headers.ts'
import { nonCoreResultTypePattern, unsupportedResultType } from './result-type.ts'
import { ModernServerTasks, withoutTask } from './tasks.ts'
import { waitAtMost } from '../wait-at-most.ts'

/** Max time that `open` waits for the notification stream, in ms. */
const listenWait = 500

export interface ModernSessionOptions {
  /** The headers that repeat arguments of the server's tools. */
  readonly tools: ToolParamHeaders
  /** Called with a warning for the server's managers. */
  readonly warn: (sentence: string) => void
  readonly bounds: RoundBounds & {
    /** Max pages of `tools/list` to read when a call is refused because of its headers. */
    readonly headerPages: number
  }
}

/**
 * A connection to a server that uses a modern revision (2026-07-28): each request is self-contained, with an envelope
 * and headers; questions arrive in results; changes are announced through `subscriptions/listen`. It does not reconnect
 * by itself.
 */
export class ModernUpstreamSession implements UpstreamSession, CallAdapter {
  readonly identity: ServerIdentity
  /** True for stdio, which has no stream to close (MCP 2026-07-28, "Cancellation"). */
  readonly notifiesCancel: boolean
  readonly #connection: RpcConnection
  readonly #transport: Transport
  readonly #client: ClientIdentity
  readonly #handlers: SessionHandlers
  readonly #outgoing: OutgoingEnvelope
  readonly #options: ModernSessionOptions
  readonly #listening: NotificationReceiver
  readonly #rounds: InputRounds
  /** The open calls, by the id of their current request. */
  readonly #calls = new RequestTable<number, Call>()
  readonly #corrections: HeaderCorrection
  readonly #tasks: ModernServerTasks
  readonly #hasLogs: boolean
  #closed = false

  /** @param connection an open connection to a server that has answered `server/discover` */
  constructor (
    connection: RpcConnection,
    transport: Transport,
    client: ClientIdentity,
    handlers: SessionHandlers,
    { identity, outgoing }: DiscoveredServer,
    options: ModernSessionOptions
  ) {
    this.#connection = connection
    this.#transport = transport
    this.#client = client
    this.#handlers = handlers
    this.#outgoing = outgoing
    this.#options = options
    this.identity = identity
    this.notifiesCancel = transport.hasStreams !== true
    this.#hasLogs = isObject(identity.capabilities.logging)
    const rounds = this.#rounds = new InputRounds(handlers.question, options.bounds)
    this.#tasks = new ModernServerTasks({ connection, outgoing, rounds, timeout: client.initTimeout })
    this.#corrections = new HeaderCorrection(
      async (method, paramsText) => await this.request(method, paramsText), options.bounds.headerPages
    )
    this.#listening = new NotificationReceiver({
      connection,
      outgoing,
      capabilities: identity.capabilities,
      timeout: client.initTimeout,
      notifiesCancel: this.notifiesCancel,
      onNotification: (notification) => { handlers.notification(notification, undefined) },
      onLost: (error) => { connection.closed(error) }
    })
    connection.isModern = true
    connection.handlers = {
      // Servers send no requests in this era.
      request: () => {},
      notification: (notification, origin) => { this.#notification(notification, origin) },
      mended: handlers.mended,
      closed: (error) => { this.#lost(error) }
    }
  }

  get openCalls (): readonly Call[] { return this.#calls.values() }
  get busy (): boolean { return this.#calls.size > 0 }
  get closed (): boolean { return this.#closed }

  /** Opens the notification stream, and waits for it for at most `listenWait`. */
  async open (): Promise<void> {
    await waitAtMost(listenWait, this.#listening.open())
  }

  call (exchange: Exchange, { changes, deadlines, headers }: Omit<CallOptions, 'onEnd'>): Promise<Response> {
    const own = exchange.taskForm === undefined ? exchange : this.#tasks.toModernRequest(exchange)
    const call = new Call(this.#connection, own, {
      changes: changes.task === undefined ? changes : withoutTask(changes),
      deadlines,
      headers,
      onEnd: this.#onCallEnd,
      adapter: this
    })
    if (!call.isOver) this.#calls.set(call.id, call)
    return call.answer
  }

  params (exchange: Exchange, changes: ParamChanges, id: number): string {
    return this.#outgoing.params(exchange, changes, id, this.#hasLogs, this.#tasks.isDeclaredFor(exchange))
  }

  headers (exchange: Exchange, changes: ParamChanges): Record<string, string> {
    return this.#outgoing.headers(exchange, changes)
  }

  onResend (call: Call, previousId: number): void {
    this.#calls.take(previousId)
    this.#calls.set(call.id, call)
  }

  onResponse (call: Call, response: Response): Promise<NextStep> | undefined {
    const { resultText, errorText } = response
    if (errorText !== undefined) return this.#onErrorAnswer(call, response, errorText)
    const hasTasks = this.#tasks.isDeclaredFor(call.exchange)
    const type = resultText !== undefined && nonCoreResultTypePattern.test(resultText)
      ? unsupportedResultType(call, resultText, hasTasks)
      : undefined
    if (type !== undefined) {
      delete response.resultText
      const message = `The server returned a result of type ${type}, which the client does not support`
      response.errorText = JSON.stringify({ code: rpcCode.internal, message })
      return undefined
    }
    const step = hasTasks && resultText !== undefined ? this.#tasks.onResult(call, response, resultText) : undefined
    if (step !== undefined || response.resultText !== resultText) return step
    // A modern client gets the questions in the result.
    if (call.exchange.canSuspend || resultText === undefined) return undefined
    if (!isInputRequired(response)) {
      // A client without a listener is a plain HTTP caller, and gets the result unchanged.
      if (call.method === 'tools/call' && call.client.listener !== undefined) {
        response.resultText = toLegacyToolResult(resultText)
      }
      return undefined
    }
    return this.#rounds.collectAnswers(call, resultText).then((changes) => ({ changes }))
  }

  /**
   * Handles an error answer. If the error concerns the hop between gateway and server, corrects the request and sends
   * it again, fails the call, or rewords the error. Otherwise only the code of an unknown resource may be changed.
   */
  #onErrorAnswer (call: Call, response: Response, errorText: string): Promise<NextStep> | undefined {
    const error = parseRpcError(errorText)
    if (error.code === rpcCode.invalidParams && !call.exchange.canSuspend &&
        isResourceNotFound(call.method, errorText)) {
      response.errorText = withMembers(errorText, { code: String(rpcCode.resourceNotFound) })
    }
    if (!isModernErrorCode(error.code)) return undefined
    const correction = error.code === modernErrorCode.headerMismatch ? this.#corrections.correct(call) : undefined
    if (correction) return correction.then(() => ({ changes: {} }))
    if (this.#tasks.needsExtension(call, error, errorText)) return Promise.resolve({ changes: {} })
    if (asksForLegacyVersion(errorText)) {
      return Promise.reject(new UpstreamError('expired', 'the server returned to an earlier MCP ' +
        'revision', { isPublic: true }))
    }
    response.errorText = translateHopError(error, errorText)
    return undefined
  }

  readonly #onCallEnd = (call: Call, response: Response | undefined): void => {
    this.#calls.take(call.id)
    this.#rounds.end(call)
    this.#tasks.end(call, response)
    this.#handlers.callEnded(call, response)
  }

  async request (method: string, paramsText = '{}', timeout = this.#client.initTimeout): Promise<string> {
    const outgoing = this.#outgoing
    const protocol = outgoing.ownHeaders(method)
    const result = await this.#connection.requestResult(method, outgoing.ownParams(paramsText), timeout, { protocol })
    return this.#toOwnResult(method, paramsText, result)
  }

  /**
   * Checks the result of one of the gateway's own requests, and removes its `resultType`. For a list of tools, records
   * the headers that repeat arguments, and removes the tools that must not be used over HTTP.
   */
  #toOwnResult (method: string, paramsText: string, result: string): string {
    const type = memberOf(result, 'resultType')
    if (type !== undefined && type !== 'null' && type !== JSON.stringify(resultTypes.complete)) {
      throw new RpcError(
        rpcCode.internal, `The result of ${method} has the type ${type}, which MCP does not have`, 'upstream'
      )
    }
    const text = type === undefined ? result : withMembers(result, { resultType: undefined })
    // Without HTTP, there are no headers that repeat arguments.
    if (method !== 'tools/list' || this.#transport.hasStreams !== true) return text
    return this.#options.tools.record(text, memberOf(paramsText, 'cursor') === undefined, this.#options.warn)
  }

  notify (method: string, paramsText?: string): void {
    // These include cancellations, since calls send their own.
    if (removedNotifications.has(method)) return
    this.#connection.notify(method, paramsText, { protocol: this.#outgoing.ownHeaders(method) })
  }

  async subscribe (uri: string): Promise<string> {
    await this.#listening.add(uri)
    return '{}'
  }

  async unsubscribe (uri: string): Promise<string> {
    this.#listening.remove(uri)
    return '{}'
  }

  /** Does nothing: each request carries its client's log level. */
  async setLevel (_level: LogLevel): Promise<void> {}

  /** Sends `server/discover`, since this era has no ping. */
  async ping (timeout: number): Promise<void> {
    const { version } = this.#outgoing
    try {
      await discoverServer(this.#connection, this.#client, this.#options.tools, version, timeout)
    } catch (error) {
      throw error instanceof NotModernError
        ? new UpstreamError('expired', `it no longer supports MCP ${version}`)
        : error
    }
  }

  async close (): Promise<void> {
    this.#closed = true
    this.#listening.close()
    this.#connection.closed(new UpstreamError('broken', 'its connection was closed', { isPublic: true }))
    this.#endCalls()
    await this.#transport.close()
  }

  #lost (error: UpstreamError): void {
    this.#listening.close()
    if (this.#closed) return
    this.#closed = true
    this.#endCalls(error)
    this.#handlers.closed(error)
    void this.#transport.close()
  }

  /** Cancels all calls, including calls without an open request, which wait for a client to answer a question. */
  #endCalls (error = new UpstreamError('broken', 'its connection was closed', { isPublic: true })): void {
    for (const call of this.#calls.values()) call.cancel(error)
  }

  #notification (notification: Notification, origin: number | undefined): void {
    const { method, params, paramsText } = notification
    const call = method === 'notifications/progress' ? this.#calls.get(Number(params.progressToken)) : undefined
    if (call) call.progress(paramsText)
    else if (isStreamNotification(method) || !this.#listening.handle(notification, origin)) {
      this.#handlers.notification(notification, this.#originOf(origin))
    }
  }

  #originOf (origin: number | undefined): MessageOrigin {
    if (origin === undefined) return undefined
    return this.#calls.get(origin) ?? (this.#client.exclusive ? undefined : 'over')
  }
}

/** Client notifications that are not forwarded: they do not exist in this era, or the gateway handles them. */
const removedNotifications: ReadonlySet<string> = new Set([
  'notifications/initialized', 'notifications/roots/list_changed', 'notifications/cancelled', 'notifications/progress'
])
