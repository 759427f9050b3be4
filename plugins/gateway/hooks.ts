import type { Static } from '@sinclair/typebox'
import type { RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange, Question } from '../../protocol/exchange.ts'
import type { ListKind } from '../../protocol/lists.ts'
import type { TraceContext } from '../../protocol/trace-context.ts'
import type { AppliedPolicyRecord as AppliedPolicySchema } from '../../schemas/policies.ts'
import type { ItemFilter, View } from '../settings/index.ts'
import type { ListEntry } from './list.ts'

/** A request on its way to a provider. */
export interface GatewayCall {
  /** The request. An `onCall` hook may replace it, for example by one with other arguments (`withArguments`). */
  exchange: Exchange<View>
  /** The name of the provider, which is a server or a registered provider. */
  readonly provider: string
  /**
   * The provider's name of the tool (also for its tasks) or prompt, or the URI of the resource. If a hook replaces it,
   * later hooks see the new value; the request stays the same.
   */
  item: string | undefined
  /** When the gateway began to process the request, as `performance.now()`. */
  readonly startedAt: number
  /** The trace context to send to the server. Set by an `onCall` hook. */
  trace: TraceContext | undefined
  /** The policy applied to the call, for the call record. Set by an `onCall` hook. */
  policy: AppliedPolicy | undefined
  /** What guards found in the call, for the call record. */
  guards?: readonly GuardFinding[]
  /** Set if the request cannot be sent, since its provider is not connected. */
  readonly failure?: RpcError
}

/** What one guard found in a call. */
export interface GuardFinding {
  readonly id: string
  readonly name: string
  readonly action: 'flag' | 'mask' | 'refuse'
  readonly found: readonly string[]
}

export type AppliedPolicy = Readonly<Static<typeof AppliedPolicySchema>>

/**
 * `ok`: a result. `error`: a JSON-RPC error of the provider or a hook. `failure`: no answer. `input_required`: the
 * client must provide input, and its next request continues the call (MCP 2026-07-28).
 */
type Outcome = 'ok' | 'error' | 'failure' | 'input_required'

/**
 * A request that has ended. `exchange.view.principal` (`username`, `credential`) and `exchange.address` identify the
 * caller, `exchange.paramsText` has the params.
 */
export interface FinishedCall extends GatewayCall {
  readonly outcome: Outcome
  /** The duration of the call, in ms. */
  readonly duration: number
  /** The result as JSON, after `onOutput` and before `onResult` hooks; undefined after an error or `input_required`. */
  readonly output: string | undefined
  /** The result after the `onResult` hooks, as sent to the client; undefined after an error or `input_required`. */
  readonly answer: string | undefined
  /** Whether the result reports a tool error. */
  readonly isToolError: boolean
  /** The error; undefined if the outcome is `ok` or `input_required`. */
  readonly error: unknown
}

/**
 * The hooks of the gateway, which run in the order of registration. If `onList`, `onSubscribe`, `onCall`, `onOutput`,
 * `onError` or `onResult` throws an RpcError, the client gets this error instead of the result.
 */
export interface GatewayHooks {
  /** Called before a list is sent. @returns its entries, changed or not */
  onList: (exchange: Exchange<View>, kind: ListKind, entries: readonly ListEntry[]) =>
    readonly ListEntry[] | Promise<readonly ListEntry[]>
  /**
   * Called for each request with a view, and whenever the lists of a view may have changed.
   * @param address the IP address of the request; undefined if unknown
   * @returns a filter of the items to hide, the same object as long as the same items are hidden; undefined: hide none
   */
  onView: (view: View, address: string | undefined) => ItemFilter | undefined
  /** Called before a client subscribes to a provider's resource. Throws to refuse the subscription. */
  onSubscribe: (exchange: Exchange<View>, provider: string, uri: string) => Promise<void> | void
  /** Called before a request is sent to its provider. */
  onCall: (call: GatewayCall) => Promise<void> | void
  /**
   * Called with the text of a provider's result that ends its call, before `onResult`. The returned text replaces the
   * result, also in call records.
   */
  onOutput: (call: GatewayCall, result: string) => Promise<string> | string
  /** Called with the error that ends a call, before it is recorded. @returns the error to use from now on */
  onError: (call: GatewayCall, error: RpcError) => Promise<RpcError> | RpcError
  /** Called with the text of a result that ends its call. @returns the text to answer with */
  onResult: (call: GatewayCall, result: string) => Promise<string> | string
  /**
   * Called once for each request, after all other hooks, and not awaited. Exceptions are logged. If a call takes
   * several requests, all but the last one have the outcome `input_required`: hooks that count calls should ignore
   * these requests.
   */
  onDone: (call: FinishedCall) => void
  /**
   * Called with the params of a provider's notification that belongs to no open request, or with an event that the
   * provider sends to a webhook. Notifications of a request go to `exchange.notify`.
   * @returns the params, changed or not; undefined to drop the notification
   */
  onNotification: (provider: string, paramsText: string) => Promise<string | undefined> | string | undefined
  /** Called when a provider's lists may have changed. */
  onListsChanged: () => void
  /**
   * Called before a provider sends a question to a client. To refuse the question, it throws an RpcError, which the
   * provider gets.
   */
  onQuestion: (provider: string, question: Question, client: Client) => Promise<void> | void
}

export type HookLists = { [Name in keyof GatewayHooks]: Array<GatewayHooks[Name]> }
export const createHookLists = (): HookLists => ({
  onList: [],
  onView: [],
  onSubscribe: [],
  onCall: [],
  onOutput: [],
  onError: [],
  onResult: [],
  onDone: [],
  onNotification: [],
  onListsChanged: [],
  onQuestion: []
})

/** Passes a notification through the hooks. @returns its params; undefined if a hook drops it, or throws */
export async function screenNotification (
  { onNotification }: HookLists, provider: string, paramsText: string
): Promise<string | undefined> {
  let text: string | undefined = paramsText
  try {
    for (const hook of onNotification) if (text !== undefined) text = await hook(provider, text)
  } catch {
    return undefined
  }
  return text
}

/** Passes a notification through the hooks, then sends it, unless a hook drops it or throws. */
export function passNotification (
  hooks: HookLists, provider: string, paramsText: string, send: (paramsText: string) => void
): void {
  if (hooks.onNotification.length === 0) { send(paramsText); return }
  screenNotification(hooks, provider, paramsText)
    .then((text) => { if (text !== undefined) send(text) })
    .catch(() => {})
}
