import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import { code, RpcError } from '../../protocol/errors.ts'
import { eventText } from '../../protocol/event-stream.ts'
import { isObject } from '../../protocol/json.ts'
import { allowsBatch, isLegacyVersion, legacyVersions, negotiate, type LegacyVersion } from '../../protocol/legacy/versions.ts'
import { errorText, parseMessage, resultText, type Malformed, type Message, type Request } from '../../protocol/message.ts'
import { kinds, listKinds, type ListKind } from '../upstream/catalogues/catalogue.ts'
import { instance, instanceKey } from '../../protocol/instance.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { headerOf } from '../auth/steps/bearer-key.ts'
import { errors } from '../errors/list.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { List } from '../gateway/list.ts'
import type { Principal, View } from '../access/view.ts'
import { limits } from '../limits/index.ts'
import { acceptedBy, type Accepted } from './accept.ts'
import { EventStream } from './event-stream.ts'
import { HttpExchange } from './exchange.ts'
import { HttpReply, writeJson } from './http-reply.ts'
import type { Session } from './legacy/session.ts'
import { Sessions } from './legacy/sessions.ts'

/** One HTTP request at an MCP endpoint, admitted and with its body read. */
export interface Inbound { view: View, headers: IncomingHttpHeaders, raw: ServerResponse }

const single = (value: string | string[] | undefined): string | undefined => Array.isArray(value) ? value[0] : value

/** Serves MCP over streamable HTTP to legacy clients (specification: Transports, "Streamable HTTP", the server's side). */
export class Downstream {
  readonly sessions = new Sessions()
  readonly #gateway: Gateway
  readonly #upstreams: Upstreams
  readonly #snapshot: () => Snapshot
  readonly #logError: (error: unknown, sentence: string) => void
  #telling: NodeJS.Timeout | undefined
  #inFlight = 0
  #drained: (() => void) | undefined
  #closing = false

