import type { Client, Exchange, Question } from '../../protocol/exchange.ts'
import type { ListKind } from '../../protocol/lists.ts'
import type { View } from '../access/view.ts'
import type { Entry } from './list.ts'

/** One request on its way to one provider. */
export interface GatewayCall {
  readonly exchange: Exchange<View>
  /** The server's name. */
  readonly provider: string
  /** The tool, prompt or resource by its own name, where there is one. */
  readonly item: string | undefined
  /** When it came, as `performance.now()`. */
  readonly startedAt: number
}

/** `ok` a result · `error` a JSON-RPC error, of the provider or of a hook · `failure` no answer at all. */
export type Outcome = 'ok' | 'error' | 'failure'

/**
 * One request that is over. Who asked: `exchange.view.principal` (`username`, `credential`) and `exchange.address`; what:
 * `exchange.paramsText`.
 */
export interface FinishedCall extends GatewayCall {
  readonly outcome: Outcome
  /** In ms. */
  readonly duration: number
  /** The text of the result as the provider gave it, before any `onResult`; undefined: there is none. */
  readonly output: string | undefined
  /** What was thrown instead of an answer; undefined: the outcome is `ok`. */
  readonly error: unknown
}

/**
 * What may be registered on the gateway; hooks run in the order of registration, and are awaited only where they return a promise.
 * What `onList`, `onCall`, `onResult` or `onQuestion` throw as RpcError is answered instead.
 */
export interface GatewayHooks {
  /** A list is about to be answered: returns its entries, changed or not. */
  onList: (exchange: Exchange<View>, kind: ListKind, entries: readonly Entry[]) => readonly Entry[] | Promise<readonly Entry[]>
  /** A request is about to be sent to its provider. */
  onCall: (call: GatewayCall) => Promise<void> | void
  /** A result came back: returns its text, or another in its place. */
  onResult: (call: GatewayCall, result: string) => Promise<string> | string
  /**
   * A call is over. Sees each call exactly once, after all other hooks, and is not waited for; what it throws is logged and changes
   * nothing.
   */
  onDone: (call: FinishedCall) => void
  /** A provider is about to ask a client. */
  onQuestion: (provider: string, question: Question, client: Client) => Promise<void> | void
}

export type HookLists = { [Name in keyof GatewayHooks]: Array<GatewayHooks[Name]> }
export const noHooks = (): HookLists => ({ onList: [], onCall: [], onResult: [], onDone: [], onQuestion: [] })
