import { Call, type Deadlines } from '../../../protocol/call.ts'
import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client, Exchange, Question } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import type { ClientCapabilities, ServerCapabilities } from '../../../protocol/capabilities.ts'
import { isLegacyVersion, latestLegacy } from '../../../protocol/legacy/versions.ts'
import type { Level } from '../../../protocol/listener.ts'
import { toRpcError, type Notification, type Request, type Response } from '../../../protocol/message.ts'
import { Peer } from '../../../protocol/peer.ts'
import { Table } from '../../../protocol/table.ts'
import type { Transport } from '../../../protocol/transports/transport.ts'
import type { Catalogue } from '../catalogues/catalogue.ts'
import { instance, instanceKey } from '../../../protocol/instance.ts'
import type { LinkKey } from './link-key.ts'
import type { Passed } from './passthrough.ts'
import { readCatalogue } from '../catalogues/read-catalogue.ts'

/** The call on whose stream something came; `over`: it, or a request of our own, is answered already; undefined: it came on no such stream. */
export type Origin = Call | 'over' | undefined

export interface LinkHandlers {
  /** The upstream asks something. `origin`: the call on whose stream it came. @throws RpcError to answer it with an error */
  question: (link: Link, question: Question, origin: Origin) => Promise<Response>
  /** The upstream tells something that belongs to no request of ours, or to a call's stream. */
  news: (link: Link, notification: Notification, origin: Origin) => void
  /** A call has its answer. Told before what comes after it. */
  answered: (link: Link, call: Call, response: Response) => void
  closed: (link: Link, error: UpstreamError) => void
  warn: (sentence: string) => void
}

export interface LinkOptions {
  key: LinkKey
  /** The session that the link is for, when it is for one. */
  owner: Client | undefined
  capabilities: ClientCapabilities
  clientInfo: { name: string, version: string }
  /** For `initialize` and for lists, in ms. */
  initTimeout: number
}

/** How long dialling may count as that, in ms. */
const dialTime = 1_000

/** One connection to an upstream: initialize, the calls open on it, and the questions that come back. It never reconnects itself. */
export class Link {
  readonly key: LinkKey
  readonly owner: Client | undefined
  readonly calls = new Table<number, Call>()
  serverInfo = '{}'
  capabilities: ServerCapabilities = {}
  instructions: string | undefined
  version: string = latestLegacy
  lastUsed = Date.now()
  /** From which level on it was asked for log messages; undefined: it decides. */
  level: Level | undefined
  readonly #transport: Transport
  readonly #peer: Peer
  readonly #options: LinkOptions
  readonly #handlers: LinkHandlers
  readonly #questions = new Map<unknown, AbortController>()
  #closed = false
  #retiring = false

