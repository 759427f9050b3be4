import type { Client, Exchange, Question } from '../../protocol/exchange.ts'
import type { ListKind } from '../upstream/catalogues/catalogue.ts'
import type { View } from '../access/view.ts'

/** One request on its way to one server. `item`: the tool, prompt or resource by its own name, where there is one. */
export interface CallContext {
  readonly exchange: Exchange<View>
  readonly server: string
  readonly item: string | undefined
  /** When it came, as `performance.now()`. */ readonly started: number
}

/** What may be registered on the gateway, in the order of registration. What throws RpcError answers with it. */
export interface GatewayHooks {
  /** A list was asked for. */
  onList: (exchange: Exchange<View>, kind: ListKind) => Promise<void> | void
  /** Before a request goes upstream. */
  onCall: (context: CallContext) => Promise<void> | void
  /** After it came back: the text of its result, or another in its place. */
  onResult: (context: CallContext, result: string) => Promise<string> | string
  /** It came back with an error, or not at all. */
  onError: (context: CallContext, error: unknown) => Promise<void> | void
  /** An upstream asks a client. */
  onQuestion: (server: string, question: Question, client: Client) => Promise<void> | void
}

export type HookLists = { [Name in keyof GatewayHooks]: Array<GatewayHooks[Name]> }
export const noHooks = (): HookLists => ({ onList: [], onCall: [], onResult: [], onError: [], onQuestion: [] })
