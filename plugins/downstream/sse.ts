import { randomBytes } from 'node:crypto'
import fp from 'fastify-plugin'
import { eventText } from '../../protocol/event-stream.ts'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import { allowsBatch } from '../../protocol/legacy/versions.ts'
import { errorResponseText, resultResponseText, type Request } from '../../protocol/message.ts'
import { type View, chargedOwnerOf, type Principal } from '../settings/index.ts'
import { errors } from '../base/errors/index.ts'
import type { Gateway } from '../gateway/index.ts'
import { Shares } from '../base/limits/index.ts'
import { EventStream } from './event-stream.ts'
import type { StandaloneChannel, Session } from './legacy/session.ts'
import type { ReplyChannel } from './reply-channel.ts'
import { parseAccept } from './accept.ts'
import type { Endpoint, InboundRequest } from './endpoint.ts'
import { parseClientMessage, type ReceivedMessage } from './read-message.ts'
import { initialize } from './legacy/initialize.ts'
import type { LegacyMessageHandler } from './legacy/message-handler.ts'
import type { Sessions } from './legacy/sessions.ts'
import { downstreamLimits } from './limits.ts'

/** The connection of an SSE client: the stream for all messages to the client, and the client's session. */
class SseConnection implements StandaloneChannel {
  readonly id: string
  readonly view: View
  readonly #stream: EventStream
  /** The session that `initialize` has started; undefined before. */
  session: Session | undefined
  /** Whether an `initialize` request is being handled. */
  isInitializing = false
  /** The number of answers that have not been sent yet. */
  #pending = 0
  #ending = false

  /** @param id the `sessionId` that the client sends. It is not a credential. */
  constructor (id: string, view: View, stream: EventStream) {
    this.id = id
    this.view = view
    this.#stream = stream
  }

