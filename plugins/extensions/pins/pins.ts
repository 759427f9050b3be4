import { messageOf } from '../../../db/errors.ts'
import type { PinStore } from '../../../db/ports/pins.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { DefinitionChange } from '../../../schemas/definitions-api.ts'
import { Semaphore } from '../../base/limits/index.ts'
import type { CatalogueReviewer } from '../../upstream/index.ts'
import { acceptPending, compareWithPins, withoutTexts, type Pin, type PinMode, type ServerPins } from './compare.ts'
import { definitionsOf, definitionKeyOf, type Definition } from './definitions.ts'
import { listedCatalogueOf, type ListedCatalogue, type UnacceptedState } from './listed-catalogue.ts'

interface PinsDeps {
  readonly store: PinStore
  /** Returns the mode of a server; undefined if the server no longer exists. */
  readonly modeOf: (server: string) => PinMode | undefined
  /** Called when the catalogues that are listed may have changed. */
  readonly onListsChanged: () => void
  /** Reports new changes to admins. */
  readonly reportChanges: (server: string, mode: PinMode, changes: ReadonlyArray<Pick<Pin, 'kind' | 'item'>>) => void
  /** Called with the definitions of each new catalogue, before they are compared. `source`: see `ServerPins.source`. */
  readonly onExamined: (server: string, source: string, definitions: readonly Definition[]) => void
  readonly warn: (server: string, sentence: string) => void
  readonly now?: () => Date
  /** Time after which a failed comparison is repeated, in ms. */
  readonly retryTime?: number
}

/** A server's pins in memory, without the texts that are not needed there, and their version in the store. */
interface ServerState { readonly version: string | undefined, readonly pinned: ServerPins | undefined }

/** A catalogue that was examined. `source`: see `ServerPins.source`. */
interface ExaminedCatalogue {
  readonly source: string
  /** The catalogue that was last listed in place of this one, and the state and mode from which it was made. */
  listed?: ListedCatalogue & { readonly state: ServerState | undefined, readonly mode: PinMode }
}

/** Max attempts to store pins that other replicas change at the same time. */
const maxAttempts = 10

/** Pins the definitions of servers, and decides which definitions of their catalogues are listed. */
export class Pins implements CatalogueReviewer {
  readonly #deps: PinsDeps
  /** The pins of each server, as known to this replica. */
  readonly #states = new Map<string, ServerState>()
  readonly #examined = new WeakMap<Catalogue, ExaminedCatalogue>()
  /** The refused definitions of each listed catalogue. */
  readonly #refused = new WeakMap<Catalogue, ListedCatalogue['refused']>()
  /** Runs the changes of a server's pins one at a time. */
  readonly #turns = new Semaphore({ places: 4, perOwner: 1 })
  /** The timers for repeating failed comparisons, by server and source. */
  readonly #retries = new Map<string, NodeJS.Timeout>()
  #isClosed = false

  constructor (deps: PinsDeps) {
    this.#deps = deps
  }

  /**
   * Compares a new catalogue with the pins, stores changed pins, and reports changes to admins.
   * @param user the user whose connection listed the catalogue; undefined for a connection of the gateway itself
   */
  readonly examine: CatalogueReviewer['examine'] = async (server, catalogue, user) => {
    const source = JSON.stringify([user ?? null, catalogue.capabilityClass])
    this.#examined.set(catalogue, { source })
    const definitions = await definitionsOf(catalogue)
    this.#deps.onExamined(server, source, definitions)
    await this.#compare(server, definitions, source, user)
  }

