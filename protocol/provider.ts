import type { Caching } from './caching.ts'
import type { RpcError } from './errors.ts'
import type { Client, Exchange, Question } from './exchange.ts'
import type { Catalogue, ListingHistory, ListKind } from './lists.ts'
import type { Response } from './message.ts'
import type { TraceContext } from './trace-context.ts'

export type ProviderStatus = 'connecting' | 'connected' | 'disconnected' | 'oauth_required' | 'disabled'

/** A provider whose lists are being read. */
export interface Learning {
  /** Resolves when they are known; never rejects. */
  readonly done: Promise<unknown>
  /** Max time to wait for it, in ms. */
  readonly budget: number
}

/**
 * A source of items, which it lists and runs: an upstream server, the built-in prompts and resources, the tools of
 * `$smart`. The gateway folds what providers list into what a View sees, applies overrides and selections, and routes
 * each request to the provider that owns the item. Only `name`, `catalogue` and `call` are required.
 */
export interface Provider {
  /** Unique among providers; the prefix of its items' names on merged routes. */
  readonly name: string
  /** Left out: it is always connected. */
  readonly status?: ProviderStatus
  /** True when it can be called now: it is connected, or a call connects it. Left out: true. */
  readonly available?: boolean
  /** The reason why it cannot be called now, for clients. */
  readonly reason?: string
  /** The error for a client that cannot use it now, such as one without a login; undefined: there is none. */
  refusal?: (client: Client) => RpcError | undefined
  /** Its catalogue for this client, as far as it is known; undefined: nothing is known yet. */
  catalogue: (client: Client) => Catalogue | undefined
  /**
   * Runs one request.
   * @param changes members of the exchange's `params` that get another value, as JSON text
   * @param trace its place in a trace, which `changes` hold as well: for servers that read headers
   * @returns the answer, which may be an error
   * @throws RpcError -32001 when there is none
   */
  call: (exchange: Exchange, changes: Readonly<Record<string, string>>, trace?: TraceContext) => Promise<Response>
  /**
   * How long one of its lists for this client may be kept from now on, and by whom; undefined, or left out: it is not
   * known.
   */
  caching?: (client: Client, kind: ListKind) => Caching | undefined
  /**
   * Reads its lists for this client, where they are unknown or outdated.
   * @param only true: the request is for this provider alone
   */
  learn?: (client: Client, only: boolean) => Learning[]
  /**
   * Reads its lists for this client, which has asked for an item that they may hold: undefined where they are known, or
   * nothing is connected. Rejects where they cannot be read. @throws RpcError -32001 when the client's owner has used
   * up what may be opened
   */
  readFor?: (client: Client) => Promise<void> | undefined
  /** Its catalogues for all classes of clients, as far as they are known. */
  catalogues?: () => readonly Catalogue[]
  /**
   * Since when it lists its items, where it knows that from earlier runs, too. Left out: since the gateway has seen
   * them.
   */
  readonly claims?: ListingHistory
  /**
   * Subscribes a client to a resource.
   * @param paramsText params of the client's request, as JSON text
   * @returns the text of the result
   * @throws RpcError
   */
  subscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  /**
   * Subscribes a client again to a resource, now or as soon as the provider is connected. Returns at once.
   * @throws RpcError where there is no room for it
   */
  resubscribe?: (client: Client, uri: string) => void
  unsubscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  /** The resources that a client is subscribed to. */
  subscriptions?: (client: Client) => string[]
  /** Applies the log level of a client's listener, which has changed. @throws RpcError */
  setLevel?: (client: Client) => Promise<void>
  /** Receives a notification of a client. */
  notify?: (client: Client, method: string, paramsText: string) => void
  /** Ends the calls, subscriptions and links of a client that is gone, or may not use this provider any more. */
  release?: (client: Client) => Promise<void>
  /**
   * Resources whose URIs begin with this are read from it on every route; they stand in no list, and it decides who may
   * read them.
   */
  uriPrefix?: string
  /** A text of this provider without the secrets of its configuration. */
  redact?: (text: string) => string
}

/** The gateway, as providers see it. */
export interface ProviderHost {
  /** The lists of some provider have changed. */
  changed: () => void
  /** A provider is about to put a question to a client. @throws RpcError to refuse the question */
  question: (provider: string, question: Question, client: Client) => Promise<void>
  /** Sends a notification to every listener that sees the provider and whose client `serves` accepts. */
  broadcast: (provider: string, method: string, paramsText: string, serves: (client: Client) => boolean) => void
}

/** A changing set of providers, such as all upstream servers. */
export interface ProviderSource {
  get: (name: string) => Provider | undefined
  /** A text that differs between clients of one capability class if their catalogues of this source differ. */
  catalogueKey?: (client: Client) => string
  /** Called once, before any other method. */
  connect: (host: ProviderHost) => void
}