  get isConnected (): boolean { return this.#stream.isOpen }
  get stream (): EventStream { return this.#stream }

  /** Sends the first event: the URL to which the client must POST its messages. */
  sendEndpoint (url: string): void { this.#stream.write(`event: endpoint\ndata: ${url}\n\n`) }

  send (text: string): void { this.#stream.write(eventText(text)) }

  /** Ends the stream after the last pending answer. */
  end (): void {
    this.#ending = true
    if (this.#pending === 0) this.#stream.end()
  }

  /** Returns the channel for the answers to one POST, which are sent on the stream. @param answers their number */
  openReply (answers: number): ReplyChannel {
    this.#pending += answers
    return {
      canStream: true,
      send: (text) => { this.send(text) },
      finish: (parts) => {
        if (parts) this.send(parts.join(''))
        this.#pending--
        if (this.#ending) this.end()
      },
      pause: () => {}
    }
  }
}

interface SseEndpointDeps {
  gateway: Gateway
  sessions: Sessions
  requests: LegacyMessageHandler
  /** The path to which clients POST their messages, without a query. */
  messagesPath: string
}

/**
 * The server side of HTTP with SSE, the transport of revision 2024-11-05. A GET opens the stream on which the client
 * receives all messages; the client POSTs its messages to the URL in the first event. A connection belongs to the
 * principal that opened it, and its session ends with the stream.
 */
class SseEndpoint implements Endpoint {
  readonly #deps: SseEndpointDeps
  readonly #connections = new Map<string, SseConnection>()
  readonly #bySession = new WeakMap<Session, SseConnection>()
  readonly #shares = new Shares(downstreamLimits.sessions, 'SSE connections')

  constructor (deps: SseEndpointDeps) {
    this.#deps = deps
    deps.sessions.on('ended', (session) => { this.#bySession.get(session)?.end() })
  }

  /** Handles a GET: opens a connection. @throws NotAcceptable, ShareError, Draining */
  open ({ view, headers, raw, address }: InboundRequest): void {
    const { sessions, requests, messagesPath } = this.#deps
    if (!parseAccept(headers.accept).events) throw new errors.NotAcceptable('text/event-stream')
    if (requests.isClosing) throw new errors.Draining()
    const release = this.#shares.take(chargedOwnerOf(view.principal, address))
    const id = randomBytes(32).toString('base64url')
    const stream = new EventStream(raw, {})
    const connection = new SseConnection(id, view, stream)
    this.#connections.set(id, connection)
    const timer =
      setTimeout(() => { if (!connection.session) connection.end() }, downstreamLimits.initializeTimeout).unref()
    stream.onClose(() => {
      clearTimeout(timer)
      release()
      this.#connections.delete(id)
      if (connection.session) sessions.end(connection.session, 'the client closed its stream')
    })
    // The path of this GET tells the client whose token has expired which resource to request a new one for.
    const [path = ''] = (raw.req.url ?? '').split('?', 1)
    connection.sendEndpoint(`${messagesPath}?sessionId=${id}&path=${encodeURIComponent(path)}`)
  }

  /**
   * Handles a POST with messages from a client, which are answered on its stream.
   * @param id the `sessionId` of the query
   * @throws RpcError for an invalid message; SessionIdRequired; SessionUnknown for an unknown connection and for a
   *   connection of another principal, or Draining while the gateway shuts down
   */
  post (
    principal: Principal,
    id: string | undefined,
    sent: Pick<InboundRequest, 'headers' | 'address'>,
    text: string
  ): void {
    this.#receive(this.#connectionOf(principal, id), sent, parseClientMessage(text))
  }

  /** Returns the connection to which a POST belongs. @throws SessionIdRequired, SessionUnknown, Draining */
  #connectionOf (principal: Principal, id: string | undefined): SseConnection {
    if (id === undefined || id === '') throw new errors.SessionIdRequired()
    const connection = this.#connections.get(id)
    if (!connection || connection.view.principal.key !== principal.key) {
      // While the gateway shuts down, its streams end. Clients must retry, and not start a new session.
      throw this.#deps.requests.isClosing ? new errors.Draining() : new errors.SessionUnknown()
    }
    return connection
  }

  #receive (
    connection: SseConnection,
    { headers, address }: Pick<InboundRequest, 'headers' | 'address'>,
    message: ReceivedMessage
  ): void {
    if (!Array.isArray(message) && message.kind === 'request' && message.method === 'initialize') {
      void this.#initialize(connection, message, address)
      return
    }
    const { session } = connection
    if (!session) throw new RpcError(rpcCode.badRequest, 'Bad request: send initialize first')
    if (Array.isArray(message) && !allowsBatch(session.version)) {
      throw new RpcError(rpcCode.invalidRequest, `Invalid request: batches are not part of MCP ${session.version}`)
    }
    const messages = Array.isArray(message) ? message : [message]
    this.#deps.requests.receive(session, messages, { view: session.view, headers, address }, (answers) =>
      connection.openReply(answers))
  }

  /** Waits up to `timeout` ms for the open requests of all legacy sessions, then ends the streams. */
  async close (timeout: number): Promise<void> {
    await this.#deps.requests.drain(timeout)
    for (const connection of this.#connections.values()) connection.end()
  }

  revoke (hasAccess: (view: View) => boolean): void {
    for (const connection of this.#connections.values()) {
      if (!connection.session && !hasAccess(connection.view)) connection.end()
    }
  }

  /** Ends the connections that have no session yet; `LegacyEndpoint` ends the streams of sessions. */
  expire (id: string): void {
    for (const connection of this.#connections.values()) {
      if (!connection.session && connection.view.principal.credential?.id === id) connection.end()
    }
  }

  async #initialize (connection: SseConnection, request: Request, address: string): Promise<void> {
    const { gateway, sessions, requests } = this.#deps
    const reply = connection.openReply(1)
    try {
      if (connection.session || connection.isInitializing) {
        throw new RpcError(rpcCode.invalidRequest, 'Invalid request: the session is already initialized')
      }
      connection.isInitializing = true
      const reservation = sessions.reserve(connection.view, address)
      const { session, result } = await initialize(gateway, sessions, connection.view, request, reservation)
      if (!connection.isConnected) { sessions.end(session, 'the client closed its stream'); return }
      connection.session = session
      this.#bySession.set(session, connection)
      session.addChannel(connection, connection.stream)
      reply.finish([resultResponseText(request.idText, result)])
    } catch (error) {
      reply.finish([errorResponseText(request.idText, requests.toRpcAnswerError(error).toText())])
    } finally {
      connection.isInitializing = false
    }
  }
}

declare module 'fastify' {
  interface FastifyInstance { sse: SseEndpoint }
}

/** Decorates the app with `sse`, the transport of revision 2024-11-05, which is served beside streamable HTTP. */
export default fp(async (app) => {
  const { sessions, requests } = app.downstream
  const endpoint =
    new SseEndpoint({ gateway: app.gateway, sessions, requests, messagesPath: `${app.config.basePath}/messages` })
  app.downstream.add(endpoint)
  app.decorate('sse', endpoint)
}, { name: 'sse', dependencies: ['config', 'gateway', 'downstream'] })
