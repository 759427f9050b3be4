import { randomUUID } from 'node:crypto'
import type { Call, ParamChanges } from '../call.ts'
import { requireClientCapability, type ServerRequest, type ClientCapabilities } from '../capabilities.ts'
import { rpcCode, RpcError } from '../errors.ts'
import type { Question } from '../exchange.ts'
import { isObject, memberOf, membersOf, parseSmallMember, withMembers } from '../json.ts'
import { parseRpcError, type Response } from '../message.ts'
import { withRelatedTask } from '../task-ids.ts'
import { detachedCopy } from '../text.ts'
import type { SessionHandlers } from '../upstream-session.ts'
import { resultTypes } from './envelope.ts'

/** Limits of the input that a server may request during one call. */
export interface RoundBounds {
  /** Max `input_required` answers to one call. */
  readonly rounds: number
  /** Max questions in one `input_required` answer. */
  readonly questions: number
  /**
   * Pause before a request is sent again after an answer without questions, in ms; multiplied by the number of the
   * round. Servers may use such answers to defer work.
   */
  readonly pause: number
}

/** Whether an answer is `input_required`: the request must be sent again with the client's input. */
export const isInputRequired = ({ resultText }: Response): boolean =>
  resultText !== undefined && resultText.includes(`"${resultTypes.inputRequired}"`) &&
  parseSmallMember(resultText, 'resultType') === resultTypes.inputRequired

/**
 * Multi round-trip requests for clients of earlier revisions: each question in an `input_required` result is sent to
 * the client as a request in the client's revision, and the original request is sent again with the answers.
 */
export class InputRounds {
  readonly #ask: SessionHandlers['question']
  readonly #bounds: RoundBounds
  /** By call: the number of rounds so far, and the controller that withdraws the call's questions. */
  readonly #open = new Map<Call, { readonly aborter: AbortController, rounds: number }>()

  constructor (ask: SessionHandlers['question'], bounds: RoundBounds) {
    this.#ask = ask
    this.#bounds = bounds
  }

  /**
   * Sends all questions of an answer to the client at once. If there are none, waits for `pause` instead.
   * @param resultText an `input_required` result
   * @returns the members to set in the params when the request is sent again
   * @throws RpcError if the client answers with an error or cannot be asked, or if the server exceeds the limits
   */
  async collectAnswers (call: Call, resultText: string): Promise<ParamChanges> {
    const bounds = this.#bounds
    const state = this.#open.get(call) ?? { aborter: new AbortController(), rounds: 0 }
    this.#open.set(call, state)
    if (++state.rounds > bounds.rounds) throw refusedError(`it requested input more than ${bounds.rounds} times`)
    const asked = memberOf(resultText, 'inputRequests')
    const requestState = memberOf(resultText, 'requestState')
    if (!hasInputRequestsOrState(resultText)) throw refusedError(missingInputRequestsMessage)
    if (asked?.startsWith('{') === false) throw refusedError(invalidInputRequestsMessage)
    const requests = asked === undefined ? [] : requestsIn(asked)
    if (requests.length > bounds.questions) {
      throw refusedError(`it sent ${requests.length} input requests at once; at most ${bounds.questions} are allowed`)
    }
    if (requests.length === 0) {
      await new Promise((resolve) => { setTimeout(resolve, bounds.pause * state.rounds).unref() })
    }
    const answers = await this.#answers(call, requests, state.aborter.signal)
    return {
      ...(requests.length > 0 && { inputResponses: answers }),
      ...(requestState !== undefined && { requestState })
    }
  }

  /**
   * Sends the new questions of a task to the client that waits for the task's result.
   * @param asked the `inputRequests` of the task
   * @param askedKeys the keys of the questions that have been sent; the keys of the new ones are added
   * @param relatedTask the task's id, if the client knows the task
   * @returns the `inputResponses`; undefined if there are no new questions
   * @throws the errors of `collectAnswers`
   */
  async answerTask (
    call: Call, asked: string, askedKeys: Set<string>, signal: AbortSignal, relatedTask: string | undefined
  ): Promise<string | undefined> {
    const requests = requestsIn(asked).filter(({ key }) => !askedKeys.has(key))
    if (requests.length === 0) return undefined
    const bounds = this.#bounds
    if (askedKeys.size + requests.length > bounds.questions * bounds.rounds || requests.length > bounds.questions) {
      throw refusedError(`it sent ${askedKeys.size + requests.length} input requests in total, which is too many`)
    }
    for (const { key } of requests) askedKeys.add(key)
    return await this.#answers(call, requests, signal, relatedTask)
  }