  constructor (transport: Transport, options: LinkOptions, handlers: LinkHandlers) {
    this.#transport = transport
    this.#options = options
    this.#handlers = handlers
    this.key = options.key
    this.owner = options.owner
    this.#peer = new Peer(transport, {
      request: (request, origin) => { void this.#question(request, origin) },
      notification: (notification, origin) => { this.#news(notification, origin) },
      closed: (error) => { this.#lost(error) }
    })
  }

  get closed (): boolean { return this.#closed }

  /** Connects; `dialled` is told when the process is spawned or the socket asked for. @throws UpstreamError */
  async open (dialled: () => void): Promise<void> {
    try {
      await this.#start(dialled)
      const { capabilities, clientInfo } = this.#options
      const result = await this.request(
        'initialize',
        JSON.stringify({ protocolVersion: latestLegacy, capabilities, clientInfo, _meta: { [instanceKey]: instance } })
      )
      const value: unknown = JSON.parse(result)
      if (!isObject(value) || !isLegacyVersion(value.protocolVersion)) {
        throw new UpstreamError(
          'refused',
          `${isObject(value) && value.protocolVersion !== undefined ? `the server speaks MCP ${JSON.stringify(value.protocolVersion)}, which Tool-Hub does not` : 'the server did not answer initialize as MCP has it: there is no protocolVersion in its result'}`
        )
      }
      this.version = value.protocolVersion
      this.capabilities = isObject(value.capabilities) ? value.capabilities : {}
      this.serverInfo = memberOf(result, 'serverInfo') ?? '{}'
      this.instructions = typeof value.instructions === 'string' ? value.instructions : undefined
      this.#peer.notify('notifications/initialized')
      await this.#transport.agreed(this.version)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async #start (dialled: () => void): Promise<void> {
    const { initTimeout } = this.#options
    let timer: NodeJS.Timeout | undefined
    // Who has not connected by now is waiting for an answer, and need not keep others from dialling.
    const dialling = setTimeout(dialled, dialTime)
    try {
      await Promise.race([this.#peer.start(), new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => {
          reject(new UpstreamError('timeout', `it did not connect within ${initTimeout / 1_000} s`))
        }, initTimeout)
      })])
    } finally {
      clearTimeout(timer)
      clearTimeout(dialling)
      dialled()
    }
  }

  /**
   * One request of a client. The answer may be an error; rejects with UpstreamError when none comes.
   * @param passed headers of the client that go with it; undefined: the server is passed none on
   */
  call (exchange: Exchange, params: (token: number) => string, deadlines: Deadlines, passed?: Passed): Promise<Response> {
    const call = new Call(this.#peer, exchange, params, deadlines, this.#over, passed)
    if (!call.over) this.calls.set(call.id, call)
    return call.answer
  }

  readonly #over = (call: Call, response: Response | undefined): void => {
    this.calls.take(call.id)
    this.lastUsed = Date.now()
    if (response) this.#handlers.answered(this, call, response)
    if (this.#retiring && this.calls.size === 0) void this.close()
  }

  /** One request of our own; the text of its result. @throws RpcError the upstream's error, UpstreamError when no answer comes */
  async request (method: string, paramsText = '{}', timeout = this.#options.initTimeout): Promise<string> {
    const id = this.#peer.nextId
    const timer = setTimeout(() => {
      this.#peer.abandon(id, new UpstreamError('timeout', `no answer to ${method} within ${timeout / 1_000} s`))
    }, timeout)
    try {
      const { resultText, errorText } = await this.#peer.request(method, paramsText)
      if (errorText !== undefined) throw toRpcError(errorText)
      return resultText ?? '{}'
    } finally {
      clearTimeout(timer)
    }
  }

  /** Asks for log messages from a level on, where it has any and that is news to it. @throws as `request` */
  async setLevel (level: Level): Promise<void> {
    const before = this.level
    if (level === before || !isObject(this.capabilities.logging)) return
    this.level = level
    try {
      await this.request('logging/setLevel', JSON.stringify({ level }))
    } catch (error) {
      if (this.level === level) this.level = before
      throw error
    }
  }

  notify (method: string, paramsText?: string): void {
    this.#peer.notify(method, paramsText)
  }

  /** What the upstream lists to this link, as `readCatalogue` has it. @throws UpstreamError when none of its lists can be had */
  async catalogue (before?: Catalogue, patience = this.#options.initTimeout): Promise<{ catalogue: Catalogue, whole: boolean }> {
    return await readCatalogue(this, before, patience, this.#handlers.warn)
  }

  /** Takes no more calls; closes when those that are open have their answers, each of which says for itself whether it ran. */
  retire (): void {
    if (this.#closed || this.#retiring) return
    this.#retiring = true
    if (this.calls.size === 0) void this.close()
  }

  async close (): Promise<void> {
    this.#closed = true
    this.#peer.closed(new UpstreamError('broken', 'its connection was closed'))
    await this.#transport.close()
  }

  #lost (error: UpstreamError): void {
    for (const controller of this.#questions.values()) controller.abort('the upstream is gone')
    this.#questions.clear()
    if (this.#closed) return
    this.#closed = true
    this.#handlers.closed(this, error)
    void this.#transport.close()
  }

  async #question (request: Request, origin: number | undefined): Promise<void> {
    if (request.method === 'ping') { this.#peer.answer(request.idText, { kind: 'response', id: request.id, resultText: '{}' }); return }
    const controller = new AbortController()
    this.#questions.set(request.id, controller)
    const token = isObject(request.params._meta) ? memberOf(memberOf(request.paramsText, '_meta') ?? '{}', 'progressToken') : undefined
    const question: Question = {
      method: request.method,
      params: request.params,
      paramsText: request.paramsText,
      signal: controller.signal,
      outlives: origin === undefined && this.owner !== undefined,
      progress: (paramsText) => {
        if (token !== undefined) this.#peer.notify('notifications/progress', withMembers(paramsText, { progressToken: token }))
      }
    }
    try {
      const answer = await this.#handlers.question(this, question, this.#callOf(origin))
      if (!controller.signal.aborted) this.#peer.answer(request.idText, answer)
    } catch (error) {
      const failure = error instanceof RpcError ? error : new RpcError(code.internal, 'The question could not be answered')
      if (!controller.signal.aborted) this.#peer.answer(request.idText, { kind: 'response', id: request.id, errorText: failure.toText() })
    } finally {
      this.#questions.delete(request.id)
    }
  }

  #news (notification: Notification, origin: number | undefined): void {
    const { method, params, paramsText } = notification
    const call = method === 'notifications/progress' ? this.calls.get(Number(params.progressToken)) : undefined
    if (call) {
      call.progressed()
      const token = memberOf(memberOf(call.exchange.paramsText, '_meta') ?? '{}', 'progressToken')
      if (token !== undefined) call.exchange.notify(method, withMembers(paramsText, { progressToken: token }))
    } else if (method === 'notifications/cancelled') {
      const controller = this.#questions.get(params.requestId)
      controller?.abort(typeof params.reason === 'string' ? params.reason : 'the upstream withdrew the question')
    } else this.#handlers.news(this, notification, this.#callOf(origin))
  }

  #callOf (origin: number | undefined): Origin {
    if (origin === undefined) return undefined
    // On a session's own link there is nobody else whom it could be for.
    return this.calls.get(origin) ?? (this.owner === undefined ? 'over' : undefined)
  }
}
