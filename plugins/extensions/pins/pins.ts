import { messageOf } from '../../../db/errors.ts'
import type { PinStore } from '../../../db/ports/pins.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { DefinitionChange } from '../../../schemas/definitions-api.ts'
import { Semaphore } from '../../base/limits/index.ts'
import type { CatalogueReview } from '../../upstream/index.ts'
import { acceptPending, compareWithPins, withoutTexts, type Pin, type PinMode, type PinnedServer } from './compare.ts'
import { definitionsOf, keyOf, type Definition } from './definitions.ts'
import { withheldFrom, type Listed, type Refused } from './listed.ts'

interface PinsDeps {
  readonly store: PinStore
  /** Undefined: there is no such server any more. */
  readonly modeOf: (server: string) => PinMode | undefined
  /** Called when the definitions that are listed of some server have changed. */
  readonly changed: () => void
  /** Tells admins of changes that are new. */
  readonly told: (server: string, mode: PinMode, changes: ReadonlyArray<Pick<Pin, 'kind' | 'item'>>) => void
  readonly examined: (server: string, source: string, definitions: readonly Definition[]) => void
  readonly warn: (server: string, sentence: string) => void
  readonly now?: () => Date
  /** Time after which what could not be compared is compared again, in ms. */
  readonly retryTime?: number
}

/** A server's pins in memory, without texts that nobody needs now. */
interface ServerState { readonly version: string | undefined, readonly pinned: PinnedServer | undefined }

/** A catalogue as it was read. */
interface Examined {
  readonly source: string
  /** The catalogue that was listed last, and what it depends on. */
  listed?: Listed & { readonly state: ServerState | undefined, readonly mode: PinMode }
}

/** Max attempts to store what other replicas store as well. */
const maxAttempts = 10
/** Pins the definitions of servers, and says what of their catalogues is listed. */
export class Pins implements CatalogueReview {
  readonly #deps: PinsDeps
  readonly #states = new Map<string, ServerState>()
  readonly #examined = new WeakMap<Catalogue, Examined>()
  /** What is refused of catalogues as they are listed. */
  readonly #refused = new WeakMap<Catalogue, Listed['refused']>()
  /** One change of a server's pins at a time. */
  readonly #turns = new Semaphore({ places: 4, perOwner: 1 })
  /** Comparisons that have failed and are repeated, by server and source. */
  readonly #retries = new Map<string, NodeJS.Timeout>()
  #isClosed = false

  constructor (deps: PinsDeps) {
    this.#deps = deps
  }

  readonly examine: CatalogueReview['examine'] = async (server, catalogue, user) => {
    const source = JSON.stringify([user ?? null, catalogue.capabilityClass])
    this.#examined.set(catalogue, { source })
    const definitions = await definitionsOf(catalogue)
    this.#deps.examined(server, source, definitions)
    await this.#compare(server, definitions, source, user)
  }

