import { messageOf } from '../../../db/errors.ts'
import type { PinStore } from '../../../db/ports/pins.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { DefinitionChange } from '../../../schemas/definitions-api.ts'
import { Semaphore } from '../../base/limits/index.ts'
import type { CatalogueReview } from '../../upstream/index.ts'
import { acceptPending, compareWithPins, withoutTexts, type Pin, type PinMode, type ServerPins } from './compare.ts'
import { definitionsOf, definitionKeyOf, type Definition } from './definitions.ts'
import { listedCatalogueOf, type ListedCatalogue, type UnacceptedState } from './listed-catalogue.ts'

interface PinsDeps {
  readonly store: PinStore
  /** Returns undefined if the server no longer exists. */
  readonly modeOf: (server: string) => PinMode | undefined
  /** Called when the listed definitions of a server have changed. */
  readonly onListsChanged: () => void
  /** Reports new changes to admins. */
  readonly reportChanges: (server: string, mode: PinMode, changes: ReadonlyArray<Pick<Pin, 'kind' | 'item'>>) => void
  /** Called with the definitions of each new catalogue. */
  readonly onExamined: (server: string, source: string, definitions: readonly Definition[]) => void
  readonly warn: (server: string, sentence: string) => void
  readonly now?: () => Date
  /** Time after which a failed comparison is repeated, in ms. */
  readonly retryTime?: number
}

/** A server's pins in memory, without texts that are not needed now. */
interface ServerState { readonly version: string | undefined, readonly pinned: ServerPins | undefined }

/** The source of an examined catalogue, and its last listing. */
interface ExaminedCatalogue {
  readonly source: string
  /** The last listing, and the state and mode it was made from. */
  listed?: ListedCatalogue & { readonly state: ServerState | undefined, readonly mode: PinMode }
}

/** Max attempts to store pins that other replicas store at the same time. */
const maxAttempts = 10

/** Pins the definitions of servers, and decides which parts of their catalogues are listed. */
export class Pins implements CatalogueReview {
  readonly #deps: PinsDeps
  readonly #states = new Map<string, ServerState>()
  readonly #examined = new WeakMap<Catalogue, ExaminedCatalogue>()
  /** The refused definitions of each listed catalogue. */
  readonly #refused = new WeakMap<Catalogue, ListedCatalogue['refused']>()
  /** Runs the changes of a server's pins one at a time. */
  readonly #turns = new Semaphore({ places: 4, perOwner: 1 })
  /** Timers of failed comparisons that are repeated, by server and source. */
  readonly #retries = new Map<string, NodeJS.Timeout>()
  #isClosed = false

  constructor (deps: PinsDeps) {
    this.#deps = deps
  }

  /** Compares the definitions of a new catalogue with the pinned ones. */
  readonly examine: CatalogueReview['examine'] = async (server, catalogue, user) => {
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
      // The comparison does not need the texts, which are not in memory.
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
   * @param change returns the next value, undefined for no change; called again if another replica changed the pins
   *   meanwhile
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

  async #load (server: string): Promise<{ stored: ServerPins | undefined, state: ServerState }> {
    const found = await this.#deps.store.find(server)
    const stored = found?.value as ServerPins | undefined
    const state = { version: found?.version, pinned: stored && withoutTexts(stored) }
    this.#states.set(server, state)
    return { stored, state }
  }

  /** Returns the catalogue that is listed in place of a server's own. */
  readonly listed: CatalogueReview['listed'] = (server, catalogue) => this.#listed(server, catalogue).catalogue

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

  /** Returns why an item cannot be used; undefined if it can. @param catalogue as it is listed */
  refusalOf (catalogue: Catalogue, definition: Pick<Pin, 'kind' | 'item'>): UnacceptedState | undefined {
    return this.#refused.get(catalogue)?.get(definitionKeyOf(definition))
  }

  /** Returns the changed definitions of a server that wait for an admin. */
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

  /** Returns the changes that wait for an admin, as known to this replica, without the definitions. */
  knownPendingChanges (
    server: string
  ): ReadonlyArray<Pick<DefinitionChange, 'kind' | 'item' | 'since'> & { isNew: boolean }> {
    if (this.#deps.modeOf(server) === 'off') return []
    return (this.#states.get(server)?.pinned?.pins ?? []).flatMap(({ kind, item, digest, pending = [] }) =>
      pending.slice(-1).map(({ since }) => ({ kind, item, since, isNew: digest === undefined })))
  }

  /**
   * Accepts a changed definition and pins it.
   * @param digest accepts only the definition with this digest
   * @returns whether there was a matching change
   */
  async accept (server: string, definition: Pick<Pin, 'kind' | 'item'>, digest?: string): Promise<boolean> {
    const result = await this.#change(server, (pinned) =>
      ({ next: pinned && acceptPending(pinned, definition, digest) }))
    if (result.next === undefined) return false
    this.#deps.onListsChanged()
    return true
  }

  /** Copies a server's pins to its new name. */
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

  /** Reads the changes by other replicas. @param time the age up to which they are read, in ms */
  async refresh (time: number): Promise<void> {
    if (!this.#deps.store.isShared || this.#isClosed) return
    let isChanged = false
    for (const { server, version } of await this.#deps.store.list(time)) {
      const known = this.#states.get(server)
      if (known === undefined || known.version === version) continue
      const release = await this.#turns.take(server, false)
      try {
        await this.#load(server)
      } finally {
        release()
      }
      isChanged = true
    }
    if (isChanged) this.#deps.onListsChanged()
  }

  close (): void {
    this.#isClosed = true
    for (const timer of this.#retries.values()) clearTimeout(timer)
  }
}

const noneRefused: ListedCatalogue['refused'] = new Map()