  async #answers (
    call: Call, requests: readonly InputRequest[], signal: AbortSignal, relatedTask?: string
  ): Promise<string> {
    const answers = await Promise.all(requests.map(async ({ key, text }) =>
      `${JSON.stringify(key)}:${await this.#answer(call, text, signal, relatedTask)}`))
    return `{${answers.join()}}`
  }

  /** Withdraws the open questions of a call that has ended. */
  end (call: Call): void {
    this.#open.get(call)?.aborter.abort('the call has ended')
    this.#open.delete(call)
  }

  /** Sends one question. @returns the text of the client's answer */
  async #answer (call: Call, text: string, signal: AbortSignal, relatedTask?: string): Promise<string> {
    const method = parseSmallMember(text, 'method')
    if (typeof method !== 'string' || !inputRequestMethods.has(method)) {
      throw refusedError(`it requested ${JSON.stringify(method)}, which MCP does not have`)
    }
    // The question may stay open for minutes. The copy allows the rest of the result to be freed.
    const params = withElicitationId(memberOf(text, 'params') ?? '{}')
    const paramsText = detachedCopy(relatedTask === undefined ? params : withRelatedTask(params, relatedTask))
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
      await this.#ask(question, call).catch((error: unknown) => { throw toQuestionError(error, question, call) })
    if (errorText !== undefined) {
      const error = parseRpcError(errorText)
      const message = `The server's request (${method}) was answered with an error: ${error.message}`
      throw new RpcError(isProtocolError(error) ? rpcCode.internal : error.code, message, 'upstream')
    }
    return resultText ?? '{}'
  }
}

interface InputRequest { readonly key: string, readonly text: string }

const requestsIn = (asked: string): InputRequest[] =>
  membersOf(asked).map(({ key, start, end }) => ({ key, text: asked.slice(start, end) }))

/** Adds an id to a URL elicitation, since clients of 2025-11-25 require one. */
const withElicitationId = (paramsText: string): string =>
  parseSmallMember(paramsText, 'mode') === 'url' && memberOf(paramsText, 'elicitationId') === undefined
    ? withMembers(paramsText, { elicitationId: JSON.stringify(randomUUID()) })
    : paramsText

/** Whether JSON-RPC defines the error code. Such an error concerns the question, not the call. */
const isProtocolError = ({ code }: RpcError): boolean => code >= -32700 && code <= -32600

/**
 * Converts the JSON-RPC error with which a question to the client was refused, such as one that the client does not
 * support, into an error of the call. The message names the capability that the client lacks, if any. Other errors are
 * returned unchanged.
 */
function toQuestionError (error: unknown, { method, params }: Question, { client }: Call): unknown {
  if (!(error instanceof RpcError) || !isProtocolError(error) || error.code === rpcCode.internal) return error
  const isDeclared = supportsRequest(client.capabilities, { method, params })
  const advice = isDeclared
    ? ''
    : `; the client would have to declare ${JSON.stringify(requiredCapabilitiesFor(method, params))}`
  return refusedError(`it sent a request that is not allowed: ${error.message}${advice}`)
}

function supportsRequest (capabilities: ClientCapabilities, asked: ServerRequest): boolean {
  try {
    requireClientCapability(capabilities, asked)
    return true
  } catch {
    return false
  }
}

const refusedError = (what: string): RpcError =>
  new RpcError(rpcCode.internal, `The server's request cannot be answered: ${what}`, 'upstream')

/** The server requests that a result may contain (MCP 2026-07-28, "Multi Round-Trip Requests"). */
export const inputRequestMethods: ReadonlySet<string> = new Set(
  ['elicitation/create', 'sampling/createMessage', 'roots/list']
)

/** The messages that say why a result that requires input is refused. */
export const missingInputRequestsMessage = 'its result requires input, but has no input requests'
export const invalidInputRequestsMessage = 'its input requests are invalid'

/**
 * Whether an `input_required` result has input requests or a state. A server may send a state alone, to defer its work.
 * @param resultText an `input_required` result
 */
export function hasInputRequestsOrState (resultText: string): boolean {
  if (memberOf(resultText, 'requestState')?.startsWith('"') === true) return true
  const requests = memberOf(resultText, 'inputRequests')
  return requests !== undefined && !(requests.startsWith('{') && membersOf(requests).length === 0)
}

/** Returns the client capabilities that a server's request requires; undefined for an unknown method. */
export function requiredCapabilitiesFor (
  method: string, params: Readonly<Record<string, unknown>>
): ClientCapabilities | undefined {
  switch (method) {
    case 'elicitation/create': return { elicitation: params.mode === 'url' ? { url: {} } : { form: {} } }
    case 'sampling/createMessage': return { sampling: params.tools === undefined ? {} : { tools: {} } }
    case 'roots/list': return { roots: {} }
    default: return undefined
  }
}
