import type { Caching } from './caching.ts'
import type { RpcError } from './errors.ts'
import type { Client, Exchange, Question } from './exchange.ts'
import type { Catalogue, ListingHistory, ListKind } from './lists.ts'
import type { Response } from './message.ts'
import type { TraceContext } from './trace-context.ts'

export type ProviderStatus = 'connecting' | 'connected' | 'disconnected' | 'oauth_required' | 'disabled'

/** The reading of a provider's lists, in progress. */
export interface ListLoading {
  /** Resolves when the lists are known; never rejects. */
  readonly done: Promise<unknown>
  /** Max time to wait for it, in ms. */
  readonly budget: number
}

/**
 * A source of items, which it lists and runs: an upstream server, the built-in prompts and resources, the tools of
 * `$smart`. The gateway folds the providers' lists into what a View sees, applies overrides and selections, and routes
 * each request to the provider of the item. Only `name`, `catalogue` and `call` are required.
 */
export interface Provider {
  /** Unique among providers; prefix of its items' names on merged routes. */
  readonly name: string
  /** Default: always connected. */
  readonly status?: ProviderStatus
  /** Whether it can be called now: it is connected, or a call connects it. Default: true. */
  readonly isAvailable?: boolean
  /** The reason why the provider cannot be called now, in words for clients. */
  readonly unavailableReason?: string
  /** The error for a client that cannot use the provider now, for example without a login; otherwise undefined. */
  refusal?: (client: Client) => RpcError | undefined
  /** Its catalogue for this client; undefined while nothing is known. */
  catalogue: (client: Client) => Catalogue | undefined
  /**
   * Runs one request.
   * @param changes members of the exchange's `params` to replace, as JSON text
   * @param trace the trace context, which `changes` contain as well: for servers that read headers
   * @returns the answer, which may be an error
   * @throws RpcError -32001 when there is none
   */
  call: (exchange: Exchange, changes: Readonly<Record<string, string>>, trace?: TraceContext) => Promise<Response>
  /**
   * Identifies the run of the provider that a task of the exchange's client ends with; '': the task may outlive it.
   * Default: ''.
   * @param id the provider's own
   * @returns undefined when that run has ended, or the task is known to be another principal's
   * @throws the errors of `call`
   */
  taskRun?: (exchange: Exchange, id: string) => string | undefined
  /** For how long and for whom one of its lists for this client may be cached from now on; undefined: unknown. */
  caching?: (client: Client, kind: ListKind) => Caching | undefined
  /** Reads its lists for this client if unknown or outdated. @param only whether the request is for it alone */
  loadLists?: (client: Client, only: boolean) => ListLoading[]
  /**
   * Reads its lists for a client that has asked for an unknown item; undefined when they are known, or nothing is
   * connected. Rejects when they cannot be read.
   * @throws RpcError -32001 when the client's owner has used up its share
   */
  loadListsForItem?: (client: Client) => Promise<void> | undefined
  /** Its known catalogues, for all classes of clients. */
  catalogues?: () => readonly Catalogue[]
  /** When its items were first listed, including earlier runs. Default: the gateway records that itself. */
  readonly claims?: ListingHistory
  /**
   * Subscribes a client to a resource.
   * @param paramsText params of the client's request, as JSON text
   * @returns the text of the result
   * @throws RpcError
   */
  subscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  /**
   * Renews a client's subscription to a resource, now or as soon as the provider is connected. Returns at once.
   * @throws RpcError when there is no room for it
   */
  resubscribe?: (client: Client, uri: string) => void
  unsubscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  /** The resources that a client is subscribed to. */
  subscriptions?: (client: Client) => string[]
  /**
   * Applies the changed log level of a client's listener.
   * @param paramsText params of the client's request, if they have members beside the level
   * @throws RpcError
   */
  setLevel?: (client: Client, paramsText?: string) => Promise<void>
  /** Receives a notification of a client. */
  notify?: (client: Client, method: string, paramsText: string) => void
  /** Ends the calls, subscriptions and links of a client that is gone or has lost access to this provider. */
  release?: (client: Client) => Promise<void>
  /** Prefix of URIs that are read from it on every route, in no list; the provider decides who may read them. */
  uriPrefix?: string
  /** Removes the secrets of its configuration from a text. */
  redact?: (text: string) => string
}

/** The gateway, as providers see it. */
export interface ProviderHost {
  /** The lists of some provider have changed. */
  changed: () => void
  /** A provider is about to send a question to a client. @throws RpcError to refuse the question */
  question: (provider: string, question: Question, client: Client) => Promise<void>
  /** Sends a notification that belongs to no request in flight, as `send` does, unless it may not be sent. */
  onNotification: (provider: string, paramsText: string, send: (paramsText: string) => void) => void
  /** Sends a notification to every listener that sees the provider and whose client `serves` accepts. */
  broadcast: (provider: string, method: string, paramsText: string, serves: (client: Client) => boolean) => void
  /**
   * The id under which a client knows a provider's task; undefined: it knows none.
   * @param task its new state, as JSON text, if the provider tells of it
   */
  taskHandle: (provider: string, client: Client, id: string, task?: string) => string | undefined
}

/** A changing set of providers, such as all upstream servers. */
export interface ProviderSource {
  get: (name: string) => Provider | undefined
  /** A text that differs between clients of one capability class if this source has different catalogues for them. */
  catalogueKey?: (client: Client) => string
  /** Called once, before any other method. */
  connect: (host: ProviderHost) => void
}
