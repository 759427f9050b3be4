import type { Client } from '../../../protocol/exchange.ts'
import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { lower, type Level } from '../../../protocol/listener.ts'
import type { Catalogue } from '../catalogues/catalogue.ts'
import type { Link } from './link.ts'
import type { LinkKey } from './link-key.ts'
import type { Passed } from './passthrough.ts'
import { TaskRegistry } from '../inbound/tasks.ts'

/** From which level on servers send log messages that were not asked for a level: most do from here on. */
const usual: Level = 'info'

/** A place for a link: what outlives one connection, so that the next one can be brought to the same state. */
export class Slot {
  readonly key: LinkKey
  readonly owner: Client | undefined
  readonly capabilities: ClientCapabilities
  /** What is being asked for: more who want it wait for the same answer. */
  readonly subscribing = new Map<string, Promise<string>>()
  /** Who is subscribed to each resource, by URI and by client. */
  readonly subscriptions = new Map<string, Map<string, Client>>()
  /** The clients that it serves and that would hear what its server says. */
  readonly #clients = new Map<string, Client>()
  /** What its clients began there that outlives their calls. */
  readonly pending = new TaskRegistry()
  link: Link | undefined
  opening: Promise<Link> | undefined
  /** The link that is being opened: not usable yet, but to be closed if the slot goes. */
  candidate: Link | undefined
  /** Nobody will use it any more: a link that still comes up is closed. */
  ended = false
  /** When its link was last opened, in ms since the epoch, and how often it was lost. */
  lastTry = 0
  failures = 0
  /** What of its client's headers goes on where a message brings none of its own: the newest. */
  passed: Passed | undefined
  /** The clients whose headers it carries: without them it is of no use. */
  readonly #carriesFor = new Set<string>()
  /** This link's own catalogue, where it differs from its class's. */
  catalogue: Catalogue | undefined

  constructor (key: LinkKey, capabilities: ClientCapabilities, owner: Client | undefined) {
    this.key = key
    this.capabilities = capabilities
    this.owner = owner
  }

  /** A client's request with these headers is about to use it. */
  carry (id: string, passed: Passed | undefined): void {
    this.passed = passed
    if (passed && this.owner === undefined) this.#carriesFor.add(id)
  }

  carriesFor (id: string): boolean { return this.#carriesFor.has(id) || this.owner?.id === id }

  /** True when the last client whose headers it carries has gone. */
  carriesNoMore (id: string): boolean { return this.#carriesFor.delete(id) && this.#carriesFor.size === 0 }

  /** True when nobody would notice its link going. */
  get idle (): boolean {
    return (
      this.opening === undefined &&
      this.subscriptions.size === 0 &&
      !this.pending.any &&
      (this.link === undefined || this.link.calls.size === 0)
    )
  }

  /** Closes what it holds; the next use opens it again, unless it has ended. */
  async hangUp (): Promise<void> {
    const { link, candidate } = this
    this.link = undefined
    await Promise.all([link?.close(), candidate?.close()])
  }

  /** How many subscriptions one client has. */
  countOf (id: string): number {
    let count = 0
    for (const subscribers of this.subscriptions.values()) if (subscribers.has(id)) count++
    return count
  }

  /** Who is subscribed to a resource, or to one that it is a part of. */
  * subscribersOf (uri: unknown): Iterable<Client> {
    if (typeof uri !== 'string') return
    for (const [subscribed, subscribers] of this.subscriptions) if (isWithin(uri, subscribed)) yield * subscribers.values()
  }

  knows (client: Client): boolean { return this.#clients.has(client.id) }

  /** Notes a client that it serves from now on. */
  serve (client: Client): void {
    if (client.deaf !== true) this.#clients.set(client.id, client)
  }

  /**
   * From which level on its link is to send log messages: the lowest that a client wants, where one said so. Who said nothing is not to
   * miss anything for that, and gets what servers usually send.
   */
  get level (): Level | undefined {
    let lowest: Level | undefined
    let said = this.link?.level !== undefined
    for (const { level } of this.#clients.values()) {
      lowest = lower(lowest, level ?? usual)
      said ||= level !== undefined
    }
    return said ? lowest : undefined
  }

  /** Brings the link that is open here to the level that its clients want. */
  tellLevel (): void {
    const level = this.link && this.level
    if (level !== undefined) this.link?.setLevel(level).catch(() => {})
  }

  /** The clients that asked for something that outlives their calls. */
  get clients (): Client[] {
    const clients = new Map<string, Client>()
    for (const client of this.#clients.values()) if (client.level !== undefined) clients.set(client.id, client)
    for (const subscribers of this.subscriptions.values()) for (const client of subscribers.values()) clients.set(client.id, client)
    return [...clients.values()]
  }

  /** Takes what a client asked for from the place where it did. A link that is open here is told of it. */
  takeOver (from: Slot, client: Client): void {
    this.serve(client)
    this.tellLevel()
    for (const [uri, subscribers] of from.subscriptions) {
      if (!subscribers.has(client.id)) continue
      const known = this.subscriptions.get(uri)
      if (known) { known.set(client.id, client); continue }
      this.subscriptions.set(uri, new Map([[client.id, client]]))
      this.link?.request('resources/subscribe', JSON.stringify({ uri })).catch(() => {})
    }
  }

  /** Forgets a client. @returns the URIs that nobody is subscribed to any more */
  forget (id: string): string[] {
    if (this.#clients.delete(id) && this.link?.level !== undefined) this.tellLevel()
    this.pending.leave(id)
    const free: string[] = []
    for (const [uri, subscribers] of this.subscriptions) {
      if (!subscribers.delete(id) || subscribers.size > 0) continue
      this.subscriptions.delete(uri)
      free.push(uri)
    }
    return free
  }
}

/** A resource itself, or what is below it: `r://1/a` is within `r://1`, `r://10` is not. */
const isWithin = (uri: string, whole: string): boolean =>
  uri === whole || (uri.startsWith(whole) && (/[/?#]$/.test(whole) || /^[/?#]/.test(uri.slice(whole.length))))
