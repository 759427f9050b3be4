import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Snapshot } from '../../../db/store.ts'
import { supportedVersions } from '../../../protocol/era.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { eventText } from '../../../protocol/event-stream.ts'
import { allowsBatch, isLegacyVersion, type LegacyVersion } from '../../../protocol/legacy/versions.ts'
import { errorResponseText, resultResponseText, type Request } from '../../../protocol/message.ts'
import type { View } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { parseAccept, type AcceptedTypes } from '../accept.ts'
import { shuttingDownError, firstHeaderValue, type Endpoint, type InboundRequest } from '../endpoint.ts'
import { EventStream } from '../event-stream.ts'
import { HttpReply, writeJson } from '../http-reply.ts'
import type { ReceivedMessage } from '../read-message.ts'
import { initialize } from './initialize.ts'
import { answerToMalformedMessage, type LegacyMessageHandler } from './message-handler.ts'
import type { SessionReservation, Session } from './session.ts'
import type { Sessions } from './sessions.ts'
import { downstreamLimits } from '../limits.ts'

/** The server side of streamable HTTP for legacy clients (MCP 2025-11-25, Transports, "Streamable HTTP"). */
export class LegacyEndpoint implements Endpoint {
  readonly #gateway: Gateway
  readonly #sessions: Sessions
  readonly #requests: LegacyMessageHandler
  readonly #snapshot: () => Snapshot

  constructor (gateway: Gateway, sessions: Sessions, requests: LegacyMessageHandler, snapshot: () => Snapshot) {
    this.#gateway = gateway
    this.#sessions = sessions
    this.#requests = requests
    this.#snapshot = snapshot
  }

  /** Handles a POST from a client. @throws RpcError, and errors that the error handler of the MCP routes sends */
  receive (inbound: InboundRequest, accepted: AcceptedTypes, message: ReceivedMessage): void {
    const { raw } = inbound
    if (!Array.isArray(message) && message.kind === 'request' && message.method === 'initialize') {
      if (this.#requests.isClosing) throw new errors.Draining()
      void this.#initialize(inbound, message, accepted, this.#sessions.reserve(inbound.view, inbound.address))
      return
    }
    const session = this.#sessionOf(inbound)
    if (Array.isArray(message)) {
      if (!allowsBatch(session.version)) {
        throw new RpcError(rpcCode.invalidRequest, `Invalid request: batches are not part of MCP ${session.version}`)
      }
      if (message.some((each) => each.kind === 'request' && each.method === 'initialize')) {
        throw new RpcError(rpcCode.invalidRequest, 'Invalid request: initialize must not be part of a batch')
      }
      if (message.every((each) => each.kind === 'malformed')) {
        writeJson(raw, [`[${message.map(answerToMalformedMessage).join()}]`], 400)
        return
      }
    }
    this.#run(session, message, inbound, accepted)
  }

  /** Handles a GET: opens a stream for messages that belong to none of the client's requests, or resumes a stream. */
  get (inbound: InboundRequest): void {
    const { headers, raw } = inbound
    if (!parseAccept(headers.accept).events) throw new errors.NotAcceptable('text/event-stream')
    const session = this.#sessionOf(inbound)
    const lastEventId = firstHeaderValue(headers['last-event-id'])
    if (!session.canOpenStream(lastEventId)) throw new errors.TooManyStreams(downstreamLimits.streamsPerSession)
    session.listen(new EventStream(raw, { 'mcp-session-id': session.sessionId }), lastEventId)
  }

  /** Handles a DELETE, with which a client ends its session. */
  delete ({ view, headers, raw }: InboundRequest): void {
    const id = firstHeaderValue(headers['mcp-session-id'])
    if (id === undefined) throw new errors.SessionRequired()
    const session = this.#sessions.find(view, id)
    if (!session) throw new errors.SessionUnknown()
    this.#sessions.end(session, 'the client ended its session')
    raw.writeHead(200, { 'content-length': 0 }).end()
  }

  async close (timeout: number): Promise<void> {
    for (const session of this.#sessions) session.closeChannels()
    await this.#requests.drain(timeout)
    for (const session of this.#sessions) {
      for (const exchange of session.exchanges.values()) exchange.fail(shuttingDownError())
    }
    this.#sessions.close()
  }

  revoke (hasAccess: (view: View) => boolean): void {
    for (const session of [...this.#sessions]) {
      if (!hasAccess(session.view)) this.#sessions.end(session, 'access was withdrawn')
    }
  }

  expire (id: string): void {
    for (const session of this.#sessions) if (session.view.principal.credential?.id === id) session.closeChannels()
  }

  async #initialize (
    { view, raw }: InboundRequest, request: Request, accepted: AcceptedTypes,
    reservation: SessionReservation
  ): Promise<void> {
    try {
      const { session, result } = await initialize(this.#gateway, this.#sessions, view, request, reservation)
      answer(raw, accepted, resultResponseText(request.idText, result), { 'mcp-session-id': session.sessionId })
    } catch (error) {
      answer(raw, accepted, errorResponseText(request.idText, this.#requests.toRpcAnswerError(error).toText()))
    }
  }

  #run (session: Session, message: ReceivedMessage, inbound: InboundRequest, accepted: AcceptedTypes): void {
    const isBatch = Array.isArray(message)
    const { raw } = inbound
    const isAnswered = this.#requests.receive(session, isBatch ? message : [message], inbound, (expected, onGone) =>
      new HttpReply(
        raw, {
          accepted,
          expected,
          isBatch,
          canPoll: session.canPoll,
          newStream: () => session.streams.open(),
          onGone
        }
      ))
    if (!isAnswered) raw.writeHead(202, { 'content-length': 0 }).end()
  }

  /**
   * Returns the session whose id a request sends. An unknown session is created again if the settings allow it.
   * @throws SessionRequired, SessionUnknown, UnsupportedVersion, ShareError
   */
  #sessionOf ({ view, headers, address }: InboundRequest): Session {
    const version = versionOf(headers)
    const id = firstHeaderValue(headers['mcp-session-id'])
    if (id === undefined) throw new errors.SessionRequired()
    const session = this.#sessions.find(view, id)
    if (session) return session
    const mayRebuild = this.#snapshot().system.enableSessionRebuild === true && !this.#requests.isClosing
    const rebuilt = mayRebuild ? this.#sessions.rebuild(view, id, version, address) : undefined
    if (!rebuilt) throw new errors.SessionUnknown()
    this.#gateway.addListener(rebuilt, rebuilt)
    return rebuilt
  }
}

/**
 * Returns the MCP revision in a request's header; 2025-03-26 without a header (MCP, "Protocol Version Header").
 * @throws UnsupportedVersion
 */
function versionOf (headers: IncomingHttpHeaders): LegacyVersion {
  const version = firstHeaderValue(headers['mcp-protocol-version'])
  if (version === undefined) return '2025-03-26'
  if (!isLegacyVersion(version)) throw new errors.UnsupportedVersion(version.slice(0, 40), supportedVersions.join(', '))
  return version
}

/** Sends an answer in the content type that the client prefers. */
function answer (
  raw: ServerResponse, accepted: AcceptedTypes, text: string, headers: Record<string, string> = {}
): void {
  if (!accepted.eventsFirst) { writeJson(raw, [text], 200, headers); return }
  const stream = new EventStream(raw, headers)
  stream.write(eventText(text))
  stream.end()
}
