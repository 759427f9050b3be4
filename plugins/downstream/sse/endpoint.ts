import { randomBytes } from 'node:crypto'
import { code, RpcError } from '../../../protocol/errors.ts'
import { allowsBatch } from '../../../protocol/legacy/versions.ts'
import { errorText, resultText, type Request } from '../../../protocol/message.ts'
import { ownerOf, type Principal, type View } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { limits, Shares } from '../../base/limits/index.ts'
import { acceptedBy } from '../accept.ts'
import type { Endpoint, Inbound } from '../endpoint.ts'
import { EventStream } from '../event-stream.ts'
import { readMessage, type Received } from '../read-message.ts'
import { initialize } from '../legacy/initialize.ts'
import type { LegacyRequests } from '../legacy/requests.ts'
import type { Sessions } from '../legacy/sessions.ts'
import { SseConnection } from './connection.ts'

interface SseEndpointDeps {
  gateway: Gateway
  sessions: Sessions
  requests: LegacyRequests
  /** The path to which clients post, without a query. */
  messagesPath: string
}

/**
 * The server side of HTTP with SSE, the transport of revision 2024-11-05: a GET opens the stream on which the client gets all messages; it
 * posts its own to the address that the first event names. A connection is bound to the principal that opened it, and its session ends
 * with the stream.
 */
export class SseEndpoint implements Endpoint {
  readonly #deps: SseEndpointDeps
  readonly #connections = new Map<string, SseConnection>()
  readonly #shares = new Shares(limits.sessions, 'SSE connections')

  constructor (deps: SseEndpointDeps) {
    this.#deps = deps
    deps.sessions.on('ended', (session) => {
      for (const connection of this.#connections.values()) if (connection.session === session) connection.end()
    })
  }

  /** A GET: opens a connection. @throws NotAcceptable, ShareError, Draining */
  open ({ view, headers, raw, address }: Inbound): void {
    const { sessions, requests, messagesPath } = this.#deps
    if (!acceptedBy(headers.accept).events) throw new errors.NotAcceptable('text/event-stream')
    if (requests.closing) throw new errors.Draining()
    const release = this.#shares.take(ownerOf(view.principal, address))
    const id = randomBytes(32).toString('base64url')
    const stream = new EventStream(raw, {})
    const connection = new SseConnection(id, view, stream)
    this.#connections.set(id, connection)
    const timer = setTimeout(() => { if (!connection.session) connection.end() }, limits.initializeTimeout).unref()
    stream.onClose(() => {
      clearTimeout(timer)
      release()
      this.#connections.delete(id)
      if (connection.session) sessions.end(connection.session, 'the client closed its stream')
    })
    connection.sendEndpoint(`${messagesPath}?sessionId=${id}`)
  }

  /**
   * A POST: messages of a client, which are answered on its stream.
   * @param id the `sessionId` of the query
   * @throws errors in the dialect of the `mcp` scope; SessionUnknown also for a connection of another principal; Draining instead of it
   */
  post (
    principal: Principal,
    id: string | undefined,
    sent: Pick<Inbound, 'headers' | 'address'>,
    text: string
  ): void {
    this.#receive(this.#connection(principal, id), sent, readMessage(text))
  }

  /** The connection that a POST names. @throws SessionIdRequired, SessionUnknown, Draining */
  #connection (principal: Principal, id: string | undefined): SseConnection {
    if (id === undefined || id === '') throw new errors.SessionIdRequired()
    const connection = this.#connections.get(id)
    if (!connection || connection.view.principal.key !== principal.key) {
      // The streams end while the gateway drains: their clients shall come back, not begin again.
      throw this.#deps.requests.closing ? new errors.Draining() : new errors.SessionUnknown()
    }
    return connection
  }

  #receive (connection: SseConnection, { headers, address }: Pick<Inbound, 'headers' | 'address'>, message: Received): void {
    if (!Array.isArray(message) && message.kind === 'request' && message.method === 'initialize') {
      void this.#initialize(connection, message, address)
      return
    }
    const { session } = connection
    if (!session) throw new RpcError(code.badRequest, 'Bad request: begin with initialize')
    if (Array.isArray(message) && !allowsBatch(session.version)) {
      throw new RpcError(code.invalidRequest, `Invalid request: batches are not part of MCP ${session.version}`)
    }
    const messages = Array.isArray(message) ? message : [message]
    this.#deps.requests.receive(session, messages, { view: session.view, headers, address }, (answers) => connection.openReply(answers))
  }

  /** Requests in flight are drained and failed together with those of all legacy sessions; then the streams end. */
  async close (timeout: number): Promise<void> {
    await this.#deps.requests.drain(timeout)
    for (const connection of this.#connections.values()) connection.end()
  }

  revoke (stands: (view: View) => boolean): void {
    for (const connection of this.#connections.values()) if (!connection.session && !stands(connection.view)) connection.end()
  }

  async #initialize (connection: SseConnection, request: Request, address: string): Promise<void> {
    const { gateway, sessions, requests } = this.#deps
    const reply = connection.openReply(1)
    try {
      if (connection.session || connection.initializing) {
        throw new RpcError(code.invalidRequest, 'Invalid request: the session has begun already')
      }
      connection.initializing = true
      const place = sessions.reserve(connection.view, address)
      const { session, result } = await initialize(gateway, sessions, connection.view, request, place)
      if (!connection.connected) { sessions.end(session, 'the client closed its stream'); return }
      connection.session = session
      session.addChannel(connection, connection.stream)
      reply.finish([resultText(request.idText, result)])
    } catch (error) {
      reply.finish([errorText(request.idText, requests.toRpcError(error).toText())])
    } finally {
      connection.initializing = false
    }
  }
}
