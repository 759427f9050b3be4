import { randomUUID } from 'node:crypto'
import type { EntryOf } from '../../db/entities.ts'
import type { Change, Snapshot } from '../../db/store.ts'
import { hasControlCharacters } from '../../schemas/names.ts'
import { errors, noSuchError } from '../base/errors/index.ts'
import type { Principal } from './access/view.ts'
import { settingsLimits } from './limits.ts'
import type { Settings } from './settings.ts'

/** The entities whose entries apply in their stored order. */
type OrderedEntityName = 'policies' | 'guards' | 'quotas'

/** An entry as a caller sends it: without the id, which the gateway generates. */
type NewEntry<Name extends OrderedEntityName> = Omit<EntryOf<Name>, 'id'>

interface OrderedEntriesOptions<Name extends OrderedEntityName> {
  /** The noun for error messages. */
  readonly noun: string
  /**
   * Checks an entry before it is stored.
   * @param former the entry that it replaces; undefined for a new entry
   * @returns the entry to store
   * @throws InvalidInput
   */
  readonly check?: (entry: EntryOf<Name>, former: EntryOf<Name> | undefined) => EntryOf<Name>
  /** Prepares an entry for responses. Default: unchanged. */
  readonly show?: (entry: EntryOf<Name>) => EntryOf<Name>
  /** Returns sentences about probable mistakes in a stored entry. Default: none. */
  readonly warn?: (entry: EntryOf<Name>) => Promise<readonly string[]>
}

/** The entries of an ordered entity (policies, guards or quotas), for routes of the management API for admins. */
export class OrderedEntityEntries<Name extends OrderedEntityName> {
  readonly #settings: Pick<Settings, 'current' | 'change'>
  readonly #name: Name
  readonly #noun: string
  readonly #check: NonNullable<OrderedEntriesOptions<Name>['check']>
  readonly #show: NonNullable<OrderedEntriesOptions<Name>['show']>
  readonly #warn: OrderedEntriesOptions<Name>['warn']

  constructor (
    settings: Pick<Settings, 'current' | 'change'>, name: Name,
    { noun, check = (entry) => entry, show = (entry) => entry, warn }: OrderedEntriesOptions<Name>
  ) {
    this.#settings = settings
    this.#name = name
    this.#noun = noun
    this.#check = check
    this.#show = (entry) => show({ ...entry, enabled: entry.enabled ?? true })
    this.#warn = warn
  }

  /** Returns all entries, in their order. */
  list (): Array<EntryOf<Name>> { return [...this.#entriesIn(this.#settings.current).values()].map(this.#show) }

  /** Returns an entry. @throws NoSuch */
  get (id: string): EntryOf<Name> { return this.#show(this.#mustHave(this.#settings.current, id)) }

  /** Returns sentences about probable mistakes in a stored entry. */
  async warningsAbout (entry: EntryOf<Name>): Promise<readonly string[]> { return await this.#warn?.(entry) ?? [] }

  /** Adds an entry after the others. @throws InvalidInput, LimitReached */
  async create (principal: Principal, sent: NewEntry<Name>): Promise<EntryOf<Name>> {
    const entry = this.#checked({ ...sent, id: randomUUID() } as unknown as EntryOf<Name>, undefined)
    await this.#settings.change((snapshot) => {
      if (this.#entriesIn(snapshot).size >= settingsLimits.orderedEntries) {
        throw new errors.LimitReached(`There are already ${settingsLimits.orderedEntries} entries: remove one first`)
      }
      return [this.#change(entry.id, entry)]
    }, principal)
    return this.get(entry.id)
  }

  /** Replaces an entry, which keeps its place. @throws NoSuch, InvalidInput */
  async update (principal: Principal, id: string, sent: NewEntry<Name>): Promise<EntryOf<Name>> {
    await this.#settings.change((snapshot) => {
      const former = this.#mustHave(snapshot, id)
      return [this.#change(id, this.#checked({ ...sent, id } as unknown as EntryOf<Name>, former))]
    }, principal)
    return this.get(id)
  }

  /** Removes an entry. @throws NoSuch */
  async remove (principal: Principal, id: string): Promise<void> {
    await this.#settings.change((snapshot) => [this.#change(this.#mustHave(snapshot, id).id, undefined)], principal)
  }

  /** Reorders the entries. @param ids the ids of all entries, each once @throws InvalidInput */
  async reorder (principal: Principal, ids: readonly string[]): Promise<Array<EntryOf<Name>>> {
    await this.#settings.change((snapshot) => {
      const known = this.#entriesIn(snapshot)
      const missing = [...known.keys()].find((id) => !ids.includes(id))
      if (missing !== undefined || ids.length !== known.size) {
        const problem = missing === undefined
          ? 'names an unknown id, or an id twice'
          : `lacks ${JSON.stringify(missing)}`
        throw new errors.InvalidInput(`"ids" ${problem}: it must contain each ${this.#noun} once`)
      }
      return [{ entity: 'order', of: this.#name, keys: ids }]
    }, principal)
    return this.list()
  }

  /** Checks an entry before it is stored. @returns the entry to store @throws InvalidInput */
  #checked (entry: EntryOf<Name>, former: EntryOf<Name> | undefined): EntryOf<Name> {
    if (hasControlCharacters(entry.name)) throw new errors.InvalidInput('"name" must not have control characters')
    return this.#check(entry, former)
  }

  #entriesIn (snapshot: Snapshot): ReadonlyMap<string, EntryOf<Name>> {
    return snapshot[this.#name] as ReadonlyMap<string, EntryOf<Name>>
  }

  #mustHave (snapshot: Snapshot, id: string): EntryOf<Name> {
    const entry = this.#entriesIn(snapshot).get(id)
    if (!entry) throw noSuchError(this.#noun, id)
    return entry
  }

  #change (key: string, value: EntryOf<Name> | undefined): Change {
    return { entity: this.#name, key, value } as Change
  }
}
