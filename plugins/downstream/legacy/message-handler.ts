import type { Snapshot } from '../../../db/store.ts'
import { rpcCode, RpcError, toRefusedToolResult } from '../../../protocol/errors.ts'
import {
  errorResponseText, requestKeyOf, type MalformedMessage, type Message, type Request
} from '../../../protocol/message.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { Gateway } from '../../gateway/index.ts'
import { chargedOwnerOf } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import {
  credentialHeaderName, InFlightTable, toRpcErrorAndLog, type InboundRequest, type LogError
} from '../endpoint.ts'
import { LegacyExchange } from './exchange.ts'
import type { ReplyChannel } from '../reply-channel.ts'
import { toLegacyList } from './to-legacy-list.ts'
import type { Session } from './session.ts'
import { downstreamLimits } from '../limits.ts'

/** Returns the text of the JSON-RPC error that answers an invalid element of a batch. */
export const answerToMalformedMessage = ({ idText, error }: MalformedMessage): string =>
  errorResponseText(idText, error.toText())

/** Handles the messages of legacy clients in their sessions, for all transports. */
export class LegacyMessageHandler {
  readonly #gateway: Gateway
  readonly #snapshot: () => Snapshot
  readonly #logError: LogError
  readonly #inFlight = new InFlightTable<unknown>()

  constructor (gateway: Gateway, snapshot: () => Snapshot, logError: LogError) {
    this.#gateway = gateway
    this.#snapshot = snapshot
    this.#logError = logError
  }

  get isClosing (): boolean { return this.#inFlight.isClosing }

  /**
   * Handles the messages of one POST in order. Requests and malformed messages are answered on a reply channel.
   * @param openReply creates the channel for a number of answers; the channel calls `onGone` when the client has
   *   disconnected for good
   * @returns false if there is nothing to answer
   * @throws Draining
   */
  receive (
    session: Session,
    messages: ReadonlyArray<Message | MalformedMessage>,
    { view, headers, address }: Pick<InboundRequest, 'view' | 'headers' | 'address'>,
    openReply: (answers: number, onGone: () => void) => ReplyChannel
  ): boolean {
    if (this.isClosing && messages.some(({ kind }) => kind === 'request')) throw new errors.Draining()
    const answers = messages.filter(({ kind }) => kind === 'request' || kind === 'malformed').length
    const started: LegacyExchange[] = []
    let isGone = false
    const reply = answers === 0
      ? undefined
      : openReply(answers, () => {
        isGone = true
        for (const exchange of started) exchange.cancel('the client went away')
      })
    const origin = { headers, address, credentialHeader: credentialHeaderName(view.principal, this.#snapshot()) }
    const handle = (message: Message | MalformedMessage): void => {
      if (message.kind === 'malformed') reply?.finish([answerToMalformedMessage(message)])
      else if (message.kind === 'response') session.questions.answer(message)
      else if (message.kind === 'notification') {
        if (!session.receive(message)) this.#gateway.notify(session.view, session, message.method, message.paramsText)
      } else if (reply && !isGone) {
        const exchange = new LegacyExchange(session, message, origin, reply)
        started.push(exchange)
        void this.#run(session, message, exchange)
      }
    }
    void this.#handleInSteps(messages, handle)
    return answers > 0
  }

  /** Calls `handle` for each message in order, and yields to the event loop during a long batch. */
  async #handleInSteps (
    messages: ReadonlyArray<Message | MalformedMessage>, handle: (message: Message | MalformedMessage) => void
  ): Promise<void> {
    const budget = new LoopBudget()
    // Requests that have not started yet count as open too.
    const number = this.#inFlight.add(messages)
    for (const [at, message] of messages.entries()) {
      try {
        handle(message)
      } catch (error) {
        this.#logError(error, 'a message failed unexpectedly')
      }
      if (at < messages.length - 1 && budget.isSpent) await budget.yieldToEventLoop()
    }
    this.#inFlight.remove(number)
  }

  /** Refuses new requests, and waits up to `timeout` ms for the open ones. */
  async drain (timeout: number): Promise<void> { await this.#inFlight.drain(timeout) }

  /** Converts an error to the JSON-RPC error for the client, and logs an unexpected one. */
  toRpcAnswerError (error: unknown): RpcError { return toRpcErrorAndLog(error, this.#logError) }

  async #run (session: Session, request: Request, exchange: LegacyExchange): Promise<void> {
    const key = requestKeyOf(request.id, request.idText)
    if (session.exchanges.has(key)) {
      const sentence = `Invalid request: a request with id ${request.idText} is already in flight`
      exchange.fail(new RpcError(rpcCode.invalidRequest, sentence))
      return
    }
    if (session.exchanges.size >= downstreamLimits.requestsPerSession) {
      const sentence = `More than ${downstreamLimits.requestsPerSession} requests of one session are in flight`
      exchange.fail(new RpcError(rpcCode.badRequest, sentence, 'limit'))
      return
    }
    if (session.hasEnded) {
      exchange.fail(new RpcError(rpcCode.unavailable, 'The session has ended', 'cancelled'))
      return
    }
    if (request.method.startsWith('events/')) {
      exchange.fail(new RpcError(rpcCode.methodNotFound, `Method not found: ${request.method}`))
      return
    }
    session.exchanges.set(key, exchange)
    const number = this.#inFlight.add(exchange)
    try {
      const result = await this.#gateway.handle(exchange)
      const owner = chargedOwnerOf(exchange.view.principal, exchange.address)
      exchange.succeed(typeof result === 'string' ? result : await (await toLegacyList(result)).bytes(owner))
    } catch (error) {
      const toolError = toRefusedToolResult(exchange.method, error)
      if (toolError === undefined) exchange.fail(this.toRpcAnswerError(error))
      else exchange.succeed(toolError)
    } finally {
      session.exchanges.take(key)
      session.lastUsed = Date.now()
      this.#inFlight.remove(number)
    }
  }
}
