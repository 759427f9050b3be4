import { UpstreamError } from './errors.ts'
import {
  errorText,
  notificationText,
  requestText,
  resultText,
  type Message,
  type Notification,
  type Request,
  type Response
} from './message.ts'
import { Table } from './table.ts'
import type { Receiver, SendOptions, Transport } from './transports/transport.ts'

/** Receives requests and notifications of the other side. `origin`: the id of our request on whose stream the message came. */
export interface PeerHandlers {
  request: (request: Request, origin: number | undefined) => void
  notification: (notification: Notification, origin: number | undefined) => void
  /** The upstream may not know the connection any more. */
  doubted?: () => void
  /** Called when the connection is gone, after every pending request has failed. */
  closed: (error: UpstreamError) => void
}

/** Observes one request of ours. */
export interface Follower {
  /** The upstream is to be polled for the answer. @param retry time until then, in ms */
  paused: (retry: number) => void
  /**
   * The request is over. Called before any later message is handled.
   * @param response undefined: there will be none
   * @returns what is awaited in place of the answer; undefined: the answer it is
   */
  over: (response: Response | undefined) => Promise<Response> | undefined
}

interface PendingRequest {
  readonly resolve: (response: Response | Promise<Response>) => void
  readonly reject: (error: UpstreamError) => void
  readonly follower: Follower | undefined
}

/** One end of a JSON-RPC connection: assigns ids, matches answers to requests, and passes everything else to its handlers. */
export class Peer implements Receiver {
  readonly #transport: Transport
  /** Who receives what the other side sends. It changes once it is known which revision of MCP the other side speaks. */
  handlers: PeerHandlers
  readonly #pending = new Table<number, PendingRequest>()
  #lastId = 0
  #over: UpstreamError | undefined

  constructor (transport: Transport, handlers: PeerHandlers) {
    this.#transport = transport
    this.handlers = handlers
  }

  /** @throws UpstreamError when the transport cannot be opened */
  async start (dialled?: () => void): Promise<void> {
    await this.#transport.start(this, dialled)
  }

  /** The id of the next request, which is also its progress token. */
  get nextId (): number { return this.#lastId + 1 }

  /**
   * Sends a request under `nextId`.
   * @param headers of the client that it is sent for
   * @param owner who causes the answer
   * @param protocol headers that MCP prescribes for it
   * @returns the answer, which may be an error; rejects with UpstreamError when there is none
   */
  request (
    method: string,
    paramsText?: string,
    follower?: Follower,
    headers?: SendOptions['headers'],
    owner?: string,
    protocol?: SendOptions['protocol']
  ): Promise<Response> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, follower })
      if (this.#over) { this.failed(id, new UpstreamError('unreachable', this.#over.message)); return }
      this.#transport.send(requestText(id, method, paramsText), { id, headers, owner, protocol })
    })
  }

  notify (method: string, paramsText?: string, headers?: SendOptions['headers'], protocol?: SendOptions['protocol']): void {
    if (!this.#over) this.#transport.send(notificationText(method, paramsText), (headers ?? protocol) && { headers, protocol })
  }

  /** Answers a request of the other side, under the id as it was written. */
  answer (idText: string, response: Response): void {
    if (this.#over) return
    this.#transport.send(
      response.errorText === undefined ? resultText(idText, response.resultText ?? '{}') : errorText(idText, response.errorText)
    )
  }

  /** Fails one request of ours without waiting for its answer. */
  abandon (id: number, error: UpstreamError): void {
    this.#transport.drop(id)
    this.failed(id, error)
  }

  message (message: Message, origin: number | undefined): boolean {
    if (message.kind === 'request') this.handlers.request(message, origin)
    else if (message.kind === 'notification') this.handlers.notification(message, origin)
    else if (typeof message.id === 'number') {
      const pending = this.#pending.take(message.id)
      pending?.resolve(pending.follower?.over(message) ?? message)
      return pending !== undefined
    }
    return false
  }

  failed (id: number, error: UpstreamError): void {
    const pending = this.#pending.take(id)
    pending?.follower?.over(undefined)
    pending?.reject(error)
  }

  paused (id: number, retry: number): void {
    this.#pending.get(id)?.follower?.paused(retry)
  }

  doubted (): void { this.handlers.doubted?.() }

  closed (error: UpstreamError): void {
    if (this.#over) return
    this.#over = error
    for (const id of this.#pending.keys()) this.failed(id, error)
    this.handlers.closed(error)
  }
}
