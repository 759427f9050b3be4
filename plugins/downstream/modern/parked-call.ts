import { hash, randomBytes } from 'node:crypto'
import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Question } from '../../../protocol/exchange.ts'
import { memberOf, membersOf } from '../../../protocol/json.ts'
import type { Response } from '../../../protocol/message.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { memoryOfJson } from '../../base/body/index.ts'
import { type Release } from '../../base/limits/index.ts'
import { requireSupportedQuestion, toInputRequest } from './input-request.ts'
import type { RequestOutcome } from './errors.ts'
import { resultHead } from './result.ts'
import { stateAlreadyUsedError, type StateBinding, type RequestStateSealer } from './state.ts'
import { downstreamLimits } from '../limits.ts'

/** An exchange that can be parked. */
export interface Parkable extends StateBinding {
  readonly client: { readonly owner: string }
  /** The capabilities in the latest request; earlier ones do not matter (MCP 2026-07-28, "Statelessness"). */
  readonly capabilities: ClientCapabilities
  readonly serverInfo: string | undefined
  /** The memory that the latest request takes, in bytes. */
  readonly memory: number
  /** Whether a request waits for the answer. */
  readonly isAwaited: boolean
  readonly isOver: boolean
  /** Answers the waiting requests with an `input_required` result. @param text the result */
  suspend: (text: string) => void
  /** Answers the waiting requests with an outcome that was kept for them. */
  deliver: (outcome: RequestOutcome) => void
  cancel: (reason: string) => void
  end: (error: RpcError) => void
}

/** The members of the table of parked calls (`ParkedCalls`) that a parked call uses. */
export interface ParkedCallTable<Exchange extends Parkable> {
  readonly states: RequestStateSealer
  /** Reserves memory for a call, in bytes. @returns false if too little is free, in total or for the owner */
  reserveMemory: (owner: string, size: number) => boolean
  releaseMemory: (owner: string, size: number) => void
  /** Called when a call's answer has been sent. The table keeps the call, and so its answer, until `remove`. */
  keepAnswer: (call: ParkedCall<Exchange>) => void
  remove: (id: string) => void
}

interface OpenQuestion {
  readonly question: Question
  /** The memory that the question takes, in bytes. */
  readonly size: number
  /** The last round in which the question was asked; undefined if it has not been asked yet. */
  round: number | undefined
  readonly resolve: (response: Response) => void
  readonly reject: (error: RpcError) => void
}

/** The last round whose answers were accepted. `digest`: a hash of the answers; `at`: the time, in ms since 1970. */
interface AnsweredRound { readonly round: number, readonly digest: string, readonly at: number }

const digestOf = (answersText: string): string => hash('sha256', answersText, 'base64url')

/**
 * A call that asks its client questions, in rounds. A round answers the waiting request with an `input_required`
 * result; the next request, which contains the state from this result, brings the answers. The state of a round can be
 * used once; for a while, a repeated request with the same answers waits for the same call.
 */
export class ParkedCall<Exchange extends Parkable> {
  readonly id: string
  readonly exchange: Exchange
  /** The provider of the call, as found when the call was first resumed. */
  provider: string | undefined
  readonly #table: ParkedCallTable<Exchange>
  readonly #release: Release
  readonly #questions = new Map<string, OpenQuestion>()
  #lastQuestion = 0
  #round = 0
  /** The `input_required` result of this round; undefined while a request waits. */
  #asked: string | undefined
  #answered: AnsweredRound | undefined
  #outcome: RequestOutcome | undefined
  #reserved = 0
  /** The memory that is reserved for the latest request, in bytes. */
  #reservedForRequest = 0
  #gathering: NodeJS.Timeout | undefined
  #expiry: NodeJS.Timeout | undefined

  /** @param answersText the `inputResponses` with which the exchange started, if it started from a state */
  constructor (
    table: ParkedCallTable<Exchange>,
    exchange: Exchange,
    release: Release,
    id = randomBytes(16).toString('base64url'),
    answersText?: string
  ) {
    this.#table = table
    this.exchange = exchange
    this.#release = release
    this.id = id
    if (answersText !== undefined) this.#answered = { round: 0, digest: digestOf(answersText), at: Date.now() }
  }