  async #compare (
    server: string, definitions: readonly Definition[], source: string, user: string | undefined
  ): Promise<void> {
    const { modeOf, reportChanges, warn, onListsChanged, now = () => new Date(), retryTime = 3_000 } = this.#deps
    const key = `${server}\n${source}`
    const isRepeated = this.#retries.has(key)
    clearTimeout(this.#retries.get(key))
    this.#retries.delete(key)
    try {
      const mode = modeOf(server)
      if (mode === undefined) return
      const reading = { definitions, source, user, mode, now: now().toISOString() }
      // Whether anything has changed can be told without the texts, which are not in memory.
      const known = this.#states.get(server)?.pinned
      if (known !== undefined && !compareWithPins(known, reading).isChanged) return
      const { unreported } = await this.#change(server, (pinned) => {
        const compared = compareWithPins(pinned, reading)
        return { next: compared.isChanged ? compared.pinned : undefined, unreported: compared.unreported }
      })
      if (unreported.length > 0) reportChanges(server, mode, unreported)
    } catch (error) {
      if (!isRepeated) warn(server, `its definitions could not be compared with the pinned ones: ${messageOf(error)}`)
      if (this.#isClosed) return
      this.#retries.set(key, setTimeout(() => {
        void this.#compare(server, definitions, source, user).then(onListsChanged)
      }, retryTime).unref())
    }
  }

  /**
   * Changes the pins of a server, and stores them.
   * @param change returns the new pins as `next`, or undefined for no change; called again if another replica has
   *   changed the pins meanwhile
   * @returns the last result of `change`
   */
  async #change<Result extends { readonly next: ServerPins | undefined }> (
    server: string, change: (pinned: ServerPins | undefined) => Result
  ): Promise<Result> {
    const release = await this.#turns.take(server, false)
    try {
      for (let left = maxAttempts; left > 0; left--) {
        const { stored, state } = await this.#load(server)
        const result = change(stored)
        if (result.next === undefined) return result
        const version = await this.#deps.store.swap(server, state.version, result.next)
        if (version === undefined) continue
        this.#states.set(server, { version, pinned: withoutTexts(result.next) })
        return result
      }
      throw new Error('other replicas are changing them at the same time')
    } finally {
      release()
    }
  }

  /** Reads the pins of a server. The lists have changed if another replica has changed the pins since the last time. */
  async #load (server: string): Promise<{ stored: ServerPins | undefined, state: ServerState }> {
    const known = this.#states.get(server)
    const found = await this.#deps.store.find(server)
    const stored = found?.value as ServerPins | undefined
    const state = { version: found?.version, pinned: stored && withoutTexts(stored) }
    this.#states.set(server, state)
    if (known !== undefined && known.version !== state.version) this.#deps.onListsChanged()
    return { stored, state }
  }

  /** Returns the catalogue to list in place of a catalogue of a server. */
  readonly listed: CatalogueReviewer['listed'] = (server, catalogue) => this.#listed(server, catalogue).catalogue

  #listed (server: string, catalogue: Catalogue): ListedCatalogue {
    const mode = this.#deps.modeOf(server)
    if (mode !== 'ask' && mode !== 'block') return { catalogue, refused: noneRefused }
    const state = this.#states.get(server)
    const examined = this.#examined.get(catalogue) ?? { source: '' }
    const { listed } = examined
    if (listed?.state === state && listed?.mode === mode) return listed
    const made = listedCatalogueOf(catalogue, state?.pinned, mode, examined.source === state?.pinned?.source)
    this.#refused.set(made.catalogue, made.refused)
    examined.listed = { ...made, state, mode }
    this.#examined.set(catalogue, examined)
    return made
  }

  /** Returns why an item cannot be used; undefined if it can be used. @param catalogue a result of `listed` */
  refusalOf (catalogue: Catalogue, definition: Pick<Pin, 'kind' | 'item'>): UnacceptedState | undefined {
    return this.#refused.get(catalogue)?.get(definitionKeyOf(definition))
  }

  /** Returns the new and changed definitions of a server that wait for an admin, from the store. */
  async readPendingChanges (server: string): Promise<DefinitionChange[]> {
    if (this.#deps.modeOf(server) === 'off') return []
    const { stored } = await this.#load(server)
    return (stored?.pins ?? []).flatMap(({ kind, item, digest, text, pending = [] }) =>
      pending.map(({ digest: next, text: after, since }) => ({
        kind,
        item,
        before: digest === undefined || text === undefined ? null : JSON.parse(text) as unknown,
        after: after === undefined ? null : JSON.parse(after) as unknown,
        since,
        digest: next
      })))
  }

  /** Returns the items whose definitions wait for an admin, each once, as known to this replica. */
  knownPendingChanges (
    server: string
  ): ReadonlyArray<Pick<DefinitionChange, 'kind' | 'item' | 'since'> & { isNew: boolean }> {
    if (this.#deps.modeOf(server) === 'off') return []
    return (this.#states.get(server)?.pinned?.pins ?? []).flatMap(({ kind, item, digest, pending = [] }) =>
      pending.slice(-1).map(({ since }) => ({ kind, item, since, isNew: digest === undefined })))
  }

  /**
   * Accepts the pending definitions of an item and pins them.
   * @param digest the digest of the only definition to accept; undefined: all pending definitions of the item
   * @returns whether there was such a definition
   */
  async accept (server: string, definition: Pick<Pin, 'kind' | 'item'>, digest?: string): Promise<boolean> {
    const result = await this.#change(server, (pinned) =>
      ({ next: pinned && acceptPending(pinned, definition, digest) }))
    if (result.next === undefined) return false
    this.#deps.onListsChanged()
    return true
  }

  /** Copies the pins of a server to its new name, and replaces any pins of the new name. */
  async copy (server: string, newName: string): Promise<void> {
    const stored = await this.#deps.store.find(server)
    const former = await this.#deps.store.find(newName)
    if (stored !== undefined) await this.#deps.store.swap(newName, former?.version, stored.value as object)
    this.#states.delete(newName)
  }

  /** Removes the pins of deleted servers. */
  async forget (servers: readonly string[]): Promise<void> {
    for (const server of servers) this.#states.delete(server)
    await this.#deps.store.remove(servers)
  }

  /** Reads pins that other replicas have changed. @param time max age of the changes to read, in ms */
  async refresh (time: number): Promise<void> {
    if (!this.#deps.store.isShared || this.#isClosed) return
    for (const { server, version } of await this.#deps.store.list(time)) {
      const known = this.#states.get(server)
      if (known === undefined || known.version === version) continue
      const release = await this.#turns.take(server, false)
      try {
        await this.#load(server)
      } finally {
        release()
      }
    }
  }

  close (): void {
    this.#isClosed = true
    for (const timer of this.#retries.values()) clearTimeout(timer)
  }
}

const noneRefused: ListedCatalogue['refused'] = new Map()
