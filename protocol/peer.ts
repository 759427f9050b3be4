import { conforms } from './conforming.ts'
import { UpstreamError } from './errors.ts'
import { isObject, memberOf, membersOf } from './json.ts'
import { lookalikeMethod, unknownMethodError } from './lookalikes.ts'
import { errorShape, paramsShape, resultShape } from './message-shapes.ts'
import { mayNeedMending, mend } from './mending.ts'
import type { Shape } from './shapes/shape.ts'
import {
  errorResponseText, notificationText, requestText, resultResponseText, parseRpcError, type Message, type Notification,
  type Request, type Response
} from './message.ts'
import { RequestTable } from './table.ts'
import { largeTextLength } from './text.ts'
import type { Receiver, SendOptions, Transport } from './transports/transport.ts'
import { waitAtMost } from './wait-at-most.ts'

/**
 * Handlers of the server's messages. `origin`: the id of the gateway's request on whose stream a message arrived;
 * undefined if there is no such request, or if it is unknown.
 */
export interface RpcConnectionHandlers {
  request: (request: Request, origin: number | undefined) => void
  notification: (notification: Notification, origin: number | undefined) => void
  /** Called when a message was repaired. @param what the kind of message @param places paths of repaired values */
  mended?: (what: string, places: readonly string[]) => void
  /** Called when the server may have restarted, and lost the session. Resolves once that is checked. */
  restartSuspected?: () => Promise<void>
  /** Called when the connection has ended, and all pending requests have failed. */
  closed: (error: UpstreamError) => void
}

/** Observes one of the gateway's requests. */
interface RequestObserver {
  /** Called when the upstream wants to be polled for the answer. @param retry the time until then, in ms */
  onPoll: (retry: number) => void
  /**
   * Called when the request has ended, before any later message is handled.
   * @param response undefined if there is none
   * @returns a promise that replaces the answer; undefined if the answer stands
   */
  onSettled: (response: Response | undefined) => Promise<Response> | undefined
}

type MessageOptions = Omit<SendOptions, 'id'>

interface PendingRequest {
  readonly method: string
  /** The resource URI of `resources/read`, as JSON text. */
  readonly uri: string | undefined
  readonly resolve: (response: Response | Promise<Response>) => void
  readonly reject: (error: UpstreamError) => void
  readonly observer: RequestObserver | undefined
}

/** Max size of a result that is repaired even without `null` and `[]`, in characters. */
const maxCheckedResult = 4 * 1024 * 1024

/**
 * The client side of a JSON-RPC connection to a server: assigns ids, matches answers to requests, and passes all other
 * messages to its handlers. Messages from the server are repaired first (`mending.ts`).
 */
export class RpcConnection implements Receiver {
  readonly #transport: Transport
  /** Whether the server is of the modern era. */
  isModern = false
  /** Replaced once the server's MCP revision is known. */
  handlers: RpcConnectionHandlers
  readonly #pending = new RequestTable<number, PendingRequest>()
  #lastId = 0
  #closeReason: UpstreamError | undefined

  constructor (transport: Transport, handlers: RpcConnectionHandlers) {
    this.#transport = transport
    this.handlers = handlers
  }

  /** Opens the transport. @throws UpstreamError if it cannot be opened */
  async start (onDialled?: () => void): Promise<void> {
    await this.#transport.start(this, onDialled)
  }

