import type { RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange, Question } from '../../protocol/exchange.ts'
import type { ListKind } from '../../protocol/lists.ts'
import type { TraceContext } from '../../protocol/trace-context.ts'
import type { ItemFilter, View } from '../settings/index.ts'
import type { ListEntry } from './list.ts'

/** A request on its way to a provider. */
export interface GatewayCall {
  /** An `onCall` hook may replace it, for example by one with other arguments (`withArguments`). */
  exchange: Exchange<View>
  /** The server's name. */
  readonly provider: string
  /** The named tool, prompt or resource by its own name, or a task of a tool. Hooks may replace it for observers. */
  item: string | undefined
  /** The time of its arrival, as `performance.now()`. */
  readonly startedAt: number
  /** The trace context that is passed to the server. An `onCall` hook sets it. */
  trace: TraceContext | undefined
  /** The policy that applies to it, for its record. An `onCall` hook sets it. */
  policy: AppliedPolicy | undefined
  /** What guards have found in it, for its record. */
  guards?: readonly GuardFinding[]
  /** Why it cannot be sent, whatever hooks decide: its provider is not connected. */
  readonly failure?: RpcError
}

/** The kinds of content that a guard found in a call. */
export interface GuardFinding {
  readonly id: string
  readonly name: string
  readonly action: 'flag' | 'mask' | 'refuse'
  readonly found: readonly string[]
}

/** A policy that decided about a call, or, in the mode `observe`, would have decided. */
export interface AppliedPolicy {
  readonly id: string
  readonly name: string
  readonly mode: 'enforce' | 'observe'
  readonly decision: 'allow' | 'deny' | 'ask' | 'hide'
}

/**
 * `ok`: a result. `error`: a JSON-RPC error of the provider or a hook. `failure`: no answer. `input_required`: the
 * client is asked for input, and its next request continues the call (MCP 2026-07-28).
 */
type Outcome = 'ok' | 'error' | 'failure' | 'input_required'

/**
 * A request that has ended. The caller is in `exchange.view.principal` (`username`, `credential`) and
 * `exchange.address`, the params in `exchange.paramsText`.
 */
export interface FinishedCall extends GatewayCall {
  readonly outcome: Outcome
  /** The duration of the call, in ms. */
  readonly duration: number
  /** The result as JSON, after `onOutput` hooks and before `onResult`; undefined: an error or `input_required`. */
  readonly output: string | undefined
  /** The result as `onResult` hooks left it, which is answered; undefined as for `output`. */
  readonly answer: string | undefined
  /** Whether the result says that its tool failed. */
  readonly isToolError: boolean
  /** The error; undefined when the outcome is `ok` or `input_required`. */
  readonly error: unknown
}

/**
 * The hooks of the gateway. They run in the order of registration, and are awaited only if they return a promise. An
 * RpcError thrown by `onList`, `onCall`, `onOutput`, `onError`, `onResult` or `onQuestion` is answered instead of the
 * result.
 */
export interface GatewayHooks {
  /** Called before a list is answered. @returns its entries, changed or not */
  onList: (exchange: Exchange<View>, kind: ListKind, entries: readonly ListEntry[]) =>
    readonly ListEntry[] | Promise<readonly ListEntry[]>
  /**
   * Called when a request names a view, and whenever its lists may have changed.
   * @param address that of the request; undefined: it is not known
   * @returns the items that the view does not show; undefined: it shows all. The same object for the same items
   */
  onView: (view: View, address: string | undefined) => ItemFilter | undefined
  /** Called before a client subscribes to a resource of a provider. */
  onSubscribe: (exchange: Exchange<View>, provider: string, uri: string) => Promise<void> | void
  /** Called before a request is sent to its provider. */
  onCall: (call: GatewayCall) => Promise<void> | void
  /**
   * Called with the text of a provider's result that ends its call, before `onResult`. What it returns is the result
   * for all that follows, records of the call included.
   */
  onOutput: (call: GatewayCall, result: string) => Promise<string> | string
  /** Called with the error that ends a call, before it is recorded. @returns the error for all that follows */
  onError: (call: GatewayCall, error: RpcError) => Promise<RpcError> | RpcError
  /** Called with the text of a result that ends its call. @returns the text to answer with */
  onResult: (call: GatewayCall, result: string) => Promise<string> | string
  /**
   * Called exactly once per request, after all other hooks, and not awaited. Exceptions are logged. A call has exactly
   * one outcome other than `input_required`, which a hook that counts calls should use.
   */
  onDone: (call: FinishedCall) => void
  /**
   * Called with a notification of a provider that belongs to no request in flight, or with an event that it sends to
   * a webhook; those of a request go through `exchange.notify`.
   * @returns its params, changed or not; undefined: it is dropped
   */
  onNotification: (provider: string, paramsText: string) => Promise<string | undefined> | string | undefined
  /** Called when the lists of a provider may have changed. */
  onListsChanged: () => void
  /** Called before a provider sends a question to a client. */
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

/** A notification as its hooks leave it. @returns its params; undefined: it is dropped, also when a hook fails */
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

/** Sends a notification as its hooks leave it. */
export function passNotification (
  hooks: HookLists, provider: string, paramsText: string, send: (paramsText: string) => void
): void {
  if (hooks.onNotification.length === 0) { send(paramsText); return }
  screenNotification(hooks, provider, paramsText)
    .then((text) => { if (text !== undefined) send(text) })
    .catch(() => {})
}
