import { randomUUID } from 'node:crypto'
import type { Change, Snapshot } from '../../../db/store.ts'
import { gatewayClient } from '../../../protocol/exchange.ts'
import { makeView, type Principal, type Settings } from '../../settings/index.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import type { Gateway } from '../gateway.ts'
import { gatewayLimits } from '../limits.ts'

/** The members that all built-in items have. */
interface BuiltIn { readonly id: string, readonly enabled?: boolean }

/** What differs between the kinds of built-in items: prompts, resources and skills. */
export interface BuiltInKindDefinition<Item extends BuiltIn, Shown> {
  /** The name of the section of the settings, and of the MCP list. */
  readonly list: 'prompts' | 'resources' | 'skills'
  /** A built-in item must not have the name or URI of an item of this kind on an admin's server. */
  readonly claims: 'prompts' | 'resources'
  /** The noun used in errors. */
  readonly noun: string
  /** The members that a request may set; others are ignored. */
  readonly members: readonly string[]
  readonly stored: (snapshot: Snapshot) => ReadonlyMap<string, Item>
  readonly change: (id: string, value: Item | undefined) => Change
  /** The name or URI by which clients identify the item. */
  readonly keyOf: (item: Item) => string
  /** All names or URIs by which clients get the item or its files. Default: `keyOf` only. */
  readonly keysOf?: (item: Item) => readonly string[]
  /** The URIs of built-in items of another kind (resources, or skills), which no item of this kind may have, too. */
  readonly otherKeys?: (snapshot: Snapshot) => readonly string[]
  /** @throws InvalidInput */
  readonly check: (item: Item) => void
  readonly show: (item: Item) => Shown
}

/** The members in a request; null removes an optional member. */
type SentMembers<Item extends BuiltIn> = { [Member in keyof Omit<Item, 'id'>]?: Item[Member] | null }

/** The global route, as an admin sees it. */
const adminView = makeView({ key: 'gateway', kind: 'system-key', user: 'gateway', isAdmin: true }, { kind: 'global' })

/** Manages the built-in prompts, resources or skills. Routes must restrict writing to admins. */
export class BuiltInEntries<Item extends BuiltIn, Shown> {
  readonly #settings: Settings
  readonly #gateway: Pick<Gateway, 'surface'>
  readonly #kind: BuiltInKindDefinition<Item, Shown>

  constructor (settings: Settings, gateway: Pick<Gateway, 'surface'>, kind: BuiltInKindDefinition<Item, Shown>) {
    this.#settings = settings
    this.#gateway = gateway
    this.#kind = kind
  }

  /** Lists all items, including disabled ones, in the configured order. */
  list (): Shown[] { return [...this.#kind.stored(this.#settings.current).values()].map(this.#kind.show) }

  /** @throws NoSuch */
  get (id: string): Shown { return this.#kind.show(this.#find(this.#settings.current, id)) }

  /** @throws InvalidInput, Duplicate, LimitReached */
  async create (principal: Principal, sent: SentMembers<Item>): Promise<Shown> {
    const item = this.#merge({ id: randomUUID() }, sent)
    this.#kind.check(item)
    await this.#settings.change((snapshot) => {
      this.#checkKeys(snapshot, item, this.#keysOf(item))
      this.#checkRoom(snapshot, item)
      return [this.#kind.change(item.id, item)]
    }, principal)
    return this.get(item.id)
  }

  /** Changes the members in `sent`, and keeps the others. @throws NoSuch, InvalidInput, Duplicate, LimitReached */
  async update (principal: Principal, id: string, sent: SentMembers<Item>): Promise<Shown> {
    await this.#settings.change((snapshot) => {
      const former = this.#find(snapshot, id)
      const item = this.#merge(former, sent)
      this.#kind.check(item)
      const formerKeys = former.enabled === false ? [] : this.#keysOf(former)
      const newKeys = this.#keysOf(item).filter((key) => !formerKeys.includes(key))
      if (item.enabled !== false) this.#checkKeys(snapshot, item, newKeys)
      this.#checkRoom(snapshot, item)
      return [this.#kind.change(id, item)]
    }, principal)
    return this.get(id)
  }

  /** @throws NoSuch */
  async remove (principal: Principal, id: string): Promise<void> {
    await this.#settings.change(
      (snapshot) => [this.#kind.change(this.#find(snapshot, id).id, undefined)], principal
    )
  }

  /** Merges the known members of a request into an item. */
  #merge (former: BuiltIn, sent: SentMembers<Item>): Item {
    const known = Object.entries(sent).filter(([name]) => this.#kind.members.includes(name))
    const entries = Object.entries({ ...former, ...Object.fromEntries(known) })
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== null)) as unknown as Item
  }

  /** @throws NoSuch */
  #find (snapshot: Snapshot, id: string): Item {
    const item = this.#kind.stored(snapshot).get(id)
    if (!item) throw noSuchError(`built-in ${this.#kind.noun}`, id)
    return item
  }

  #keysOf (item: Item): readonly string[] { return this.#kind.keysOf?.(item) ?? [this.#kind.keyOf(item)] }

  /**
   * Checks that no other item, and no item of an admin's server, has one of the names or URIs.
   * @param keys those of the item that it did not have before
   * @throws Duplicate
   */
  #checkKeys (snapshot: Snapshot, item: Item, keys: readonly string[]): void {
    const { noun, claims, keyOf, stored, otherKeys } = this.#kind
    const others = new Set(otherKeys?.(snapshot))
    const taken = keys.find((each) => others.has(each))
    if (taken !== undefined) {
      throw new errors.Duplicate(`Another built-in has the URI ${JSON.stringify(taken)}`)
    }
    const key = keyOf(item)
    if (!keys.includes(key)) return
    for (const other of stored(snapshot).values()) {
      if (other.id !== item.id && keyOf(other) === key) {
        throw new errors.Duplicate(`There is already a built-in ${noun} ${JSON.stringify(key)}`)
      }
    }
    const server = this.#gateway.surface(adminView, gatewayClient).adminsServer(claims, key)
    if (server !== undefined) {
      throw new errors.Duplicate(`The server ${JSON.stringify(server)} already lists a ${noun} ${JSON.stringify(key)}`)
    }
  }

  /** Checks the limits on number and total size. @throws LimitReached */
  #checkRoom (snapshot: Snapshot, item: Item): void {
    const { prompts, resources, skills } = snapshot
    const { items, size } = gatewayLimits.builtIns
    const others = [...prompts.values(), ...resources.values(), ...skills.values()].filter(({ id }) => id !== item.id)
    const stored = this.#kind.stored(snapshot)
    if (!stored.has(item.id) && stored.size >= items) {
      throw new errors.LimitReached(`There are already ${items} built-in ${this.#kind.list}: remove one first`)
    }
    const total = [item, ...others].reduce((sum, each) => sum + JSON.stringify(each).length, 0)
    if (total > size) {
      throw new errors.LimitReached(
        `The built-in prompts, resources and skills together would have more than ${size} characters`
      )
    }
  }
}