  /** The id of the next request, which is also its progress token. */
  get nextId (): number { return this.#lastId + 1 }

  /**
   * Sends a request with the id `nextId`.
   * @returns the answer, which may be an error
   * @throws UpstreamError if there is none
   */
  request (
    method: string,
    paramsText?: string,
    observer?: RequestObserver,
    { headers, owner, protocol }: MessageOptions = {}
  ): Promise<Response> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const uri = method === 'resources/read' ? memberOf(paramsText ?? '{}', 'uri') : undefined
      this.#pending.set(id, { method, uri, resolve, reject, observer })
      if (this.#closeReason) { this.failed(id, new UpstreamError('unreachable', this.#closeReason.message)); return }
      this.#transport.send(requestText(id, method, paramsText), { id, headers, owner, protocol })
    })
  }

  notify (method: string, paramsText?: string, options?: MessageOptions): void {
    if (!this.#closeReason) this.#transport.send(notificationText(method, paramsText), options)
  }

  /** Answers a request from the server. @param idText the id as the server wrote it */
  answer (idText: string, response: Response): void {
    if (this.#closeReason) return
    this.#transport.send(
      response.errorText === undefined
        ? resultResponseText(idText, response.resultText ?? '{}')
        : errorResponseText(idText, response.errorText)
    )
  }

  /**
   * Sends one of the gateway's own requests.
   * @param timeout in ms
   * @returns the text of its result
   * @throws RpcError if the answer is an error; UpstreamError if there is none
   */
  async requestResult (
    method: string, paramsText: string | undefined, timeout: number, options?: MessageOptions
  ): Promise<string> {
    const id = this.nextId
    const timer = setTimeout(() => {
      const problem = `no answer to ${method} within ${timeout / 1_000} s`
      this.abandon(id, new UpstreamError('timeout', problem, { isPublic: true }))
    }, timeout)
    try {
      const response = await this.request(method, paramsText, undefined, options)
      if (response.errorText !== undefined) throw parseRpcError(response.errorText)
      return response.resultText ?? '{}'
    } finally {
      clearTimeout(timer)
    }
  }

  /** Discards one of the gateway's requests without waiting for its answer. The request fails with `error`. */
  abandon (id: number, error: UpstreamError): void {
    this.#transport.drop(id)
    this.failed(id, error)
  }

  message (message: Message, origin: number | undefined): boolean {
    if (message.kind !== 'response' && lookalikeMethod(message.method) !== undefined) {
      // The message has not passed the checks of MCP, but a client might take its method for one of MCP.
      if (message.kind !== 'request') return false
      const { id, idText, method } = message
      this.answer(idText, { kind: 'response', id, errorText: unknownMethodError(method).toText() })
    } else if (message.kind === 'request') this.handlers.request(this.#withParams(message), origin)
    else if (message.kind === 'notification') this.handlers.notification(this.#withParams(message), origin)
    else if (typeof message.id === 'number') {
      const pending = this.#pending.take(message.id)
      if (!pending) return false
      this.#mendAnswer(message, pending)
      if (message.value !== undefined) message.value = undefined
      pending.resolve(pending.observer?.onSettled(message) ?? message)
      return true
    }
    return false
  }

  /** Repairs an answer. If the parsed value of the result needs no repair, sets only `isError`. */
  #mendAnswer (answer: Response, { method, uri }: PendingRequest): void {
    const { resultText, errorText } = answer
    if (errorText !== undefined) {
      answer.errorText = this.#mended(
        errorText, errorShape, `errors of ${method}`, true
      )
    }
    const shape = resultText === undefined ? undefined : resultShape(method, this.isModern, uri)
    if (resultText === undefined || shape === undefined) return
    if (answer.hasNullOrEmptyArray === false && resultText.length > maxCheckedResult) return
    const { value } = answer
    if (value !== undefined && conforms(value, shape)) answer.isError = isObject(value) && value.isError === true
    else answer.resultText = this.#mended(resultText, shape, `results of ${method}`, true)
  }

  /** Repairs the params of a message. */
  #withParams<Sent extends Request | Notification> (message: Sent): Sent {
    const { method, params, paramsText } = message
    if (message.hasNullOrEmptyArray === false || !mayNeedMending(paramsText)) return message
    const text = this.#mended(paramsText, paramsShape(method), method)
    if (text === paramsText) return message
    if (text.length <= largeTextLength) {
      return { ...message, params: JSON.parse(text) as Record<string, unknown>, paramsText: text }
    }
    // Large params are parsed lazily, and not again: only the members that the repair has removed are deleted.
    const left = new Set(membersOf(text).map(({ key }) => key))
    for (const key of Object.keys(params)) if (!left.has(key)) Reflect.deleteProperty(params, key)
    return { ...message, paramsText: text }
  }

  #mended (text: string, shape: Shape, what: string, isChecked = false): string {
    const mended = mend(text, shape, isChecked)
    if (mended.places.length > 0) this.handlers.mended?.(what, mended.places)
    return mended.text
  }

  failed (id: number, error: UpstreamError): void {
    const pending = this.#pending.take(id)
    pending?.observer?.onSettled(undefined)
    pending?.reject(error)
  }

  paused (id: number, retry: number): void {
    this.#pending.get(id)?.observer?.onPoll(retry)
  }

  async restartSuspected (): Promise<void> { await this.handlers.restartSuspected?.() }

  closed (error: UpstreamError): void {
    if (this.#closeReason) return
    this.#closeReason = error
    for (const id of this.#pending.keys()) this.failed(id, error)
    this.handlers.closed(error)
  }
}

/** Max time that an attempt to connect occupies one of the slots that limit simultaneous attempts, in ms. */
const maxDialTime = 1_000

/**
 * Opens a connection.
 * @param dialled called when the process has been spawned or a socket is open, at the latest after `maxDialTime`
 * @param timeout in ms
 * @throws UpstreamError
 */
export async function openRpcConnection (
  connection: RpcConnection, dialled: () => void, timeout: number
): Promise<void> {
  // A slow connection must not delay other upstreams. Some transports connect only when they send a request.
  setTimeout(dialled, maxDialTime).unref()
  await waitAtMost(timeout, connection.start(dialled), () => {
    throw new UpstreamError('timeout', `it did not connect within ${timeout / 1_000} s`, { isPublic: true })
  })
}
