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
import { TaskRegistry } from './task-registry.ts'

/** The level at which most servers send log messages if none is set. */
const defaultLevel: LogLevel = 'info'

/** See the members of `Slot`. */
interface SlotOptions {
  readonly owner?: Client
  readonly shareOwner?: string
  readonly user?: string
}

/** A place for a link. It keeps the state that outlives a connection, and restores it on the next one. */
export class Slot {
  readonly key: LinkKey
  /** The client that the slot serves, if it serves a single one. */
  readonly owner: Client | undefined
  /** The owner that the slot is counted for: that of the client that it was created for. */
  readonly shareOwner: string
  readonly capabilities: ClientCapabilities
  /** The user whose link it is; undefined if clients of several users share it. */
  readonly user: string | undefined
  /** Subscriptions that the upstream has not answered yet: further subscribers wait for the same answer. */
  readonly subscribing = new Map<string, Promise<string>>()
  readonly subscriptions = new SubscriptionTable()
  /** The tasks and elicitation pages that outlive the calls that started them. */
  readonly tasks = new TaskRegistry()
  readonly circuit = new Circuit()
  link: Link | undefined
  /** The attempt to open the link, while it is in progress. */
  opening: Promise<Link> | undefined
  /** The link that is being opened. */
  openingLink: Link | undefined
  /** Whether the slot has ended. A link that is being opened is then closed. */
  hasEnded = false
  /** The number of notifications that are sent once the link is open. */
  waitingNotifications = 0
  /** The params of the last request for a log level, if they have other members than the level. */
  levelParams: string | undefined
  /** The time of the last attempt to open the link, in ms since the epoch. */
  lastTry = 0
  /** The number of retries since the link was last open. */
  failures = 0
  /** The newest headers of its client, for messages that have none of their own. */
  passedHeaders: PassedHeaders | undefined
  /** The catalogue read on this link, if it differs from that of its class. */
  catalogue: Catalogue | undefined
  /** The clients whose headers the link carries. */
  readonly #carriesFor = new Set<string>()
  /** The clients that the slot serves and that can be notified. */
  readonly #clients = new Map<string, Client>()

  constructor (key: LinkKey, capabilities: ClientCapabilities, { owner, shareOwner = '', user }: SlotOptions = {}) {
    this.key = key
    this.capabilities = capabilities
    this.owner = owner
    this.shareOwner = shareOwner
    this.user = user
  }

  /** Restores on a new link the state that the slot keeps. */
  async restore (link: Link): Promise<void> {
    if (this.level !== undefined) await link.setLevel(this.level, this.levelParams).catch(() => {})
    for (const client of this.subscriptions.clients) link.recordUser(client)
    const budget = new LoopBudget()
    for (const uri of this.subscriptions.uris) {
      if (budget.isSpent) await budget.yieldToEventLoop()
      link.subscribe(uri).catch(() => {})
    }
  }

  /** Records that a client's request with these headers is about to use the slot. */
  carryHeaders (id: string, passed: PassedHeaders | undefined): void {
    this.passedHeaders = passed
    if (passed && this.owner === undefined) this.#carriesFor.add(id)
  }

  carriesHeadersOf ({ id, linkOwner }: Client): boolean {
    return this.#carriesFor.has(id) || this.owner?.id === (linkOwner?.id ?? id)
  }

  /** Removes a client whose headers it carries. Returns true when it was the last one. */
  stopCarrying (id: string): boolean { return this.#carriesFor.delete(id) && this.#carriesFor.size === 0 }

  /** Whether its link can be ended without effect on any client. */
  get isIdle (): boolean {
    return this.opening === undefined && this.subscriptions.size === 0 && !this.tasks.hasAny && this.link?.busy !== true
  }

  /**
   * The time since which all of its calls wait for clients' answers, in ms since the epoch; undefined if one does not,
   * or if the link is needed for something else.
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

  /** Closes its connections. The next use opens a new one, unless the slot has ended. */
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
   * The log level for its link: the least severe one that a client wants; undefined if no client has set one. A client
   * that has set none must not miss the messages that servers send by default.
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

  /** Sets the log level of the link to the one that its clients want. */
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

  /** Takes over a client's state from another slot, and applies it to an open link. */
  takeOver (from: Slot, client: Client): void {
    this.registerClient(client)
    this.updateLevel()
    const added = this.subscriptions.takeOver(from.subscriptions, client)
    if (this.subscriptions.countOf(client.id) > 0) this.link?.recordUser(client)
    for (const uri of added) this.link?.subscribe(uri).catch(() => {})
  }

  /** Removes a client. @returns the URIs without any subscriber left */
  removeClient (id: string): string[] {
    if (this.#clients.delete(id) && this.link?.level !== undefined) this.updateLevel()
    this.tasks.removeClient(id)
    return this.subscriptions.removeClient(id)
  }
}
