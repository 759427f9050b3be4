import { lostServerClause, rpcCode, RpcError } from '../../protocol/errors.ts'
import { streamMethod } from '../../protocol/events.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { isToolErrorResult, parseRpcError, type Response } from '../../protocol/message.ts'
import { refersToTask } from '../../protocol/task-ids.ts'
import { changesWithTrace } from '../../protocol/trace-context.ts'
import type { View } from '../settings/index.ts'
import { Shares } from '../base/limits/index.ts'
import type { FinishedCall, GatewayCall, HookLists } from './hooks.ts'
import type { ProviderTable } from './providers.ts'
import { gatewayLimits } from './limits.ts'

const noChanges: Readonly<Record<string, string>> = {}

/** `output`: the result after the `onOutput` hooks; `answer`: the result after the `onResult` hooks. */
interface CallResult {
  readonly response?: Response | undefined
  readonly output?: string | undefined
  readonly answer?: string
}

/** Sends requests to their providers, and runs the hooks around each. */
export class Forwarder {
  readonly #providers: ProviderTable
  readonly #hooks: HookLists
  readonly #shares = new Shares(gatewayLimits.calls, 'calls in flight')
  readonly #withProviderTaskIds: (exchange: Exchange<View>, provider: string) => Exchange<View>
  readonly #requireItem: (exchange: Exchange<View>, provider: string, item: string | undefined) => Promise<void>
  readonly #isVisible: (exchange: Exchange<View>, provider: string) => boolean
  readonly #logError: (error: unknown, sentence: string) => void

  /**
   * @param withProviderTaskIds replaces a client's task ids in a request (`refersToTask`) by those of the provider
   * @param requireItem throws an RpcError if the view of a request no longer shows the item that was found for it
   * @param isVisible whether the view of a request still includes a provider
   */
  constructor (
    providers: ProviderTable,
    hooks: HookLists,
    withProviderTaskIds: (exchange: Exchange<View>, provider: string) => Exchange<View>,
    requireItem: (exchange: Exchange<View>, provider: string, item: string | undefined) => Promise<void>,
    isVisible: (exchange: Exchange<View>, provider: string) => boolean,
    logError: (error: unknown, sentence: string) => void
  ) {
    this.#providers = providers
    this.#hooks = hooks
    this.#withProviderTaskIds = withProviderTaskIds
    this.#requireItem = requireItem
    this.#isVisible = isVisible
    this.#logError = logError
  }

