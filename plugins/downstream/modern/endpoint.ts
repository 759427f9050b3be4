import type { UsedRequestStates } from '../../../db/ports/login-states.ts'
import type { Snapshot } from '../../../db/store.ts'
import { modernRouteCapabilities } from '../../../protocol/capabilities.ts'
import { DerivedExchange } from '../../../protocol/exchange.ts'
import { supportedVersions } from '../../../protocol/era.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { instanceId, instanceMetaKey, selfReferenceMessage } from '../../../protocol/instance.ts'
import { streamMethod } from '../../../protocol/events.ts'
import { isObject } from '../../../protocol/json.ts'
import { listKinds } from '../../../protocol/lists.ts'
import { errorResponseText, resultResponseText, type Request } from '../../../protocol/message.ts'
import { mayRequireInput } from '../../../protocol/modern/envelope.ts'
import type { View } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import type { Sealer } from '../../base/secrets/index.ts'
import type { Gateway, Surface } from '../../gateway/index.ts'
import type { AcceptedTypes } from '../accept.ts'
import {
  credentialHeaderName, InFlightTable, shuttingDownError, toRpcErrorAndLog, type Endpoint, type InboundRequest,
  type LogError, type HttpRequestContext
} from '../endpoint.ts'
import { HttpReply, writeJson, ModernReplyStream } from '../http-reply.ts'
import type { ReceivedMessage } from '../read-message.ts'
import {
  createResultTranslator, requireElicitationsAccepted, targetServerFingerprint, type ResultTranslator
} from './result-translator.ts'
import { errorOutcome, httpStatusOf, isUnknownItemError } from './errors.ts'
import { ModernExchange } from './exchange.ts'
import { ModernClientPool } from './leases.ts'
import { ClientSubscriptions } from './subscriptions.ts'
import { relayNotification } from './notification.ts'
import { checkParamHeaders } from './param-headers.ts'
import { ParkedCalls } from './parked-calls.ts'
import { inputResponsesOf, type ParkedCall } from './parked-call.ts'
import { requireModernMethod, parseModernRequest, type ModernRequest } from './request.ts'
import { discoverResult } from './result.ts'
import { callNotHereError, RequestStateSealer, type ResumedState } from './state.ts'
import { checkTaskRequest } from './tasks.ts'

const listMethods: ReadonlySet<string> = new Set(Object.values(listKinds).map(({ method }) => method))

interface ModernEndpointDeps {
  gateway: Gateway
  snapshot: () => Snapshot
  logError: LogError
  /** Seals `requestState` so that all replicas can open it; undefined if only this process needs to open it. */
  sealer: Sealer | undefined
  usedStates: UsedRequestStates
  /** Whether a header value contains a credential for this gateway. Such a value must not be forwarded. */
  isOwnCredential: (value: string) => boolean
}

/** The server side of streamable HTTP for modern clients (MCP 2026-07-28), which have no sessions. */
export class ModernEndpoint implements Endpoint {
  readonly leases: ModernClientPool
  readonly parked: ParkedCalls<ModernExchange>
  readonly subscriptions: ClientSubscriptions
  readonly #deps: ModernEndpointDeps
  readonly #translator: ResultTranslator
  /** The open exchanges, including those that wait for a client to answer a question. */
  readonly #exchanges = new InFlightTable<ModernExchange>()

  constructor (deps: ModernEndpointDeps) {
    const { gateway, logError, sealer, usedStates } = deps
    this.#deps = deps
    const states = new RequestStateSealer(usedStates, sealer)
    this.#translator = createResultTranslator(gateway, states)
    this.parked = new ParkedCalls(states)
    this.leases = new ModernClientPool({
      onBegin: (client) => { gateway.addListener(client, client) },
      onEnd: (client) => {
        gateway.removeClient(client).catch((error: unknown) => {
          logError(error, 'the links of a client could not be released')
        })
      }
    })
    this.subscriptions = new ClientSubscriptions(gateway, this.leases, logError)
  }

  /** Handles a POST with one message. @throws RpcError, and errors that the error handler of the MCP routes sends */
  receive (inbound: InboundRequest, accepted: AcceptedTypes, message: ReceivedMessage): void {
    const { raw, headers } = inbound
    if (Array.isArray(message)) {
      throw new RpcError(rpcCode.invalidRequest, 'Invalid request: batches are not part of MCP 2026-07-28')
    }
    if (message.kind === 'response') {
      throw new RpcError(rpcCode.invalidRequest, 'Invalid request: a response is not sent by a POST')
    }
    if (message.kind === 'notification') {
      relayNotification(this.#deps.gateway, this.leases, inbound, message)
      raw.writeHead(202, { 'content-length': 0 }).end()
      return
    }
    if (this.#exchanges.isClosing) throw new errors.Draining()
    this.#answerErrors(inbound, message, 400, () => {
      const request = parseModernRequest(message, headers)
      this.#answerErrors(inbound, message, 200, () => { this.#begin(inbound, accepted, request) })
    })
  }

