import type { Caching } from './caching.ts'
import type { RpcError } from './errors.ts'
import type { Client, Exchange, Question } from './exchange.ts'
import type { Catalogue, ListingHistory, ListKind } from './lists.ts'
import type { Response } from './message.ts'
import type { TraceContext } from './trace-context.ts'

export type ProviderStatus = 'connecting' | 'connected' | 'disconnected' | 'oauth_required' | 'disabled'

/** A read of a provider's lists that is in progress. */
export interface ListLoading {
  /** Resolves when the lists are known; never rejects. */
  readonly done: Promise<unknown>
  /** Max time to wait for `done`, in ms. */
  readonly maxWait: number
}

/**
 * Something that lists items and runs them: an upstream server, the built-in prompts and resources, or the tools of
 * `$smart`. The gateway merges the lists of providers into what a view sees, applies overrides and selections, and
 * routes each request to the provider of its item. Only `name`, `catalogue` and `call` are required.
 */
export interface Provider {
  /** Unique among providers; the prefix of its items' names on merged routes. */
  readonly name: string
  /** The connection status. Default: `connected`. */
  readonly status?: ProviderStatus
  /** Whether the provider can be called now: it is connected, or a call would connect it. Default: true. */
  readonly isAvailable?: boolean
  /** Why the provider cannot be called now, as a text for clients. */
  readonly unavailableReason?: string
  /** Returns an error if the client must first do something, such as log in; undefined if it may use the provider. */
  refusal?: (client: Client) => RpcError | undefined
  /** Returns the provider's catalogue for a client; undefined until the provider's lists have been read. */
  catalogue: (client: Client) => Catalogue | undefined
  /**
   * Runs one request.
   * @param changes members of the exchange's `params` to replace, as JSON text
   * @param trace the trace context for servers that read headers; `changes` contain it as well
   * @returns the answer, which may be an error
   * @throws RpcError -32001 if there is none
   */
  call: (exchange: Exchange, changes: Readonly<Record<string, string>>, trace?: TraceContext) => Promise<Response>
  /**
   * Returns the id of the provider's run (such as a process) with which a task of the exchange's client ends; '' if the
   * task ends with no run; undefined if the run has ended, or the task is known to be another principal's. Default: ''.
   * @param id the provider's id of the task
   * @throws the errors of `call`
   */
  taskRun?: (exchange: Exchange, id: string) => string | undefined
  /** Returns for how long from now, and for whom, a client's list may be cached; undefined if unknown. */
  caching?: (client: Client, kind: ListKind) => Caching | undefined
  /**
   * Reads the provider's lists for a client if they are unknown or outdated.
   * @param only whether the client requests the lists of this provider alone
   */
  loadLists?: (client: Client, only: boolean) => ListLoading[]
  /**
   * Reads the provider's lists for a client that requested an unknown item. The promise rejects if that fails.
   * @returns undefined if the lists are already known, or the provider is not connected
   * @throws RpcError -32001 if this requires a new connection, and a limit of connections is reached
   */
  loadListsForItem?: (client: Client) => Promise<void> | undefined
  /** Returns the provider's known catalogues, for all capability classes. */
  catalogues?: () => readonly Catalogue[]
  /** When the provider's items were first listed, including in earlier runs. Default: the gateway records it. */
  readonly listingHistory?: ListingHistory
  /**
   * Subscribes a client to a resource.
   * @param paramsText params of the client's request, as JSON text
   * @returns the result, as JSON text
   * @throws RpcError
   */
  subscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  /**
   * Renews a client's subscription to a resource, now or when the provider connects. Returns immediately.
   * @throws RpcError if the limit of subscriptions is reached
   */
  resubscribe?: (client: Client, uri: string) => void
  unsubscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  /** Returns the URIs of the resources that a client is subscribed to. */
  subscriptions?: (client: Client) => string[]
  /**
   * Applies the new log level of a client's listener.
   * @param paramsText params of the client's request, if they have members other than the level
   * @throws RpcError
   */
  setLevel?: (client: Client, paramsText?: string) => Promise<void>
  /** Receives a notification from a client. */
  notify?: (client: Client, method: string, paramsText: string) => void
  /** Ends the calls, subscriptions and links of a client that has disconnected or lost access to this provider. */
  release?: (client: Client) => Promise<void>
  /** The prefix of unlisted URIs that can be read on every route. The provider decides who may read them. */
  uriPrefix?: string
  /** Masks the secrets of the provider's configuration in a text. */
  redact?: (text: string) => string
}

/** The gateway, as providers see it. */
export interface ProviderHost {
  /** Called when the lists of any provider have changed. */
  onListsChanged: () => void
  /** Called before a provider sends a question to a client. @throws RpcError to refuse it */
  onQuestion: (provider: string, question: Question, client: Client) => Promise<void>
  /**
   * Passes a notification that belongs to no open request to the hooks, then calls `send` with the resulting params
   * unless a hook drops it.
   */
  onNotification: (provider: string, paramsText: string, send: (paramsText: string) => void) => void
  /** Sends a notification to every listener that sees the provider and whose client satisfies `serves`. */
  broadcast: (provider: string, method: string, paramsText: string, serves: (client: Client) => boolean) => void
  /**
   * Returns the id under which a client knows a provider's task; undefined if the client knows no such task.
   * @param task the task's new state, as JSON text, if the provider reported one
   */
  taskHandle: (provider: string, client: Client, id: string, task?: string) => string | undefined
}

/** A changing set of providers, such as all upstream servers. */
export interface ProviderSource {
  get: (name: string) => Provider | undefined
  /** Returns a key that differs between clients of one capability class who get different catalogues. */
  catalogueKey?: (client: Client) => string
  /** Called once, before any other method. */
  connect: (host: ProviderHost) => void
}