  /** Asks the client in the next round. @throws RpcError if the client cannot be asked, or the call ends */
  async ask (question: Question): Promise<Response> {
    requireSupportedQuestion(this.exchange.capabilities, question)
    if (question.signal.aborted) throw new RpcError(rpcCode.internal, String(question.signal.reason), 'internal')
    const size = memoryOfJson(question.paramsText)
    const isFull = this.#questions.size >= downstreamLimits.parked.questions
    if (isFull || !this.#reserveForRequest() || !this.#reserve(size)) {
      throw new RpcError(rpcCode.internal, 'Too many requests to clients are unanswered', 'limit')
    }
    const key = `question-${++this.#lastQuestion}`
    return await new Promise((resolve, reject) => {
      this.#questions.set(key, { question, size, round: undefined, resolve, reject })
      question.signal.addEventListener('abort', () => {
        this.#take(key)?.reject(new RpcError(rpcCode.internal, String(question.signal.reason), 'internal'))
      }, { once: true })
      this.#gather()
    })
  }

  /**
   * Resumes the call with a request that contains its state, or delivers the outcome if the call has ended.
   * @param round the round in the state
   * @param answersText the `inputResponses`, as the JSON text of an object
   * @param attach makes the request wait for the answer
   * @throws RpcError -32602 if the round was already answered, with other answers or too long ago
   */
  resume (round: number, answersText: string, attach: () => void): void {
    const digest = digestOf(answersText)
    const isFirst = round === this.#round && this.#asked !== undefined
    const isAgain = round === this.#answered?.round && digest === this.#answered.digest &&
      Date.now() - this.#answered.at <= downstreamLimits.parked.again
    if (!isFirst && !isAgain) throw stateAlreadyUsedError()
    attach()
    // The new request may take more memory than the previous one.
    this.#releaseMemory(this.#reservedForRequest)
    this.#reservedForRequest = 0
    if (isFirst) {
      this.#answered = { round, digest, at: Date.now() }
      this.#asked = undefined
      clearTimeout(this.#expiry)
      this.#takeAnswers(answersText)
    }
    if (this.#outcome) {
      this.#rejectQuestions('The request has ended')
      this.exchange.deliver(this.#outcome)
      if (isFirst) this.#keepSentAnswer()
    } else if (this.#asked !== undefined) this.exchange.suspend(this.#asked)
  }

  /**
   * Handles the end of the exchange. A question that may belong to another call stays open if the client has received
   * it: the request that fetches the outcome contains the answer to it.
   * @param outcome undefined if the exchange was cancelled
   */
  onFinished (outcome: RequestOutcome | undefined): void {
    clearTimeout(this.#gathering)
    const isFetchedLater = outcome !== undefined && this.#asked !== undefined
    this.#rejectQuestions('The request has ended', ({ question, round }) =>
      !(isFetchedLater && question.outlivesRequest && round === this.#round))
    // Without an outcome, or without a state at the client, there is nothing to fetch.
    if (!outcome || (this.#round === 0 && !this.#answered)) { this.forget(); return }
    const size = typeof outcome.text === 'string' ? memoryOf(outcome.text) : outcome.text.length
    const tooLarge = new RpcError(
      rpcCode.internal, 'The result is too large to be kept until the client requests it', 'limit'
    )
    const fits = this.#reserveForRequest() && this.#reserve(size)
    this.#outcome = fits ? outcome : { kind: 'error', text: tooLarge.toText(), status: 200 }
    if (this.#asked === undefined) this.#keepSentAnswer()
  }

  /** Removes the call from the table, rejects its open questions, and releases its memory and timers. */
  forget (): void {
    clearTimeout(this.#expiry)
    clearTimeout(this.#gathering)
    this.#rejectQuestions('The client did not answer in time')
    this.#releaseMemory(this.#reserved)
    this.#reservedForRequest = 0
    this.#release()
    this.#table.remove(this.id)
  }

  #takeAnswers (answersText: string): void {
    for (const { key, start, end } of membersOf(answersText)) {
      const answer = answersText.slice(start, end)
      // A question whose answer is not an object is asked again.
      if (answer.startsWith('{')) this.#take(key)?.resolve({ kind: 'response', id: null, resultText: answer })
    }
    if (this.#questions.size > 0) this.#gather()
  }

  /** Keeps the answer for a while after it was sent, in case the client has not received it. */
  #keepSentAnswer (): void {
    this.#release()
    this.#table.keepAnswer(this)
    clearTimeout(this.#expiry)
    this.#expiry = setTimeout(() => { this.forget() }, downstreamLimits.parked.again).unref()
  }

  /** Starts the next round after a moment, so that questions that arrive together are asked together. */
  #gather (): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined
      this.#suspend()
    }, downstreamLimits.parked.gather).unref()
  }

  #suspend (): void {
    if (this.exchange.isOver || !this.exchange.isAwaited) return
    this.#rejectUnsupported()
    if (this.#questions.size === 0) return
    this.#round++
    const { exchange, id } = this
    const until = Date.now() + downstreamLimits.parked.time
    const state = this.#table.states.seal({ kind: 'call', id, round: this.#round }, exchange, until)
    const requests = [...this.#questions].map(([key, open]) => {
      open.round = this.#round
      return `${JSON.stringify(key)}:${toInputRequest(open.question)}`
    })
    const head = resultHead('input_required', exchange.serverInfo)
    this.#asked = `${head},"inputRequests":{${requests.join()}},"requestState":${JSON.stringify(state)}}`
    this.#expiry = setTimeout(() => {
      exchange.cancel('the client did not answer in time')
      this.forget()
    }, downstreamLimits.parked.time).unref()
    exchange.suspend(this.#asked)
  }

  /** Rejects the questions that the client, according to its newest request, does not support. */
  #rejectUnsupported (): void {
    for (const [key, { question }] of [...this.#questions]) {
      try {
        requireSupportedQuestion(this.exchange.capabilities, question)
      } catch (error) {
        this.#take(key)?.reject(error as RpcError)
      }
    }
  }

  /** Rejects the open questions to which `isRejected` applies; by default, all of them. */
  #rejectQuestions (why: string, isRejected: (open: OpenQuestion) => boolean = () => true): void {
    for (const [key, open] of [...this.#questions]) {
      if (isRejected(open)) this.#take(key)?.reject(new RpcError(rpcCode.internal, why, 'internal'))
    }
  }

  #take (key: string): OpenQuestion | undefined {
    const open = this.#questions.get(key)
    if (!open) return undefined
    this.#questions.delete(key)
    this.#releaseMemory(open.size)
    return open
  }

  /** Reserves memory for the latest request, which is not counted elsewhere once it is answered. */
  #reserveForRequest (): boolean {
    if (this.#reservedForRequest > 0) return true
    const { memory } = this.exchange
    if (!this.#reserve(memory)) return false
    this.#reservedForRequest = memory
    return true
  }

  #releaseMemory (size: number): void {
    this.#table.releaseMemory(this.exchange.client.owner, size)
    this.#reserved -= size
  }

  #reserve (size: number): boolean {
    if (!this.#table.reserveMemory(this.exchange.client.owner, size)) return false
    this.#reserved += size
    return true
  }
}

/**
 * Returns the `inputResponses` of a request, as the JSON text of an object; `{}` if there are none.
 * @throws RpcError -32602 if the value is not an object
 */
export function inputResponsesOf (paramsText: string): string {
  const text = memberOf(paramsText, 'inputResponses') ?? '{}'
  if (!text.startsWith('{')) {
    throw new RpcError(rpcCode.invalidParams, 'Invalid params: "inputResponses" must be an object')
  }
  return text
}
