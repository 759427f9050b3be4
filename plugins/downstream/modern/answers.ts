import { createHash } from 'node:crypto'
import { code, RpcError } from '../../../protocol/errors.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { listKinds } from '../../../protocol/lists.ts'
import { ownerOf } from '../../settings/index.ts'
import type { Gateway, Result } from '../../gateway/index.ts'
import { limits } from '../../base/limits/index.ts'
import { callableList } from './callable.ts'
import { elicitationOf, isAccepted } from './elicitation.ts'
import type { ModernExchange } from './exchange.ts'
import type { Outcome } from './outcome.ts'
import type { ModernRequest } from './request.ts'
import { completeResult, completeList, strictest } from './result.ts'
import type { States } from './state.ts'

/** Makes answers of this era of what the gateway answers, and requests of those that come back with a state. */
export interface Answerer {
  /** The answer for a result. A server's own state is sealed. */
  outcome: (exchange: ModernExchange, result: Result) => Outcome | Promise<Outcome>
  /** The question that stands for an error; undefined: it stays one. */
  question: (error: RpcError, exchange: ModernExchange) => Outcome | undefined
  /** The request with the server's own state. */
  withState: (request: ModernRequest, state: string) => ModernRequest
  /** The request as it was first sent. */
  bare: (request: ModernRequest) => ModernRequest
}

/**
 * Which server an exchange is for: another one may have its name by the time that a state comes back.
 * @throws RpcError as `providerOf`
 */
export async function identityOf (gateway: Pick<Gateway, 'providerOf' | 'sections'>, exchange: ModernExchange): Promise<string> {
  const provider = await gateway.providerOf(exchange)
  const { createdAt, owner, url, command } = gateway.sections(exchange.view, exchange.client)
    .find(({ server }) => server.name === provider)?.server.config ?? {}
  return createHash('sha256').update(JSON.stringify([provider, createdAt, owner, url, command])).digest('base64url')
}

const result = (text: string | Buffer): Outcome => ({ kind: 'result', parts: [text], status: 200 })

export function answerer (gateway: Gateway, states: States): Answerer {
  const until = (): number => Date.now() + limits.parked.time

  /** `input_required` of a server, with its state sealed together with whose it is. */
  const handedOn = async (text: string, exchange: ModernExchange): Promise<Outcome> => {
    const state: unknown = JSON.parse(memberOf(text, 'requestState') ?? 'null')
    const own = completeResult(text, exchange.serverInfo)
    if (typeof state !== 'string') return result(own)
    const server = await identityOf(gateway, exchange)
    const { requestState: before } = exchange.params
    const after = typeof before === 'string' ? { after: states.idOf(before) } : {}
    const sealed = states.seal({ kind: 'server', server, state, ...after }, exchange, until())
    return result(withMembers(own, { requestState: JSON.stringify(sealed) }))
  }

  const bare = (request: ModernRequest): ModernRequest =>
    ({ ...request, paramsText: withMembers(request.paramsText, { inputResponses: undefined, requestState: undefined }) })

  return {
    bare,
    outcome: (exchange, answer) => {
      const { method, serverInfo, view } = exchange
      const isOpen = view.principal.kind === 'anonymous'
      if (typeof answer === 'string') {
        if (exchange.isAsked) return handedOn(answer, exchange)
        return result(completeResult(answer, serverInfo, method === 'resources/read', isOpen))
      }
      const { kind } = answer
      // A server without such a list changes nothing of what there is.
      const sections = gateway.sections(view, exchange.client)
        .filter(({ catalogue }) => catalogue === undefined || isObject(catalogue.capabilities[listKinds[kind].capability]))
      const caching = strictest(sections.map(({ provider }) => provider?.caching?.(exchange.client, kind)), isOpen)
      const owner = ownerOf(view.principal, exchange.address)
      return completeList(callableList(answer), serverInfo, caching).bytes(owner).then(result)
    },
    question: (error, exchange) => {
      const text = elicitationOf(error, exchange, () => states.seal({ kind: 'again' }, exchange, until()))
      return text === undefined ? undefined : result(text)
    },
    withState: (request, state) =>
      ({ ...request, paramsText: withMembers(request.paramsText, { requestState: JSON.stringify(state) }) })
  }
}

/** A person has agreed, so that a request may be sent once more. @throws RpcError otherwise */
export function checkAccepted (answersText: string): void {
  if (!isAccepted(answersText)) throw new RpcError(code.invalidRequest, 'The request needs what was declined')
}
