import type { Client, Question } from '../../protocol/exchange.ts'
import type { ProviderHost } from '../../protocol/provider.ts'
import type { CatalogueReviewer } from './catalogues/review.ts'
import type { ListLoaderDeps } from './catalogues/list-loader.ts'
import type { CatalogueLimitsAndStorage } from './catalogues/shares.ts'
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
  /**
   * Called with the params of a notification that belongs to no request in flight. Calls `send` with the params to send
   * to the client, or does not call it to drop the notification.
   */
  onNotification: (paramsText: string, send: (paramsText: string) => void) => void
  /** Sends a notification to every listening client that can see this server and for which `serves` returns true. */
  broadcast: (method: string, paramsText: string, serves: (client: Client) => boolean) => void
  /**
   * Returns the id under which a client knows a task of this server; undefined if the client does not know the task.
   * @param id the server's id of the task
   * @param task the new state of the task as JSON text, if the message contains it
   */
  taskHandle: (client: Client, id: string, task?: string) => string | undefined
}

export interface UpstreamDeps {
  connecting: ConnectionSettings
  /** Counts the processes of all stdio servers by the owner whose request started them. */
  children: ChildCounts
  listener: UpstreamListener
  /** Returns the logins at the server; undefined if the gateway does not log in there. */
  openLogin: (listener: LoginListener) => ServerLogin | undefined
  /** Returns the values that users provide for the server; undefined if its config has no user variables. */
  openValues: (changed: ValuesListener) => ServerValues | undefined
  allowance: CatalogueLimitsAndStorage
  review: CatalogueReviewer
  waiting: Pick<ListLoaderDeps, 'isUserOwned' | 'shouldWaitFor' | 'successor'>
}

/** A `ProviderHost` that ignores all events; used until the gateway is connected. */
export const noProviderHost: ProviderHost = {
  onListsChanged: () => {},
  onQuestion: async () => {},
  onNotification: () => undefined,
  broadcast: () => {},
  taskHandle: () => undefined
}
