import type { Snapshot } from '../../../db/store.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import { errorText, type Malformed, type Message, type Request } from '../../../protocol/message.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { Gateway } from '../../gateway/index.ts'
import { ownerOf } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import { limits, ShareError } from '../../base/limits/index.ts'
import { credentialHeader, type Inbound } from '../endpoint.ts'
import { ClientExchange } from '../exchange.ts'
import type { ReplyChannel } from '../reply-channel.ts'
import { readableList } from './readable.ts'
import type { Session } from './session.ts'

/** The answer to an element of a batch that is not a valid message. */
export const malformedText = ({ idText, error }: Malformed): string => errorText(idText, error.toText())

/** Handles the messages of legacy clients in their sessions, for all transports. */
export class LegacyRequests {
  readonly #gateway: Gateway
  readonly #snapshot: () => Snapshot
  readonly #logError: (error: unknown, sentence: string) => void
  #inFlight = 0
  #drained: (() => void) | undefined
  #draining: Promise<void> | undefined
  #closing = false

  constructor (gateway: Gateway, snapshot: () => Snapshot, logError: (error: unknown, sentence: string) => void) {
    this.#gateway = gateway
    this.#snapshot = snapshot
    this.#logError = logError
  }

  get closing (): boolean { return this.#closing }

  /**
   * Handles the messages of one POST, in their order; those of a long batch in steps. Requests run, and are answered on a channel.
   * @param openReply makes the channel for a number of answers; `onGone` is to be called when the client is gone for good
   * @returns false when there is nothing to answer
   * @throws Draining
   */
  receive (
    session: Session,
    messages: ReadonlyArray<Message | Malformed>,
    { view, headers, address }: Pick<Inbound, 'view' | 'headers' | 'address'>,
    openReply: (answers: number, onGone: () => void) => ReplyChannel
  ): boolean {
    if (this.#closing && messages.some(({ kind }) => kind === 'request')) throw new errors.Draining()
    const answers = messages.filter(({ kind }) => kind === 'request' || kind === 'malformed').length
    const started: ClientExchange[] = []
    let isGone = false
    const reply = answers === 0
      ? undefined
      : openReply(answers, () => {
        isGone = true
        for (const exchange of started) exchange.cancel('the client went away')
      })
    const origin = { headers, address, credentialHeader: credentialHeader(view.principal, this.#snapshot()) }
    const handle = (message: Message | Malformed): void => {
      if (message.kind === 'malformed') reply?.finish([malformedText(message)])
      else if (message.kind === 'response') session.questions.answer(message)
      else if (message.kind === 'notification') {
        if (!session.receive(message)) this.#gateway.notify(session.view, session, message.method, message.paramsText)
      } else if (reply && !isGone) {
        const exchange = new ClientExchange(session, message, origin, reply)
        started.push(exchange)
        void this.#run(session, message, exchange)
      }
    }
    void this.#handleInSteps(messages, handle)
    return answers > 0
  }

  /** Handles the messages of one POST: the first ones before it returns, and others when the event loop has time. */
  async #handleInSteps (messages: ReadonlyArray<Message | Malformed>, handle: (message: Message | Malformed) => void): Promise<void> {
    const budget = new LoopBudget()
    // Requests that have not begun are in flight, too.
    this.#enter()
    for (const [at, message] of messages.entries()) {
      try {
        handle(message)
      } catch (error) {
        this.#logError(error, 'a message failed unexpectedly')
      }
      if (at < messages.length - 1 && budget.spent) await budget.yieldToEventLoop()
    }
    this.#leave()
  }

  #enter (): void { this.#inFlight++ }

  #leave (): void { if (--this.#inFlight === 0) this.#drained?.() }

  /** Refuses new requests, and waits for those in flight. @param timeout in ms */
  async drain (timeout: number): Promise<void> {
    this.#closing = true
    if (this.#inFlight === 0) return
    // Every endpoint calls this, and all wait for the same requests.
    this.#draining ??= new Promise<void>((resolve) => {
      this.#drained = resolve
      setTimeout(resolve, timeout).unref()
    })
    await this.#draining
  }

  /** The error to answer. Errors that are not meant for clients are logged, and answered as internal ones. */
  toRpcError (error: unknown): RpcError {
    if (error instanceof RpcError) return error
    if (error instanceof ShareError) return new RpcError(code.unavailable, error.message, 'limit')
    this.#logError(error, 'a request failed unexpectedly')
    return new RpcError(code.internal, 'Internal error', 'internal')
  }

  async #run (session: Session, request: Request, exchange: ClientExchange): Promise<void> {
    if (session.exchanges.has(request.id)) {
      const sentence = `Invalid request: a request with id ${JSON.stringify(request.id)} is in flight already`
      exchange.fail(new RpcError(code.invalidRequest, sentence))
      return
    }
    if (session.exchanges.size >= limits.requestsPerSession) {
      const sentence = `More than ${limits.requestsPerSession} requests of one session are in flight`
      exchange.fail(new RpcError(code.badRequest, sentence, 'limit'))
      return
    }
    if (session.ended) {
      exchange.fail(new RpcError(code.unavailable, 'The session has ended', 'cancelled'))
      return
    }
    session.exchanges.set(request.id, exchange)
    this.#enter()
    try {
      const result = await this.#gateway.handle(exchange)
      const owner = ownerOf(exchange.view.principal, exchange.address)
      exchange.succeed(typeof result === 'string' ? result : await (await readableList(result)).bytes(owner))
    } catch (error) {
      exchange.fail(this.toRpcError(error))
    } finally {
      session.exchanges.take(request.id)
      session.lastUsed = Date.now()
      this.#leave()
    }
  }
}