  async #compare (
    server: string, definitions: readonly Definition[], source: string, user: string | undefined
  ): Promise<void> {
    const { modeOf, told, warn, changed, now = () => new Date(), retryTime = 3_000 } = this.#deps
    const key = `${server}\n${source}`
    const isRepeated = this.#retries.has(key)
    clearTimeout(this.#retries.get(key))
    this.#retries.delete(key)
    try {
      const mode = modeOf(server)
      if (mode === undefined) return
      const reading = { definitions, source, user, mode, now: now().toISOString() }
      // Texts make no difference to whether something changes.
      const known = this.#states.get(server)?.pinned
      if (known !== undefined && !compareWithPins(known, reading).isChanged) return
      const { news } = await this.#change(server, (pinned) => {
        const compared = compareWithPins(pinned, reading)
        return { next: compared.isChanged ? compared.pinned : undefined, news: compared.news }
      })
      if (news.length > 0) told(server, mode, news)
    } catch (error) {
      if (!isRepeated) warn(server, `its definitions could not be compared with the pinned ones: ${messageOf(error)}`)
      if (this.#isClosed) return
      this.#retries.set(key, setTimeout(() => {
        void this.#compare(server, definitions, source, user).then(changed)
      }, retryTime).unref())
    }
  }

  /**
   * Changes what is pinned of a server, and stores it.
   * @param change returns the next value, undefined if it stays; called again after a change of another replica
   */
  async #change<Result extends { readonly next: PinnedServer | undefined }> (
    server: string, change: (pinned: PinnedServer | undefined) => Result
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
      throw new Error('other replicas change them at the same time')
    } finally {
      release()
    }
  }

  async #load (server: string): Promise<{ stored: PinnedServer | undefined, state: ServerState }> {
    const found = await this.#deps.store.find(server)
    const stored = found?.value as PinnedServer | undefined
    const state = { version: found?.version, pinned: stored && withoutTexts(stored) }
    this.#states.set(server, state)
    return { stored, state }
  }

  readonly listed: CatalogueReview['listed'] = (server, catalogue) => this.#listed(server, catalogue).catalogue

  #listed (server: string, catalogue: Catalogue): Listed {
    const mode = this.#deps.modeOf(server)
    if (mode !== 'ask' && mode !== 'block') return { catalogue, refused: nothing }
    const state = this.#states.get(server)
    const examined = this.#examined.get(catalogue) ?? { source: '' }
    const { listed } = examined
    if (listed?.state === state && listed?.mode === mode) return listed
    const made = withheldFrom(catalogue, state?.pinned, mode, examined.source === state?.pinned?.source)
    this.#refused.set(made.catalogue, made.refused)
    examined.listed = { ...made, state, mode }
    this.#examined.set(catalogue, examined)
    return made
  }

  /** Why an item cannot be used; undefined: it can. @param catalogue as it is listed */
  refusalOf (catalogue: Catalogue, which: Pick<Pin, 'kind' | 'item'>): Refused | undefined {
    return this.#refused.get(catalogue)?.get(keyOf(which))
  }

  /** The changed definitions of a server that wait for an admin. */
  async changes (server: string): Promise<DefinitionChange[]> {
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

  /** The changes that wait for an admin, as far as this replica knows, without the definitions. */
  waiting (server: string): ReadonlyArray<Pick<DefinitionChange, 'kind' | 'item' | 'since'> & { isNew: boolean }> {
    if (this.#deps.modeOf(server) === 'off') return []
    return (this.#states.get(server)?.pinned?.pins ?? []).flatMap(({ kind, item, digest, pending = [] }) =>
      pending.slice(-1).map(({ since }) => ({ kind, item, since, isNew: digest === undefined })))
  }

  /** Accepts a changed definition, to be pinned. @param digest only if it is this one @returns whether there was one */
  async accept (server: string, which: Pick<Pin, 'kind' | 'item'>, digest?: string): Promise<boolean> {
    const result = await this.#change(server, (pinned) => ({ next: pinned && acceptPending(pinned, which, digest) }))
    if (result.next === undefined) return false
    this.#deps.changed()
    return true
  }

  /** Gives a server's pins to its new name as well. */
  async copy (server: string, newName: string): Promise<void> {
    const stored = await this.#deps.store.find(server)
    const former = await this.#deps.store.find(newName)
    if (stored !== undefined) await this.#deps.store.swap(newName, former?.version, stored.value as object)
    this.#states.delete(newName)
  }

  /** Removes the pins of servers that are gone. */
  async forget (servers: readonly string[]): Promise<void> {
    for (const server of servers) this.#states.delete(server)
    await this.#deps.store.remove(servers)
  }

  /** Reads what other replicas have changed. @param time within this time, in ms */
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
    if (isChanged) this.#deps.changed()
  }

  close (): void {
    this.#isClosed = true
    for (const timer of this.#retries.values()) clearTimeout(timer)
  }
}

const nothing: Listed['refused'] = new Map()
