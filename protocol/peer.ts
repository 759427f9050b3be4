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

/** What comes from the other side unasked. `origin`: the request of ours on whose stream it came. */
export interface PeerHandlers {
  request: (request: Request, origin: number | undefined) => void
  notification: (notification: Notification, origin: number | undefined) => void
  /** The connection is gone; told after every pending request has failed. */
  closed: (error: UpstreamError) => void
}

/** Who follows one request of ours. */
export interface Follower {
  /** The upstream wants to be polled for the answer, after so many ms. */
  paused: (retry: number) => void
  /** The answer is there, or (undefined) will not come. Told at once, before anything that comes after it is looked at. */
  over: (response: Response | undefined) => void
}

interface PendingRequest { resolve: (response: Response) => void, reject: (error: UpstreamError) => void, follower: Follower | undefined }

/** One end of a JSON-RPC connection: allots ids, matches answers, hands on the rest. */
export class Peer implements Receiver {
  readonly #transport: Transport
  readonly #handlers: PeerHandlers
  readonly #pending = new Table<number, PendingRequest>()
  #lastId = 0
  #over: UpstreamError | undefined

  constructor (transport: Transport, handlers: PeerHandlers) {
    this.#transport = transport
    this.#handlers = handlers
  }

  /** @throws UpstreamError when the transport cannot be opened */
  async start (): Promise<void> {
    await this.#transport.start(this)
  }

  /** The id that the next request will have: it doubles as its progress token. */
  get nextId (): number { return this.#lastId + 1 }

  /**
   * Sends a request under `nextId`.
   * @param headers of the client that it is sent for
   * @returns the answer, also when it is an error; rejects with UpstreamError when none comes
   */
  request (method: string, paramsText?: string, follower?: Follower, headers?: SendOptions['headers']): Promise<Response> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, follower })
      if (this.#over) { this.failed(id, new UpstreamError('unreachable', this.#over.message)); return }
      this.#transport.send(requestText(id, method, paramsText), { id, headers })
    })
  }

  notify (method: string, paramsText?: string, headers?: SendOptions['headers']): void {
    if (!this.#over) this.#transport.send(notificationText(method, paramsText), headers && { headers })
  }

  /** Answers a request of the other side, under the id as it was written. */
  answer (idText: string, response: Response): void {
    if (this.#over) return
    this.#transport.send(
      response.errorText === undefined ? resultText(idText, response.resultText ?? '{}') : errorText(idText, response.errorText)
    )
  }

  /** Gives up one request of ours: its answer is not waited for any more. */
  abandon (id: number, error: UpstreamError): void {
    this.#transport.drop(id)
    this.failed(id, error)
  }

  message (message: Message, origin: number | undefined): void {
    if (message.kind === 'request') this.#handlers.request(message, origin)
    else if (message.kind === 'notification') this.#handlers.notification(message, origin)
    else if (typeof message.id === 'number') this.#take(message.id, message)?.resolve(message)
  }

  failed (id: number, error: UpstreamError): void {
    this.#take(id)?.reject(error)
  }

  paused (id: number, retry: number): void {
    this.#pending.get(id)?.follower?.paused(retry)
  }

  closed (error: UpstreamError): void {
    if (this.#over) return
    this.#over = error
    for (const id of this.#pending.keys()) this.failed(id, error)
    this.#handlers.closed(error)
  }

  #take (id: number, response?: Response): PendingRequest | undefined {
    const pending = this.#pending.take(id)
    pending?.follower?.over(response)
    return pending
  }
}