  async close (timeout: number): Promise<void> {
    for (const exchange of this.#exchanges.values()) exchange.endStream()
    const drained = this.#exchanges.drain(timeout)
    this.subscriptions.close()
    this.parked.endIdle(shuttingDownError())
    await drained
    for (const exchange of this.#exchanges.values()) exchange.end(shuttingDownError())
    this.leases.close()
  }

  revoke (hasAccess: (view: View) => boolean): void {
    this.leases.revoke(hasAccess)
    const error = new RpcError(rpcCode.unavailable, 'Access was withdrawn. The request may have run', 'cancelled')
    for (const exchange of this.#exchanges.values()) if (!hasAccess(exchange.view)) exchange.end(error)
    this.parked.revoke(hasAccess)
    this.subscriptions.revoke(hasAccess)
  }

  expire (id: string): void {
    this.subscriptions.expire(id)
    for (const exchange of this.#exchanges.values()) {
      if (exchange.view.principal.credential?.id === id) exchange.endStream()
    }
  }

  /**
   * Calls `work`, and answers with the RpcError that it throws.
   * @param status the HTTP status if neither the reason nor the code of the error determines one
   */
  #answerErrors ({ raw }: InboundRequest, { idText }: Request, status: number, work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      writeJson(raw, [errorResponseText(idText, error.toText())], httpStatusOf(error, status))
    }
  }

  #begin (inbound: InboundRequest, accepted: AcceptedTypes, request: ModernRequest): void {
    const { view, headers, address } = inbound
    const { method } = request
    const { snapshot } = this.#deps
    const origin = { headers, address, credentialHeader: credentialHeaderName(view.principal, snapshot()) }
    requireModernMethod(method)
    if (method.startsWith('tasks/')) checkTaskRequest(request)
    if (method === streamMethod && !accepted.events) throw new errors.NotAcceptable('text/event-stream')
    if (method === 'server/discover') { void this.#discover(inbound, request); return }
    if (method === 'subscriptions/listen') { this.#listen(inbound, accepted, request, origin); return }
    const resumed = mayRequireInput(method) && request.params.requestState !== undefined
    if (resumed) this.#resume(inbound, accepted, request, origin)
    else this.#run(inbound, accepted, request, origin)
  }

  #run (
    inbound: InboundRequest, accepted: AcceptedTypes, request: ModernRequest, origin: HttpRequestContext,
    resumed?: ResumedState
  ): void {
    const { gateway, isOwnCredential } = this.#deps
    const { view, address } = inbound
    const { capabilities, capabilitiesText, logLevel, method } = request
    const isList = listMethods.has(method)
    const client = isList
      ? this.leases.first(view, address, capabilities, capabilitiesText, logLevel)
      : this.leases.acquire(view, address, capabilities, capabilitiesText, logLevel)
    let surface: Surface
    try {
      surface = gateway.surface(view, client)
      if (method === 'tools/call') checkParamHeaders(gateway, view, surface, request, inbound.headers)
    } catch (error) {
      if (!isList) this.leases.giveBack(client)
      throw error
    }
    // `serverInfo` looks the surface up again only if `surface` does not contain the server's information yet.
    const serverInfo = (): string | undefined => gateway.serverInfo(view, client, surface)
    const exchange =
      new ModernExchange(request, { client, view, origin, parked: this.parked, serverInfo, isOwnCredential })
    if (!isList) client.exchange = exchange
    if (resumed) exchange.beginFromState(resumed.id, resumed.answersText)
    exchange.attach(request, this.#reply(inbound, accepted, exchange))
    void this.#handle(exchange, isList, resumed)
  }

  async #handle (exchange: ModernExchange, isList: boolean, resumed: ResumedState | undefined): Promise<void> {
    const { gateway, logError } = this.#deps
    const number = this.#exchanges.add(exchange)
    try {
      if (resumed) await this.#consumeState(exchange, resumed)
      const outcome = this.#translator.toOutcome(exchange, await gateway.handle(exchange))
      exchange.finish(outcome instanceof Promise ? await outcome : outcome)
    } catch (error) {
      exchange.finish(this.#translator.toFailure(toRpcErrorAndLog(error, logError), exchange))
    } finally {
      this.#exchanges.remove(number)
      if (!isList) this.leases.giveBack(exchange.client)
    }
  }

  /** Uses up the state of a resumed exchange. On failure, undoes `beginFromState`. @throws RpcError */
  async #consumeState (exchange: ModernExchange, { server, use }: ResumedState): Promise<void> {
    try {
      // Another server may now have the name of the server that issued the state.
      if (server !== undefined &&
        await targetServerFingerprint(this.#deps.gateway, exchange) !== server) throw callNotHereError()
      await use()
    } catch (error) {
      exchange.undoBegin()
      throw error
    }
  }

  #reply ({ raw }: InboundRequest, accepted: AcceptedTypes, exchange: ModernExchange): HttpReply {
    const reply: HttpReply = new HttpReply(raw, {
      accepted,
      expected: 1,
      isBatch: false,
      canPoll: false,
      newStream: () => new ModernReplyStream(),
      onGone: () => { exchange.onDisconnect(reply) }
    })
    return reply
  }

  /** Handles a request with the state of an earlier answer: resumes the parked call, or runs the request again. */
  #resume (inbound: InboundRequest, accepted: AcceptedTypes, request: ModernRequest, origin: HttpRequestContext): void {
    const { requestState } = request.params
    if (typeof requestState !== 'string') {
      throw new RpcError(rpcCode.invalidParams, 'Invalid params: "requestState" must be a string')
    }
    const { method, params, paramsText } = request
    const state = this.parked.states.open(requestState, { view: inbound.view, method, params, paramsText })
    const answersText = inputResponsesOf(request.paramsText)
    const id = state.kind === 'call' ? state.id : this.parked.states.idOf(requestState)
    const call = this.parked.find(id)
    const own = state.kind === 'server'
      ? this.#translator.withState(request, state.state)
      : this.#translator.withoutState(request)
    if (call) {
      const attach = (): void => { call.exchange.attach(own, this.#reply(inbound, accepted, call.exchange)) }
      void this.#resumeParked(
        inbound, own, call, () => { call.resume(state.kind === 'call' ? state.round : 0, answersText, attach) }
      )
      return
    }
    if (state.kind === 'call') throw callNotHereError()
    if (state.kind === 'again') requireElicitationsAccepted(answersText)
    const server = state.kind === 'server' ? state.server : undefined
    const use = async (): Promise<void> => { await this.parked.states.use(requestState, answersText) }
    this.#run(inbound, accepted, own, origin, { server, id, answersText, use })
  }

  /** Resumes a parked call, or fetches its answer. Ends the call if the caller's view no longer shows its item. */
  async #resumeParked (
    { view, raw }: InboundRequest, request: ModernRequest, call: ParkedCall<ModernExchange>, resume: () => void
  ): Promise<void> {
    const { params, paramsText, idText } = request
    try {
      const provider =
        await this.#deps.gateway.providerOf(new DerivedExchange(call.exchange, { view, params, paramsText }))
      call.provider ??= provider
      if (call.provider !== provider) throw callNotHereError()
      // If the client has disconnected in the meantime, it may repeat the request.
      if (!raw.destroyed) resume()
    } catch (error) {
      const known = toRpcErrorAndLog(error, this.#deps.logError)
      if (isUnknownItemError(known)) {
        call.exchange.end(known)
        call.forget()
      }
      const { text, status } = errorOutcome(known, call.exchange.client.capabilities)
      writeJson(raw, [errorResponseText(idText, String(text))], status)
    }
  }

  async #discover ({ view, address, raw }: InboundRequest, request: ModernRequest): Promise<void> {
    const { gateway, logError } = this.#deps
    const { capabilities: declared, capabilitiesText, logLevel, idText, params: { _meta: meta } } = request
    try {
      if (isObject(meta) &&
        meta[instanceMetaKey] === instanceId) throw new RpcError(rpcCode.invalidRequest, selfReferenceMessage)
      const client = this.leases.first(view, address, declared, capabilitiesText, logLevel)
      // Servers may be unavailable now. Later requests report that.
      const { capabilities, instructions, identityExtra } = await gateway.describe(view, client, true)
      const result = discoverResult({
        supportedVersions: JSON.stringify(supportedVersions),
        capabilities: JSON.stringify(modernRouteCapabilities(capabilities)),
        instructions: instructions === undefined ? undefined : JSON.stringify(instructions)
      }, gateway.serverInfo(view, client), identityExtra)
      writeJson(raw, [resultResponseText(idText, result)])
    } catch (error) {
      const known = toRpcErrorAndLog(error, logError)
      writeJson(raw, [errorResponseText(idText, known.toText())], httpStatusOf(known))
    }
  }

  #listen (inbound: InboundRequest, accepted: AcceptedTypes, request: ModernRequest, origin: HttpRequestContext): void {
    if (!accepted.events) throw new errors.NotAcceptable('text/event-stream')
    this.subscriptions.listen(inbound, request, origin)
  }
}
