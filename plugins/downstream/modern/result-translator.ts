import { rpcCode, RpcError, toRefusedToolResult } from '../../../protocol/errors.ts'
import { isObject, memberOf, withMembers, parseSmallMember } from '../../../protocol/json.ts'
import { declaresList } from '../../../protocol/lists.ts'
import { chargedOwnerOf } from '../../settings/index.ts'
import { serverFingerprint, type Gateway, type MethodResult } from '../../gateway/index.ts'
import { toModernResult, toModernList, mergedCaching, resultHead } from './result.ts'
import type { ModernExchange } from './exchange.ts'
import { errorOutcome, type RequestOutcome } from './errors.ts'
import type { ModernRequest } from './request.ts'
import type { RequestStateSealer } from './state.ts'
import { downstreamLimits } from '../limits.ts'

/** The methods, besides those of lists, whose results state how long they may be cached. */
const cacheableMethods: ReadonlySet<string> = new Set(['resources/read', 'skills/get'])

/** Translates results of the gateway to modern answers, and resumed requests to requests for the gateway. */
export interface ResultTranslator {
  /** Returns the answer for a result of the gateway. The `requestState` of a server is sealed. */
  toOutcome: (exchange: ModernExchange, result: MethodResult) => RequestOutcome | Promise<RequestOutcome>
  /**
   * Returns the answer for an error: a tool result with an error for a refused call, a question to the client if the
   * error can be translated to one, otherwise the error.
   */
  toFailure: (error: RpcError, exchange: ModernExchange) => RequestOutcome
  /** Replaces the sealed state in a request by the state that the server issued. */
  withState: (request: ModernRequest, state: string) => ModernRequest
  /** Removes the state and the input responses from a request. */
  withoutState: (request: ModernRequest) => ModernRequest
}

/**
 * Returns a fingerprint of the server that a request goes to. The name of the server is not sufficient: when a client
 * returns a state, another server may have that name.
 * @throws the errors of `providerOf`
 */
export async function targetServerFingerprint (
  gateway: Pick<Gateway, 'providerOf' | 'sections'>, exchange: ModernExchange
): Promise<string> {
  const provider = await gateway.providerOf(exchange)
  const section = gateway.sections(exchange.view, exchange.client).find(({ server }) => server.name === provider)
  return serverFingerprint(provider, section?.server.config)
}

const resultOutcome = (text: string | Buffer): RequestOutcome => ({ kind: 'result', text, status: 200 })

/** Creates the translator. @param states seals the states that are sent to clients */
export function createResultTranslator (gateway: Gateway, states: RequestStateSealer): ResultTranslator {
  const stateExpiry = (): number => Date.now() + downstreamLimits.parked.time

  /** Forwards a server's `input_required` result. Its state is sealed together with the server's fingerprint. */
  const forwardQuestion = async (text: string, exchange: ModernExchange): Promise<RequestOutcome> => {
    const state: unknown = JSON.parse(memberOf(text, 'requestState') ?? 'null')
    const own = toModernResult(text, exchange.serverInfo)
    if (typeof state !== 'string') return resultOutcome(own)
    const server = await targetServerFingerprint(gateway, exchange)
    const { requestState: before } = exchange.params
    const after = typeof before === 'string' ? { after: states.idOf(before) } : {}
    const sealed = states.seal({ kind: 'server', server, state, ...after }, exchange, stateExpiry())
    return resultOutcome(withMembers(own, { requestState: JSON.stringify(sealed) }))
  }

  return {
    withoutState: (request) => ({
      ...request, paramsText: withMembers(request.paramsText, { inputResponses: undefined, requestState: undefined })
    }),
    toOutcome: (exchange, answer) => {
      const { method, serverInfo, view } = exchange
      const isAnonymous = view.principal.kind === 'anonymous'
      if (typeof answer === 'string') {
        if (exchange.isInputRequired) return forwardQuestion(answer, exchange)
        return resultOutcome(toModernResult(answer, serverInfo, cacheableMethods.has(method), isAnonymous))
      }
      const { kind } = answer
      // Servers without this kind of list do not affect the caching of the merged list.
      const sections = gateway.sections(view, exchange.client)
        .filter(({ catalogue }) => catalogue === undefined || declaresList(catalogue.capabilities, kind))
      const caching =
        mergedCaching(sections.map(({ provider }) => provider?.caching?.(exchange.client, kind)), isAnonymous)
      const owner = chargedOwnerOf(view.principal, exchange.address)
      return toModernList(answer, serverInfo, caching).bytes(owner).then(resultOutcome)
    },
    toFailure: (error, exchange) => {
      const toolError = toRefusedToolResult(exchange.method, error)
      if (toolError !== undefined) return resultOutcome(toModernResult(toolError, exchange.serverInfo))
      const question = elicitationOf(error, exchange, () => states.seal({ kind: 'again' }, exchange, stateExpiry()))
      return question === undefined ? errorOutcome(error, exchange.client.capabilities) : resultOutcome(question)
    },
    withState: (request, state) =>
      ({ ...request, paramsText: withMembers(request.paramsText, { requestState: JSON.stringify(state) }) })
  }
}

/** Checks that the user accepted every elicitation. @throws RpcError otherwise */
export function requireElicitationsAccepted (answersText: string): void {
  const answers = Object.values(JSON.parse(answersText) as Record<string, unknown>)
  const isAccepted = answers.length > 0 && answers.every((each) => isObject(each) && each.action === 'accept')
  if (!isAccepted) throw new RpcError(rpcCode.invalidRequest, 'The request requires the input that was declined')
}

/**
 * Translates error -32042 of legacy servers, which requires the user to open URLs before a retry, to `input_required`.
 * @param seal seals the state for the retry
 * @returns the text of the result; undefined if the client cannot open URLs, or the error contains no URLs
 */
function elicitationOf (error: RpcError, exchange: ModernExchange, seal: () => string): string | undefined {
  const { elicitation } = exchange.client.capabilities
  if (error.code !== rpcCode.urlElicitationRequired || !exchange.canSuspend) return undefined
  if (!isObject(elicitation) || elicitation.url === undefined) return undefined
  const elicitations = parseSmallMember(memberOf(error.toText(), 'data') ?? '{}', 'elicitations')
  if (!Array.isArray(elicitations)) return undefined
  const requests = elicitations.flatMap((each: unknown, at) => {
    if (!isObject(each) || typeof each.url !== 'string') return []
    const params = {
      mode: 'url', message: typeof each.message === 'string' ? each.message : error.message, url: each.url
    }
    return [[`elicitation-${at + 1}`, { method: 'elicitation/create', params }]]
  })
  if (requests.length === 0) return undefined
  const inputRequests = JSON.stringify(Object.fromEntries(requests))
  const head = resultHead('input_required', exchange.serverInfo)
  return `${head},"inputRequests":${inputRequests},"requestState":${JSON.stringify(seal())}}`
}
