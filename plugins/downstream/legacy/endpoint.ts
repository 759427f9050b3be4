import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Snapshot } from '../../../db/store.ts'
import { supportedVersions } from '../../../protocol/era.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import { eventText } from '../../../protocol/event-stream.ts'
import { allowsBatch, isLegacyVersion, type LegacyVersion } from '../../../protocol/legacy/versions.ts'
import { errorText, resultText, type Request } from '../../../protocol/message.ts'
import type { View } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { acceptedBy, type Accepted } from '../accept.ts'
import { shutDown, single, type Endpoint, type Inbound } from '../endpoint.ts'
import { EventStream } from '../event-stream.ts'
import { HttpReply, writeJson } from '../http-reply.ts'
import type { Received } from '../read-message.ts'
import { initialize } from './initialize.ts'
import { malformedText, type LegacyRequests } from './requests.ts'
import type { Place, Session } from './session.ts'
import type { Sessions } from './sessions.ts'
import { downstreamLimits } from '../limits.ts'

/**
 * The server side of streamable HTTP for legacy clients (specification to 2025-11-25: Transports, "Streamable HTTP").
 */
export class LegacyEndpoint implements Endpoint {
  readonly #gateway: Gateway
  readonly #sessions: Sessions
  readonly #requests: LegacyRequests
  readonly #snapshot: () => Snapshot

  constructor (gateway: Gateway, sessions: Sessions, requests: LegacyRequests, snapshot: () => Snapshot) {
    this.#gateway = gateway
    this.#sessions = sessions
    this.#requests = requests
    this.#snapshot = snapshot
  }

  /**
   * What a POST carries: requests, notifications and answers of a client.
   * @throws errors in the dialect of the `mcp` scope
   */
  receive (inbound: Inbound, accepted: Accepted, message: Received): void {
    const { raw } = inbound
    if (!Array.isArray(message) && message.kind === 'request' && message.method === 'initialize') {
      if (this.#requests.isClosing) throw new errors.Draining()
      void this.#initialize(inbound, message, accepted, this.#sessions.reserve(inbound.view, inbound.address))
      return
    }
    const session = this.#session(inbound)
    if (Array.isArray(message)) {
      if (!allowsBatch(session.version)) {
        throw new RpcError(code.invalidRequest, `Invalid request: batches are not part of MCP ${session.version}`)
      }
      if (message.some((each) => each.kind === 'request' && each.method === 'initialize')) {
        throw new RpcError(code.invalidRequest, 'Invalid request: initialize must stand alone')
      }
      if (message.every((each) => each.kind === 'malformed')) {
        writeJson(raw, [`[${message.map(malformedText).join()}]`], 400)
        return
      }
    }
    this.#run(session, message, inbound, accepted)
  }

  /** A GET: opens a stream for messages that belong to no request, or resumes a broken stream. */
  get (inbound: Inbound): void {
    const { headers, raw } = inbound
    if (!acceptedBy(headers.accept).events) throw new errors.NotAcceptable('text/event-stream')
    const session = this.#session(inbound)
    const lastEventId = single(headers['last-event-id'])
    if (!session.takesStream(lastEventId)) throw new errors.TooManyStreams(downstreamLimits.streamsPerSession)
    session.listen(new EventStream(raw, { 'mcp-session-id': session.sessionId }), lastEventId)
  }

  /** A DELETE: the client ends its session. */
  delete ({ view, headers, raw }: Inbound): void {
    const id = single(headers['mcp-session-id'])
    if (id === undefined) throw new errors.SessionRequired()
    const session = this.#sessions.find(view, id)
    if (!session) throw new errors.SessionUnknown()
    this.#sessions.end(session, 'the client ended its session')
    raw.writeHead(200, { 'content-length': 0 }).end()
  }

  async close (timeout: number): Promise<void> {
    for (const session of this.#sessions) session.closeChannels()
    await this.#requests.drain(timeout)
    for (const session of this.#sessions) for (const exchange of session.exchanges.values()) exchange.fail(shutDown())
    this.#sessions.close()
  }

  revoke (stands: (view: View) => boolean): void {
    for (const session of [...this.#sessions]) {
      if (!stands(session.view)) this.#sessions.end(session, 'access was withdrawn')
    }
  }

  async #initialize ({ view, raw }: Inbound, request: Request, accepted: Accepted, place: Place): Promise<void> {
    try {
      const { session, result } = await initialize(this.#gateway, this.#sessions, view, request, place)
      answer(raw, accepted, resultText(request.idText, result), { 'mcp-session-id': session.sessionId })
    } catch (error) {
      answer(raw, accepted, errorText(request.idText, this.#requests.toAnswer(error).toText()))
    }
  }

  #run (session: Session, message: Received, inbound: Inbound, accepted: Accepted): void {
    const batch = Array.isArray(message)
    const { raw } = inbound
    const isAnswered = this.#requests.receive(session, batch ? message : [message], inbound, (expected, onGone) =>
      new HttpReply(
        raw, { accepted, expected, batch, polls: session.polls, newStream: () => session.streams.open(), onGone }
      ))
    if (!isAnswered) raw.writeHead(202, { 'content-length': 0 }).end()
  }

  /** The session that a request names. @throws SessionRequired, SessionUnknown, UnsupportedVersion, ShareError */
  #session ({ view, headers, address }: Inbound): Session {
    const version = versionOf(headers)
    const id = single(headers['mcp-session-id'])
    if (id === undefined) throw new errors.SessionRequired()
    const session = this.#sessions.find(view, id)
    if (session) return session
    const mayRebuild = this.#snapshot().system.enableSessionRebuild === true && !this.#requests.isClosing
    const rebuilt = mayRebuild ? this.#sessions.rebuild(view, id, version, address) : undefined
    if (!rebuilt) throw new errors.SessionUnknown()
    this.#gateway.join(rebuilt, rebuilt)
    return rebuilt
  }
}

/**
 * The revision that a request names; without the header 2025-03-26 (MCP, "Protocol Version Header").
 * @throws UnsupportedVersion
 */
function versionOf (headers: IncomingHttpHeaders): LegacyVersion {
  const version = single(headers['mcp-protocol-version'])
  if (version === undefined) return '2025-03-26'
  if (!isLegacyVersion(version)) throw new errors.UnsupportedVersion(version.slice(0, 40), supportedVersions.join(', '))
  return version
}

/** Sends one answer as the content type that the client prefers. */
function answer (raw: ServerResponse, accepted: Accepted, text: string, headers: Record<string, string> = {}): void {
  if (!accepted.eventsFirst) { writeJson(raw, [text], 200, headers); return }
  const stream = new EventStream(raw, headers)
  stream.write(eventText(text))
  stream.end()
}
