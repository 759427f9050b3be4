import type { Client, Exchange, Question } from './exchange.ts'
import type { Catalogue } from './lists.ts'
import type { Response } from './message.ts'

export type ProviderStatus = 'connecting' | 'connected' | 'disconnected' | 'oauth_required' | 'disabled'

/** A provider is being asked for its lists. */
export interface Learning {
  /** Resolves when they are known; never rejects. */
  readonly done: Promise<unknown>
  /** How long this is worth waiting for, in ms. */
  readonly budget: number
}

/**
 * Whatever lists and runs items: an upstream server, the built-in prompts and resources, the tools of `$smart`. The gateway folds what
 * providers list into what a View sees, applies overrides and selections, and routes each request to the provider that owns the item.
 * Only `name`, `catalogue` and `call` are needed; what else is left out, a provider does not have.
 */
export interface Provider {
  /** Unique among providers; it stands before its items' names on merged routes. */
  readonly name: string
  /** Left out: it is always there. */
  readonly status?: ProviderStatus
  /** It can be called now: it is connected, or a call connects it. Left out: it can. */
  readonly available?: boolean
  /** Why it cannot be called now, for its clients. */
  readonly reason?: string
  /** What it lists to this client, as far as is known; undefined: nothing is known yet. */
  catalogue: (client: Client) => Catalogue | undefined
  /**
   * Runs one request.
   * @param changes members of the exchange's `params` that get another value, as JSON text
   * @returns its answer, which may be an error
   * @throws RpcError -32001 when there is no answer
   */
  call: (exchange: Exchange, changes: Readonly<Record<string, string>>) => Promise<Response>
  /** Finds out what it lists to this client, where that is not known or outdated. @param only the request is for this provider alone */
  learn?: (client: Client, only: boolean) => Learning[]
  /** What it lists to clients of every kind, as far as is known. */
  catalogues?: () => readonly Catalogue[]
  /** Subscribes a client to a resource. @param paramsText the client's own, as JSON text @returns the text of the result @throws RpcError */
  subscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  unsubscribe?: (client: Client, uri: string, paramsText?: string) => Promise<string>
  /** The resources that a client is subscribed to. */
  subscriptions?: (client: Client) => string[]
  /** A client wants log messages from another level on (its listener's). @throws RpcError */
  setLevel?: (client: Client) => Promise<void>
  /** Takes a notification of a client. */
  notify?: (client: Client, method: string, paramsText: string) => void
  /** A client is gone, or may not use this provider any more: its calls, subscriptions and links end. */
  release?: (client: Client) => Promise<void>
  /** A text of this provider without the secrets of its configuration. */
  redact?: (text: string) => string
}

/** What providers tell the gateway. */
export interface ProviderHost {
  /** What some provider lists has changed. */
  changed: () => void
  /** A provider asks a client something. @throws RpcError to refuse the question */
  question: (provider: string, question: Question, client: Client) => Promise<void>
  /** A notification for every listener that sees the provider and that it serves. */
  broadcast: (provider: string, method: string, paramsText: string, serves: (client: Client) => boolean) => void
}

/** A changing set of providers, such as all upstream servers. */
export interface ProviderSource {
  get: (name: string) => Provider | undefined
  /** Tells clients of one capability class apart that this source lists different things to. Equal texts: the same catalogues. */
  catalogueKey?: (client: Client) => string
  /** Called once, before anything is asked of it. */
  connect: (host: ProviderHost) => void
}