  constructor (gateway: Gateway, upstreams: Upstreams, snapshot: () => Snapshot, logError: (error: unknown, sentence: string) => void) {
    this.#gateway = gateway
    this.#upstreams = upstreams
    this.#snapshot = snapshot
    this.#logError = logError
    this.sessions.on('ended', (session) => {
      gateway.listeners.delete(session)
      upstreams.release(session).catch((error: unknown) => {
        logError(error, "a session's links could not be released")
      })
    })
    upstreams.on('changed', () => {
      this.#telling ??= setTimeout(() => {
        this.#telling = undefined
        void this.#tellChanges()
      }, 50).unref()
    })
  }

  /** A POST: requests, notifications and answers of a client. @throws what the error dialect of the `mcp` scope answers */
  post ({ view, headers, raw }: Inbound, text: string): void {
    const accepted = acceptedBy(headers.accept)
    if (!accepted.json && !accepted.events) throw new errors.NotAcceptable('application/json or text/event-stream')
    const message = parseMessage(text, limits.requestDepth, limits.batch)
    if (!Array.isArray(message) && message.kind === 'request' && message.method === 'initialize') {
      if (this.sessions.full || this.#closing) throw new errors.Busy()
      void this.#initialize(view, message, raw, accepted)
      return
    }
    const session = this.#session(view, headers)
    if (Array.isArray(message)) {
      if (!allowsBatch(session.version)) {
        throw new RpcError(code.invalidRequest, `Invalid request: batches are not part of MCP ${session.version}`)
      }
      if (message.some((each) => each.kind === 'request' && each.method === 'initialize')) {
        throw new RpcError(code.invalidRequest, 'Invalid request: initialize must stand alone')
      }
      if (message.every((each) => each.kind === 'malformed')) {
        writeJson(raw, [`[${message.map(toAnswer).join()}]`], 400)
        return
      }
      this.#run(session, view, message, headers, raw, accepted, true)
    } else this.#run(session, view, [message], headers, raw, accepted, false)
  }

  /** A GET: a stream for news, or one that broke and is taken up again. */
  get ({ view, headers, raw }: Inbound): void {
    if (!acceptedBy(headers.accept).events) throw new errors.NotAcceptable('text/event-stream')
    const session = this.#session(view, headers)
    const lastEventId = single(headers['last-event-id'])
    if (!session.takesStream(lastEventId)) throw new errors.TooManyStreams(limits.streamsPerSession)
    session.listen(new EventStream(raw, { 'mcp-session-id': session.sessionId }), lastEventId)
  }

  /** A DELETE: the client is done with its session. */
  delete ({ view, headers, raw }: Inbound): void {
    const id = single(headers['mcp-session-id'])
    if (id === undefined) throw new errors.SessionRequired()
    const session = this.sessions.find(view, id)
    if (!session) throw new errors.SessionUnknown()
    this.sessions.end(session, 'the client ended its session')
    raw.writeHead(200, { 'content-length': 0 }).end()
  }

  /** Takes nothing new, waits for what is in flight (`timeout` in ms), fails the rest, and ends all streams. */
  async close (timeout: number): Promise<void> {
    this.#closing = true
    for (const session of this.sessions) session.closeStreams()
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
        setTimeout(resolve, timeout).unref()
      })
    }
    for (const session of this.sessions) {
      for (const exchange of session.exchanges.values()) {
        exchange.fail(new RpcError(code.unavailable, 'The gateway is shutting down; the request may have run'))
      }
    }
    clearTimeout(this.#telling)
    this.sessions.close()
  }

  /** Ends the sessions of those who have no access any more. @param stands says it of a session's view */
  revoke (stands: (view: View) => boolean): void {
    for (const session of [...this.sessions]) if (!stands(session.view)) this.sessions.end(session, 'access was withdrawn')
  }

  async #initialize (view: View, request: Request, raw: ServerResponse, accepted: Accepted): Promise<void> {
    const { protocolVersion, capabilities } = request.params
    if (typeof protocolVersion !== 'string') {
      this.#answer(
        raw,
        accepted,
        `{"jsonrpc":"2.0","id":${request.idText},"error":${new RpcError(code.invalidParams, 'Invalid params: "protocolVersion" must be a string').toText()}}`
      )
      return
    }
    if (isObject(request.params._meta) && request.params._meta[instanceKey] === instance) {
      this.#answer(
        raw,
        accepted,
        `{"jsonrpc":"2.0","id":${request.idText},"error":${new RpcError(code.invalidRequest, "This address is the gateway's own: a server cannot be the gateway that it is configured in").toText()}}`
      )
      return
    }
    const version = negotiate(protocolVersion)
    const session = this.sessions.begin(view, version, isObject(capabilities) ? capabilities : {})
    try {
      const { capabilities: shown, serverInfo, instructions } = await this.#gateway.describe(view, session)
      this.#welcome(session)
      const result = `{"protocolVersion":${JSON.stringify(version)},"capabilities":${JSON.stringify(shown)},"serverInfo":${serverInfo}${instructions === undefined ? '' : `,"instructions":${JSON.stringify(instructions)}`}}`
      this.#answer(raw, accepted, resultText(request.idText, result), { 'mcp-session-id': session.sessionId })
    } catch (error) {
      this.sessions.end(session, 'the session could not begin')
      this.#answer(raw, accepted, `{"jsonrpc":"2.0","id":${request.idText},"error":${this.#toRpcError(error).toText()}}`)
    }
  }

  #answer (raw: ServerResponse, accepted: Accepted, text: string, headers: Record<string, string> = {}): void {
    if (!accepted.eventsFirst) {
      writeJson(raw, [text], 200, headers)
      return
    }
    const stream = new EventStream(raw, headers)
    stream.write(eventText(text))
    stream.end()
  }

  /** The session that a request names. @throws SessionRequired, SessionUnknown, UnsupportedVersion */
  #session (view: View, headers: IncomingHttpHeaders): Session {
    const version = this.#version(headers)
    const id = single(headers['mcp-session-id'])
    if (id === undefined) throw new errors.SessionRequired()
    const session = this.sessions.find(view, id)
    if (session) return session
    const rebuilt =
      this.#snapshot().system.enableSessionRebuild === true && !this.#closing ? this.sessions.rebuild(view, id, version) : undefined
    if (!rebuilt) throw new errors.SessionUnknown()
    this.#welcome(rebuilt)
    return rebuilt
  }

  /** From now on it is told of what changes, whether it has listed already or not (yet in this life). */
  #welcome (session: Session): void {
    this.#gateway.listeners.add(session)
    const { parts } = this.#gateway.surface(session.view, session)
    for (const kind of kinds) session.seen.set(listKinds[kind].method, parts[kind].list)
  }

  /** The revision that a request names; none: 2025-03-26 (specification, "Protocol Version Header"). */
  #version (headers: IncomingHttpHeaders): LegacyVersion {
    const version = single(headers['mcp-protocol-version'])
    if (version === undefined) return '2025-03-26'
    if (!isLegacyVersion(version)) throw new errors.UnsupportedVersion(version.slice(0, 40), legacyVersions.join(', '))
    return version
  }

  #run (
    session: Session,
    { principal }: View,
    messages: Array<Message | Malformed>,
    headers: IncomingHttpHeaders,
    raw: ServerResponse,
    accepted: Accepted,
    batch: boolean
  ): void {
    const requests: Request[] = []
    const malformed: Malformed[] = []
    for (const message of messages) {
      if (message.kind === 'request') requests.push(message)
      else if (message.kind === 'malformed') malformed.push(message)
      else if (message.kind === 'response') session.answer(message)
      else if (!session.hear(message)) this.#gateway.notify(session.view, session, message.method, message.paramsText)
    }
    if (requests.length > 0 && this.#closing) throw new errors.Draining()
    if (requests.length + malformed.length === 0) {
      raw.writeHead(202, { 'content-length': 0 }).end()
      return
    }
    const started: HttpExchange[] = []
    const credential = credentialOf(principal, this.#snapshot())
    const reply = new HttpReply(raw, session, accepted, requests.length + malformed.length, batch, () => {
      for (const exchange of started) exchange.cancel('the client went away')
    })
    for (const each of malformed) reply.final([toAnswer(each)])
    for (const request of requests) {
      const exchange = new HttpExchange(session, request, headers, credential, reply)
      started.push(exchange)
      void this.#exchange(session, request, exchange)
    }
  }

  async #exchange (session: Session, request: Request, exchange: HttpExchange): Promise<void> {
    if (session.exchanges.has(request.id)) {
      exchange.fail(
        new RpcError(code.invalidRequest, `Invalid request: a request with id ${JSON.stringify(request.id)} is in flight already`)
      )
      return
    }
    if (session.exchanges.size >= limits.requestsPerSession) {
      exchange.fail(new RpcError(code.badRequest, `More than ${limits.requestsPerSession} requests of one session are in flight`))
      return
    }
    session.exchanges.set(request.id, exchange)
    this.#inFlight++
    try {
      const result = await this.#gateway.handle(exchange)
      if (typeof result !== 'string') session.seen.set(request.method, result)
      exchange.succeed(typeof result === 'string' ? result : await result.bytes())
    } catch (error) {
      exchange.fail(this.#toRpcError(error))
    } finally {
      session.exchanges.take(request.id)
      session.lastUsed = Date.now()
      if (--this.#inFlight === 0) this.#drained?.()
    }
  }

  #toRpcError (error: unknown): RpcError {
    if (error instanceof RpcError) return error
    this.#logError(error, 'a request failed in a way that it should not')
    return new RpcError(code.internal, 'Internal error')
  }

  /** Tells each session of the lists that it has seen and that now look different. */
  async #tellChanges (): Promise<void> {
    let told = 0
    for (const session of [...this.sessions]) {
      if (session.ended || session.seen.size === 0) continue
      const { parts } = this.#gateway.surface(session.view, session)
      const changed = new Set<string>()
      for (const kind of kinds) if (isNews(session, kind, parts[kind].list)) changed.add(listKinds[kind].capability)
      for (const list of changed) session.deliver(`notifications/${list}/list_changed`)
      // Thousands of sessions must not hold up a call.
      if (++told % 100 === 0) {
        await new Promise((resolve) => {
          setImmediate(resolve)
        })
      }
    }
  }
}

const toAnswer = ({ idText, error }: Malformed): string => errorText(idText, error.toText())

/** The header that told who is asking, in lower case: bearer keys have one of their own, other tokens come in the standard one. */
function credentialOf ({ kind }: Principal, snapshot: Snapshot): string | undefined {
  if (kind === 'anonymous') return undefined
  return kind === 'system-key' || kind === 'user-key' ? headerOf(snapshot) : 'authorization'
}

/** True, once, when a list that a session has seen is another one now. */
function isNews (session: Session, kind: ListKind, list: List): boolean {
  const { method } = listKinds[kind]
  const seen = session.seen.get(method)
  if (seen === undefined || seen === list) return false
  session.seen.set(method, list)
  return !seen.equals(list)
}
