import type { Client, Question } from '../../protocol/exchange.ts'
import type { ProviderHost } from '../../protocol/provider.ts'
import type { CatalogueReview } from './catalogues/review.ts'
import type { CatalogueAllowance } from './catalogues/shares.ts'
import type { ConnectionSettings } from './links/connect.ts'
import type { ChildCounts } from './links/pool.ts'
import type { LoginListener, ServerLogin } from './login/server-login.ts'
import type { ServerValues, ValuesListener } from './values/server-values.ts'

/** Receives the events of an upstream. */
export interface UpstreamListener {
  log: (level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
  listsChanged: () => void
  statusChanged: () => void
  /** Called before a question is sent to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, client: Client) => Promise<void>
  /** Sends a notification that belongs to no request in flight by calling `send`, unless it must not be sent. */
  onNotification: (paramsText: string, send: (paramsText: string) => void) => void
  /** Sends a notification to every listener that sees this server and that the server serves. */
  broadcast: (method: string, paramsText: string, serves: (client: Client) => boolean) => void
  /**
   * The id under which a client knows a task of this server; undefined if the client does not know the task.
   * @param task the new state of the task, as JSON text, if the message contains it
   */
  taskHandle: (client: Client, id: string, task?: string) => string | undefined
}

export interface UpstreamDeps {
  connecting: ConnectionSettings
  /** Counts the processes that clients have caused at all servers. */
  children: ChildCounts
  listener: UpstreamListener
  /** Begins the logins of the server; undefined if it accepts none. */
  openLogin: (listener: LoginListener) => ServerLogin | undefined
  /** Opens the values that the server's users provide; undefined if it has no such variables. */
  openValues: (changed: ValuesListener) => ServerValues | undefined
  allowance: CatalogueAllowance
  review: CatalogueReview
  /**
   * `isUserOwned`: whether a user without admin rights owns it. `shouldWaitFor`: whether a merged list waits for its
   * first lists.
   */
  waiting: { isUserOwned: () => boolean, shouldWaitFor: (client: Client) => boolean }
}

/** The host before a gateway is connected: it ignores everything. */
export const noProviderHost: ProviderHost = {
  onListsChanged: () => {},
  onQuestion: async () => {},
  onNotification: () => undefined,
  broadcast: () => {},
  taskHandle: () => undefined
}