  /** The number of requests that wait for a provider's answer, without open event streams. */
  get inFlight (): number { return this.#shares.taken }

  /**
   * Sends one request to one provider.
   * @param item the provider's name of the tool (also for its tasks), prompt or resource, if the request names one
   * @param changes members of `params` to replace, as JSON text
   * @returns the text of the result after the `onResult` hooks; a result that asks for input, as the provider sent it
   * @throws RpcError the provider's error, relayed without secrets of its config; ShareError; exceptions of hooks
   */
  async send (
    request: Exchange<View>, provider: string, item: string | undefined, changes = noChanges
  ): Promise<string> {
    const exchange = refersToTask(request.params) ? this.#withProviderTaskIds(request, provider) : request
    // Event streams stay open, and have a limit of their own.
    const release = exchange.method === streamMethod
      ? undefined
      : this.#shares.take(exchange.client.owner ?? exchange.client.id)
    const call: GatewayCall = {
      exchange, provider, item, startedAt: performance.now(), trace: undefined, policy: undefined
    }
    let output: string | undefined
    let response: Response | undefined
    try {
      // Only promises are awaited, since awaiting any other value takes time, too.
      for (const hook of this.#hooks.onCall) {
        const waiting = hook(call)
        if (!waiting) continue
        await waiting
        // The hook may have waited for a person or a webhook, and the caller may have lost access meanwhile.
        await this.#requireItem(request, provider, item)
      }
      const { trace } = call
      const sent = trace === undefined ? changes : changesWithTrace(call.exchange.paramsText, changes, trace)
      response = await this.#providers.use(provider, exchange.client).call(call.exchange, sent, trace)
      const { resultText, errorText } = response
      if (errorText !== undefined) throw parseRpcError(errorText)
      const text = resultText ?? '{}'
      // `onOutput` and `onResult` do not get an intermediate result: its state is only for the server and the client.
      if (exchange.suspendsOn?.(text) === true) {
        this.#reportDone(call, {}, undefined, 'input_required')
        return text
      }
      let result = text
      for (const hook of this.#hooks.onOutput) {
        const next = hook(call, result)
        result = typeof next === 'string' ? next : await this.#unlessLost(call, request, next)
      }
      output = result
      for (const hook of this.#hooks.onResult) {
        const next = hook(call, result)
        result = typeof next === 'string' ? next : await this.#unlessLost(call, request, next)
      }
      this.#reportDone(call, { output, answer: result, response }, undefined)
      return result
    } catch (error) {
      const answered = await this.#toAnsweredError(call, error)
      this.#reportDone(call, { output, response }, answered)
      throw answered
    } finally {
      release?.()
    }
  }

  /**
   * Fails a request whose provider is not connected. `onCall`, `onError` and `onDone` hooks run as for other calls.
   * @param startedAt the time of the request's arrival, as `performance.now()`
   * @throws the error, as changed by `onError` hooks; exceptions of hooks
   */
  async fail (
    exchange: Exchange<View>, provider: string, item: string, startedAt: number, error: RpcError
  ): Promise<never> {
    const call: GatewayCall = {
      exchange, provider, item, startedAt, trace: undefined, policy: undefined, failure: error
    }
    let thrown: unknown = error
    try {
      for (const hook of this.#hooks.onCall) await hook(call)
    } catch (failure) {
      thrown = failure
    }
    thrown = await this.#toAnsweredError(call, thrown)
    this.#reportDone(call, {}, thrown)
    throw thrown
  }

  /** Waits for a result from a hook. @throws RpcError if the caller has lost access to the provider meanwhile */
  async #unlessLost (
    { provider }: GatewayCall, request: Exchange<View>, waiting: Promise<string>
  ): Promise<string> {
    const result = await waiting
    if (this.#isVisible(request, provider)) return result
    const sentence =
      `The result of server ${JSON.stringify(provider)} is not delivered: ${lostServerClause}. The request has run`
    throw new RpcError(rpcCode.unavailable, sentence, 'cancelled')
  }

  /** Passes an RpcError through the `onError` hooks; an exception of a hook replaces it. Other errors stay the same. */
  async #toAnsweredError (call: GatewayCall, error: unknown): Promise<unknown> {
    if (!(error instanceof RpcError)) return error
    try {
      let answered = error
      for (const hook of this.#hooks.onError) answered = await hook(call, answered)
      return answered
    } catch (failure) {
      return failure
    }
  }

  readonly #observerFailed = (failure: unknown): void => {
    this.#logError(failure, 'a hook that observes calls failed')
  }

  #reportDone (
    call: GatewayCall, { output, answer, response }: CallResult, error: unknown, outcome = outcomeOf(error)
  ): void {
    if (this.#hooks.onDone.length === 0) return
    const finished: FinishedCall = {
      exchange: call.exchange,
      provider: call.provider,
      item: call.item,
      startedAt: call.startedAt,
      trace: call.trace,
      policy: call.policy,
      guards: call.guards,
      duration: performance.now() - call.startedAt,
      outcome,
      output,
      answer,
      isToolError: output !== undefined && (response?.isError ?? isToolErrorResult(output)),
      error
    }
    for (const hook of this.#hooks.onDone) {
      try {
        // A hook may be an async function, whose rejection would end the process.
        const returned: unknown = hook(finished)
        if (returned instanceof Promise) returned.catch(this.#observerFailed)
      } catch (failure) {
        this.#observerFailed(failure)
      }
    }
  }
}

function outcomeOf (error: unknown): FinishedCall['outcome'] {
  if (error === undefined) return 'ok'
  return error instanceof RpcError && !failures.has(error.reason) ? 'error' : 'failure'
}

/** The reasons of errors that mean that a request got no answer. */
const failures: ReadonlySet<RpcError['reason']> =
  new Set(['not-connected', 'timeout', 'no-answer', 'cancelled', 'internal'])
