import { randomUUID } from 'node:crypto'
import type { Call, Changes } from '../call.ts'
import { requireClientCapability, type AskedFor, type ClientCapabilities } from '../capabilities.ts'
import { code, RpcError } from '../errors.ts'
import type { Question } from '../exchange.ts'
import { isObject, memberOf, membersOf, smallMemberOf, withMembers } from '../json.ts'
import { toRpcError, type Response } from '../message.ts'
import { copyOf } from '../text.ts'
import type { SessionHandlers } from '../upstream-session.ts'
import { resultTypes } from './envelope.ts'

/** How much a server may ask for by one call. */
export interface RoundBounds {
  /** Max times that a call is answered with `input_required`. */
  readonly rounds: number
  /** Max questions of one such answer. */
  readonly questions: number
  /**
   * Pause before a request is sent again that nobody had to be asked for, in ms, times the round: a server may defer
   * work like this.
   */
  readonly pause: number
}

/** True for an answer that asks the client something, and that the request is to be sent again after. */
export const isInputRequired = ({ resultText }: Response): boolean =>
  resultText !== undefined && resultText.includes(`"${resultTypes.inputRequired}"`) &&
  smallMemberOf(resultText, 'resultType') === resultTypes.inputRequired

/**
 * Multi round-trip requests for clients of earlier revisions: each question of an `input_required` is put to the client
 * as the request that it knows, and the answers are what the call's request is sent again with.
 */
export class InputRounds {
  readonly #ask: SessionHandlers['question']
  readonly #bounds: RoundBounds
  /** Withdraws the questions of a call, and counts its rounds. */
  readonly #open = new Map<Call, { readonly ends: AbortController, rounds: number }>()

  constructor (ask: SessionHandlers['question'], bounds: RoundBounds) {
    this.#ask = ask
    this.#bounds = bounds
  }

  /**
   * Puts the questions of an answer to the client, all at once.
   * @param resultText an `input_required`
   * @returns the members of params that the request is sent again with
   * @throws RpcError when the client answers a question with an error, or cannot be asked it, or the server asks what
   * it may not
   */
  async answered (call: Call, resultText: string): Promise<Changes> {
    const most = this.#bounds
    const state = this.#open.get(call) ?? { ends: new AbortController(), rounds: 0 }
    this.#open.set(call, state)
    if (++state.rounds > most.rounds) throw refused(`it has asked for input ${most.rounds} times and wants more`)
    const asked = memberOf(resultText, 'inputRequests')
    const requestState = memberOf(resultText, 'requestState')
    if (!saysWhat(resultText)) throw refused(saysNothing)
    if (asked?.startsWith('{') === false) throw refused(asksNoRequest)
    const requests = asked === undefined
      ? []
      : membersOf(asked).map(({ key, start, end }) => ({ key, text: asked.slice(start, end) }))
    if (requests.length > most.questions) {
      throw refused(`it asks ${requests.length} questions at once, and ${most.questions} is the most`)
    }
    if (requests.length === 0) {
      await new Promise((resolve) => { setTimeout(resolve, most.pause * state.rounds).unref() })
    }
    const answers = await Promise.all(requests.map(async ({ key, text }) => {
      const answer = await this.#answer(call, text, state.ends.signal)
      return `${JSON.stringify(key)}:${answer}`
    }))
    return {
      ...(requests.length > 0 && { inputResponses: `{${answers.join(',')}}` }),
      ...(requestState !== undefined && { requestState })
    }
  }

  /** A call is over: what is still asked for it is withdrawn. */
  over (call: Call): void {
    this.#open.get(call)?.ends.abort('the call is over')
    this.#open.delete(call)
  }

  /** The text of the client's answer to one question. */
  async #answer (call: Call, text: string, signal: AbortSignal): Promise<string> {
    const method = smallMemberOf(text, 'method')
    if (typeof method !== 'string' || !questions.has(method)) {
      throw refused(`it asks for ${JSON.stringify(method)}, which is not in MCP`)
    }
    // It may be kept for minutes, without the result that it is a part of.
    const paramsText = copyOf(withElicitationId(memberOf(text, 'params') ?? '{}'))
    const value: unknown = JSON.parse(paramsText)
    const question: Question = {
      method,
      params: isObject(value) ? value : {},
      paramsText,
      signal,
      outlivesRequest: false,
      progress: () => {}
    }
    const { resultText, errorText } =
      await this.#ask(question, call).catch((error: unknown) => { throw notAsked(error, question, call) })
    if (errorText !== undefined) {
      const error = toRpcError(errorText)
      const message = `The server's question (${method}) was answered with an error: ${error.message}`
      throw new RpcError(isOfRequest(error) ? code.internal : error.code, message, 'upstream')
    }
    return resultText ?? '{}'
  }
}

/** Elicitations with an address have an id in 2025-11-25, where clients require it. */
const withElicitationId = (paramsText: string): string =>
  smallMemberOf(paramsText, 'mode') === 'url' && memberOf(paramsText, 'elicitationId') === undefined
    ? withMembers(paramsText, { elicitationId: JSON.stringify(randomUUID()) })
    : paramsText

/**
 * Codes that JSON-RPC defines: they are about the request that they answer, which is the question, and say nothing of
 * the call.
 */
const isOfRequest = ({ code }: RpcError): boolean => code >= -32700 && code <= -32600

/**
 * The error of a call whose client is not asked a question. It names what the client would have to declare, where it
 * lacks that.
 */
function notAsked (error: unknown, { method, params }: Question, { client }: Call): unknown {
  if (!(error instanceof RpcError) || !isOfRequest(error) || error.code === code.internal) return error
  const isDeclared = canBeAskedThis(client.capabilities, { method, params })
  const advice = isDeclared ? '' : `; it would have to declare ${JSON.stringify(requiredFor(method, params))}`
  return refused(`it asks what it may not: ${error.message}${advice}`)
}

function canBeAskedThis (capabilities: ClientCapabilities, asked: AskedFor): boolean {
  try {
    requireClientCapability(capabilities, asked)
    return true
  } catch {
    return false
  }
}

const refused = (what: string): RpcError =>
  new RpcError(code.internal, `The server cannot be served: ${what}`, 'upstream')

/** The requests that an answer may contain (MCP 2026-07-28, "Multi Round-Trip Requests"). */
export const questions: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

/** Reasons to refuse an answer whose questions cannot be answered. */
export const saysNothing = 'it asks for input, and says not for what'
export const asksNoRequest = 'it asks what is no request'

/**
 * Whether an answer that asks for input says for which, or has a state at least: with a state alone, a server defers
 * its work.
 * @param resultText an `input_required`
 */
export function saysWhat (resultText: string): boolean {
  if (memberOf(resultText, 'requestState')?.startsWith('"') === true) return true
  const requests = memberOf(resultText, 'inputRequests')
  return requests !== undefined && !(requests.startsWith('{') && membersOf(requests).length === 0)
}

/** The capabilities of a client that can be asked this; undefined: no client can. */
export function requiredFor (
  method: string, params: Readonly<Record<string, unknown>>
): ClientCapabilities | undefined {
  switch (method) {
    case 'elicitation/create': return { elicitation: params.mode === 'url' ? { url: {} } : { form: {} } }
    case 'sampling/createMessage': return { sampling: params.tools === undefined ? {} : { tools: {} } }
    case 'roots/list': return { roots: {} }
    default: return undefined
  }
}
