import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import type { Client } from '../../../protocol/exchange.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import { lower, type Level } from '../../../protocol/listener.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { Link } from './link.ts'
import type { LinkKey } from './link-key.ts'
import type { Passed } from './passthrough.ts'
import { SubscriptionTable } from './subscription-table.ts'
import { TaskRegistry } from './task-registry.ts'

/** The level from which most servers send log messages while none is set. */
const usualLevel: Level = 'info'

interface SlotOptions {
  readonly owner?: Client
  readonly countedTo?: string
  readonly user?: string
}

/**
 * A place for a link: everything that outlives one connection, so that the next one can be brought to the same state.
 */
export class Slot {
  readonly key: LinkKey
  /** The client that the slot is for, when it is for one. */
  readonly owner: Client | undefined
  /** The owner that it counts to: that of the client that it was made for. */
  readonly countedTo: string
  readonly capabilities: ClientCapabilities
  /** The user that it belongs to; undefined: clients of several users share it. */
  readonly user: string | undefined
  /** Subscriptions that the upstream has not answered yet: further subscribers wait for the same answer. */
  readonly subscribing = new Map<string, Promise<string>>()
  readonly subscriptions = new SubscriptionTable()
  /** What its clients began that outlives their calls. */
  readonly tasks = new TaskRegistry()
  link: Link | undefined
  opening: Promise<Link> | undefined
  /** The link that is being opened: to be closed if the slot ends. */
  candidate: Link | undefined
  /** A link that still opens is closed. */
  ended = false
  lastTry = 0
  failures = 0
  /** The newest headers of its client, for messages that have none. */
  passed: Passed | undefined
  /** The catalogue of this link, where it differs from its class's. */
  catalogue: Catalogue | undefined
  /** The clients whose headers it carries. */
  readonly #carriesFor = new Set<string>()
  /** The clients that it serves and that can be notified. */
  readonly #clients = new Map<string, Client>()

  constructor (key: LinkKey, capabilities: ClientCapabilities, { owner, countedTo = '', user }: SlotOptions = {}) {
    this.key = key
    this.capabilities = capabilities
    this.owner = owner
    this.countedTo = countedTo
    this.user = user
  }

  /** Brings a new link to the state that is remembered here. */
  async restore (link: Link): Promise<void> {
    if (this.level !== undefined) await link.setLevel(this.level).catch(() => {})
    for (const client of this.subscriptions.clients) link.noteUser(client)
    const budget = new LoopBudget()
    for (const uri of this.subscriptions.uris) {
      if (budget.spent) await budget.yieldToEventLoop()
      link.subscribe(uri).catch(() => {})
    }
  }

  /** A client's request with these headers is about to use it. */
  carry (id: string, passed: Passed | undefined): void {
    this.passed = passed
    if (passed && this.owner === undefined) this.#carriesFor.add(id)
  }

  carriesFor ({ id, linksOf }: Client): boolean {
    return this.#carriesFor.has(id) || this.owner?.id === (linksOf?.id ?? id)
  }

  /** True when the last client whose headers it carries has gone. */
  carriesNoMore (id: string): boolean { return this.#carriesFor.delete(id) && this.#carriesFor.size === 0 }

  /** Nobody would notice the end of its link. */
  get idle (): boolean {
    return this.opening === undefined && this.subscriptions.size === 0 && !this.tasks.any && this.link?.busy !== true
  }

  /**
   * Since when all of its calls have waited for answers of clients, in ms since the epoch; undefined: something else
   * happens there.
   */
  get askedSince (): number | undefined {
    const calls = this.link?.openCalls ?? []
    if (this.opening !== undefined || this.subscriptions.size > 0 || this.tasks.any || calls.length === 0) {
      return undefined
    }
    const times = calls.map(({ askedSince }) => askedSince ?? Infinity)
    const last = Math.max(...times)
    return last === Infinity ? undefined : last
  }

  /** Closes its connections. The next use opens one again, unless the slot has ended. */
  async hangUp (): Promise<void> {
    const { link, candidate } = this
    this.link = undefined
    await Promise.all([link?.close(), candidate?.close()])
  }

  knows (client: Client): boolean { return this.#clients.has(client.id) }

  serve (client: Client): void {
    if (client.listener) this.#clients.set(client.id, client)
  }

  /**
   * The log level for its link: the lowest that a client wants, where one has set any. A client that has set none must
   * not miss what servers usually send.
   */
  get level (): Level | undefined {
    let lowest: Level | undefined
    let isSet = this.link?.level !== undefined
    for (const { listener } of this.#clients.values()) {
      lowest = lower(lowest, listener?.level ?? usualLevel)
      isSet ||= listener?.level !== undefined
    }
    return isSet ? lowest : undefined
  }

  updateLevel (): void {
    const level = this.link && this.level
    if (level !== undefined) this.link?.setLevel(level).catch(() => {})
  }

  /** The clients that asked for something that outlives their calls. */
  get clients (): Client[] {
    const clients = new Map<string, Client>()
    for (const client of this.#clients.values()) {
      if (client.listener?.level !== undefined) clients.set(client.id, client)
    }
    for (const client of this.subscriptions.clients) clients.set(client.id, client)
    return [...clients.values()]
  }

  /** Takes over what a client asked for at another slot, and applies it to an open link. */
  takeOver (from: Slot, client: Client): void {
    this.serve(client)
    this.updateLevel()
    const fresh = this.subscriptions.takeOver(from.subscriptions, client)
    if (this.subscriptions.countOf(client.id) > 0) this.link?.noteUser(client)
    for (const uri of fresh) this.link?.subscribe(uri).catch(() => {})
  }

  /** Forgets a client. @returns the URIs that have no subscriber any more */
  forget (id: string): string[] {
    if (this.#clients.delete(id) && this.link?.level !== undefined) this.updateLevel()
    this.tasks.leave(id)
    return this.subscriptions.forget(id)
  }
}
