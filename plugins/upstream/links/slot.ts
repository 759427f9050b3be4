import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import type { Client } from '../../../protocol/exchange.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import { lowerLogLevel, type LogLevel } from '../../../protocol/listener.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import { Circuit } from './circuits.ts'
import type { Link } from './link.ts'
import type { LinkKey } from './link-key.ts'
import type { PassedHeaders } from './passthrough.ts'
import { SubscriptionTable } from './subscription-table.ts'
import { TaskAndElicitationRegistry } from './task-registry.ts'

/** The level at which most servers send log messages if none is set. */
const defaultLevel: LogLevel = 'info'

/** The initial values of the members of `Slot` with the same names. */
interface SlotOptions {
  readonly owner?: Client
  readonly shareOwner?: string
  readonly user?: string
}

/**
 * The place of a link (a connection to a server), which may be empty. It keeps the state that outlives the link, such
 * as subscriptions, and restores it on the next link.
 */
export class Slot {
  readonly key: LinkKey
  /** The only client that the slot serves; undefined if it may serve several. */
  readonly owner: Client | undefined
  /** The owner whose share the slot counts against: the owner of the client for which it was created. */
  readonly shareOwner: string
  readonly capabilities: ClientCapabilities
  /** The user whose link it is; undefined if clients of several users share it. */
  readonly user: string | undefined
  /** Subscription requests in flight, by URI: further subscribers wait for the same answer. */
  readonly subscribing = new Map<string, Promise<string>>()
  readonly subscriptions = new SubscriptionTable()
  /** The tasks and elicitation pages that outlive the calls that started them. */
  readonly tasks = new TaskAndElicitationRegistry()
  readonly circuit = new Circuit()
  link: Link | undefined
  /** The attempt to open the link, while it is in progress. */
  opening: Promise<Link> | undefined
  /** The link that is being opened. */
  openingLink: Link | undefined
  /** Whether the slot has ended. A link that is being opened is then closed. */
  hasEnded = false
  /** The number of clients' notifications that wait until the link is open. */
  waitingNotifications = 0
  /** The params of the last client request for a log level, if they have members other than the level. */
  levelParams: string | undefined
  /** The time of the last attempt to open the link, in ms since the epoch. */
  lastTry = 0
  /** The number of retries since the link was last open. */
  failures = 0
  /** Begins the next attempt to open the link. */
  retryTimer: NodeJS.Timeout | undefined
  /** The passed-on headers of the last request on this slot, for messages without headers of their own. */
  passedHeaders: PassedHeaders | undefined
  /** The catalogue that was read on this link, if it differs from the one for the capability class. */
  catalogue: Catalogue | undefined
  /** The ids of the clients whose headers the link carries. */
  readonly #carriesFor = new Set<string>()
  /** The clients that are registered for the messages of the link, by id. */
  readonly #clients = new Map<string, Client>()

  constructor (key: LinkKey, capabilities: ClientCapabilities, { owner, shareOwner = '', user }: SlotOptions = {}) {
    this.key = key
    this.capabilities = capabilities
    this.owner = owner
    this.shareOwner = shareOwner
    this.user = user
  }

  /** Restores the log level and the subscriptions of the slot on a new link. */
  async restore (link: Link): Promise<void> {
    if (this.level !== undefined) await link.setLevel(this.level, this.levelParams).catch(() => {})
    for (const client of this.subscriptions.clients) link.recordUser(client)
    const budget = new LoopBudget()
    for (const uri of this.subscriptions.uris) {
      if (budget.isSpent) await budget.yieldToEventLoop()
      link.subscribe(uri).catch(() => {})
    }
  }

  /**
   * Records that a client's request, with these passed-on headers, is about to use the slot.
   * @param id the client's id
   */
  carryHeaders (id: string, passed: PassedHeaders | undefined): void {
    this.passedHeaders = passed
    if (passed && this.owner === undefined) this.#carriesFor.add(id)
  }

  carriesHeadersOf ({ id, linkOwner }: Client): boolean {
    return this.#carriesFor.has(id) || this.owner?.id === (linkOwner?.id ?? id)
  }

  /**
   * Records that the link no longer carries headers of a client.
   * @returns whether this was the last client whose headers it carried
   */
  stopCarrying (id: string): boolean { return this.#carriesFor.delete(id) && this.#carriesFor.size === 0 }

  /** Whether the slot's link can be closed without effect on any client. */
  get isIdle (): boolean {
    return this.opening === undefined && this.subscriptions.size === 0 && !this.tasks.hasAny && this.link?.busy !== true
  }

  /**
   * The time since which all open calls of the link have waited for answers of their clients, in ms since the epoch;
   * undefined if a call does not wait for its client, or the link is needed for something else.
   */
  get awaitingClientSince (): number | undefined {
    const calls = this.link?.openCalls ?? []
    if (this.opening !== undefined || this.subscriptions.size > 0 || this.tasks.hasAny || calls.length === 0) {
      return undefined
    }
    const times = calls.map(({ awaitingClientSince }) => awaitingClientSince ?? Infinity)
    const last = Math.max(...times)
    return last === Infinity ? undefined : last
  }

  /** Closes the link, even if it is still being opened. The next use opens a new one, unless the slot has ended. */
  async closeLinks (): Promise<void> {
    const { link, openingLink } = this
    this.link = undefined
    await Promise.all([link?.close(), openingLink?.close()])
  }

  /** Whether a client is registered for the messages of the link. */
  hasClient (client: Client): boolean { return this.#clients.has(client.id) }

  /** Registers a client for the messages of the link, if it can receive any. */
  registerClient (client: Client): void {
    if (client.listener) this.#clients.set(client.id, client)
  }

  /**
   * The log level for the slot's link: the least severe level of its registered clients; undefined if neither a client
   * nor the link has one. A client without a level counts as `info`, so that it gets what most servers send by default.
   */
  get level (): LogLevel | undefined {
    let lowest: LogLevel | undefined
    let isSet = this.link?.level !== undefined
    for (const { listener } of this.#clients.values()) {
      lowest = lowerLogLevel(lowest, listener?.level ?? defaultLevel)
      isSet ||= listener?.level !== undefined
    }
    return isSet ? lowest : undefined
  }

  /** Sets the log level of the link to the slot's `level`. */
  updateLevel (): void {
    const level = this.link && this.level
    if (level !== undefined) this.link?.setLevel(level).catch(() => {})
  }

  /** The clients with subscriptions or a log level. */
  get clients (): Client[] {
    const clients = new Map<string, Client>()
    for (const client of this.#clients.values()) {
      if (client.listener?.level !== undefined) clients.set(client.id, client)
    }
    for (const client of this.subscriptions.clients) clients.set(client.id, client)
    return [...clients.values()]
  }

  /**
   * Takes over a client's subscriptions and log level from another slot, and applies them to the link if it is open.
   */
  takeOver (from: Slot, client: Client): void {
    this.registerClient(client)
    this.updateLevel()
    const added = this.subscriptions.takeOver(from.subscriptions, client)
    if (this.subscriptions.countOf(client.id) > 0) this.link?.recordUser(client)
    for (const uri of added) this.link?.subscribe(uri).catch(() => {})
  }

  /** Removes a client and its subscriptions. @returns the URIs without a remaining subscriber */
  removeClient (id: string): string[] {
    if (this.#clients.delete(id) && this.link?.level !== undefined) this.updateLevel()
    this.tasks.removeClient(id)
    return this.subscriptions.removeClient(id)
  }
}
