import { randomUUID } from 'node:crypto'
import type { Call, CallOptions } from '../../../protocol/call.ts'
import type { ServerCapabilities } from '../../../protocol/capabilities.ts'
import type { UpstreamError } from '../../../protocol/errors.ts'
import type { Client, Exchange, Question } from '../../../protocol/exchange.ts'
import { isObject } from '../../../protocol/json.ts'
import type { LogLevel } from '../../../protocol/listener.ts'
import type { Notification, Response } from '../../../protocol/message.ts'
import type {
  ClientIdentity, MessageOrigin, ServerIdentity, SessionHandlers, UpstreamSession
} from '../../../protocol/upstream-session.ts'
import type { LinkKey } from './link-key.ts'

export interface LinkHandlers {
  /** Called when the upstream sends a question (a request to a client). @throws RpcError to answer it with an error */
  question: (link: Link, question: Question, origin: MessageOrigin) => Promise<Response>
  /** Called for each notification of the upstream, except progress of an open call. */
  notification: (link: Link, notification: Notification, origin: MessageOrigin) => void
  /** Called when invalid members of a message are treated as absent. */
  mended?: SessionHandlers['mended']
  /** Called when a call is answered, before messages that the upstream sent after the answer are forwarded. */
  answered: (link: Link, call: Call, response: Response) => void
  closed: (link: Link, error: UpstreamError) => void
}

interface LinkOptions extends Omit<ClientIdentity, 'exclusive'> {
  key: LinkKey
  /** The only client that the link serves; undefined if it may serve several. */
  owner: Client | undefined
}

/** Creates an MCP session on a connection that is not open yet. */
export type SessionFactory = (identity: ClientIdentity, handlers: SessionHandlers) => UpstreamSession

/** One connection to an upstream, for the clients that share its key. It does not reconnect by itself. */
export class Link {
  readonly key: LinkKey
  readonly owner: Client | undefined
  /** Identifies the link among all links of all processes. */
  readonly id = randomUUID()
  lastUsed = Date.now()
  /** The log level that was set on the connection; undefined if none was set, so that the upstream decides. */
  level: LogLevel | undefined
  readonly #session: UpstreamSession
  #retiring = false
  /** The principal and owner of the first client that used the link; undefined if none has used it. */
  #user: { readonly principal: string, readonly owner: string | undefined } | undefined
  #isShared = false

  constructor (makeSession: SessionFactory, { key, owner, ...identity }: LinkOptions, handlers: LinkHandlers) {
    this.key = key
    this.owner = owner
    this.#session = makeSession({ ...identity, exclusive: owner !== undefined }, {
      question: async (question, origin) => await handlers.question(this, question, origin),
      notification: (notification, origin) => { handlers.notification(this, notification, origin) },
      callEnded: (call, response) => {
        this.lastUsed = Date.now()
        if (response) handlers.answered(this, call, response)
        if (this.#retiring && !this.busy) void this.close()
      },
      mended: handlers.mended,
      closed: (error) => { handlers.closed(this, error) }
    })
  }

  get identity (): ServerIdentity { return this.#session.identity }
  get capabilities (): ServerCapabilities { return this.#session.identity.capabilities }
  get closed (): boolean { return this.#session.closed }
  /** The calls that are not answered yet, oldest first. */
  get openCalls (): readonly Call[] { return this.#session.openCalls }
  get busy (): boolean { return this.#session.busy }

  /**
   * Opens the connection.
   * @param onDialled called when the process was spawned or the socket requested
   * @throws UpstreamError, RpcError
   */
  async open (onDialled: () => void): Promise<void> { await this.#session.open(onDialled) }

  /** Sends a client's request. The response may be an error. @throws UpstreamError if there is no response */
  call (exchange: Exchange, options: Omit<CallOptions, 'onEnd'>): Promise<Response> {
    this.recordUser(exchange.client)
    return this.#session.call(exchange, options)
  }

  /** Records that a client uses the link: later messages of the upstream may be about that client. */
  recordUser (client: Client): void {
    if (this.#user) this.#isShared ||= !this.#isUser(client)
    else this.#user = { principal: client.principalKey ?? client.id, owner: client.owner }
  }

  /** Whether clients with different principals or owners have used the link. */
  get isShared (): boolean { return this.#isShared }

  /** Whether all clients that have used the link have the principal and owner of this client. */
  isUsedOnlyBy (client: Client): boolean {
    return this.#user === undefined || (!this.#isShared && this.#isUser(client))
  }

  /**
   * Whether a client has the principal and owner of the link's first user. The principal alone does not suffice, since
   * all unauthenticated callers share one.
   */
  #isUser (client: Client): boolean {
    return this.#user?.principal === (client.principalKey ?? client.id) && this.#user.owner === client.owner
  }

  /**
   * Sends a request that the gateway makes itself.
   * @returns the result, as JSON text
   * @throws RpcError for an error response; UpstreamError if there is no response
   */
  async request (method: string, paramsText?: string): Promise<string> {
    return await this.#session.request(method, paramsText)
  }

  async subscribe (uri: string, paramsText?: string): Promise<string> {
    return await this.#session.subscribe(uri, paramsText)
  }

  async unsubscribe (uri: string, paramsText?: string): Promise<string> {
    return await this.#session.unsubscribe(uri, paramsText)
  }

  async ping (timeout: number): Promise<void> { await this.#session.ping(timeout) }

  notify (method: string, paramsText?: string): void { this.#session.notify(method, paramsText) }

  /**
   * Sets the minimum level of log messages (`logging/setLevel`). Does nothing if the server does not support logging,
   * or if the level is set already and `paramsText` is undefined.
   * @param paramsText the params of the client's request, if they have members other than the level
   * @throws the errors of `request`
   */
  async setLevel (level: LogLevel, paramsText?: string): Promise<void> {
    const before = this.level
    if ((level === before && paramsText === undefined) || !isObject(this.capabilities.logging)) return
    this.level = level
    try {
      await this.#session.setLevel(level, paramsText)
    } catch (error) {
      if (this.level === level) this.level = before
      throw error
    }
  }

  /** Closes the link once all open calls are answered. The caller must start no more calls on it. */
  retire (): void {
    if (this.closed || this.#retiring) return
    this.#retiring = true
    if (!this.busy) void this.close()
  }

  async close (): Promise<void> { await this.#session.close() }
}
