import type { Client, Question } from '../../protocol/exchange.ts'
import type { CatalogueAllowance } from './catalogues/shares.ts'
import type { Connecting } from './links/connect.ts'
import type { Children } from './links/pool.ts'
import type { LoginListener, ServerLogin } from './login/server-login.ts'

/** What an upstream tells its surroundings. */
interface UpstreamListener {
  log: (level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
  listsChanged: () => void
  statusChanged: () => void
  /** Called before a question is put to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, client: Client) => Promise<void>
  /** A notification for every listener that sees this server and that the server serves. */
  broadcast: (method: string, paramsText: string, serves: (client: Client) => boolean) => void
}

export interface UpstreamDeps {
  connecting: Connecting
  /** The processes that clients have caused at all servers. */
  children: Children
  listener: UpstreamListener
  /** Whether the value of a header holds a credential of this gateway. */
  isOurs?: ((value: string) => boolean) | undefined
  /** Begins the logins of the server; undefined: it takes none. */
  openLogin: (listener: LoginListener) => ServerLogin | undefined
  allowance: CatalogueAllowance
  /**
   * `isUsers`: the server counts to a user without admin rights. `isWaitedFor`: a merged list waits for its first
   * lists.
   */
  waiting: { isUsers: () => boolean, isWaitedFor: (client: Client) => boolean }
}
