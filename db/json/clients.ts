import {
  clientsSectionName, hasPlainSecret, parseClientEntry, toClientEntry, type ClientEntry
} from '../client-entry.ts'
import {
  isIdleClient, maxRegisteredClientsInFile, touchInterval, type OAuthClient, type OAuthClients, type ListRange
} from '../ports/clients.ts'
import { clientLabel, recordCollections, tombstoneRetention } from '../records.ts'
import type { FileRecords } from './records.ts'
import { EntryList, mergeUpdates, type SectionAccess } from './section.ts'

const isEntry = (item: unknown): item is ClientEntry => parseClientEntry(item) !== undefined
const clientIdOf = (entry: ClientEntry): string => parseClientEntry(entry)?.clientId ?? ''

interface FileClientsOptions {
  file: SectionAccess
  records: FileRecords
  /** Max number of self-registered clients. */
  maxRegistered?: number
}

/**
 * The OAuth clients of a settings file, which may also be edited by hand. A secret in plain text is read as its hash;
 * the next write of the client's entry replaces it by the hash.
 */
export class FileClients implements OAuthClients {
  readonly #file: SectionAccess
  readonly #list: EntryList<ClientEntry>
  readonly #records: FileRecords
  readonly #maxRegistered: number

  constructor ({ file, records, maxRegistered = maxRegisteredClientsInFile }: FileClientsOptions) {
    this.#file = file
    this.#list = new EntryList(file, { name: clientsSectionName, isEntry, keyOf: clientIdOf, isEditable: true })
    this.#records = records
    this.#maxRegistered = maxRegistered
  }

  async find (clientId: string): Promise<OAuthClient | undefined> {
    return findActiveClient(this.#list.entries, clientId)
  }

  async list ({ offset, limit }: ListRange = { offset: 0, limit: Infinity }): Promise<OAuthClient[]> {
    return this.#activeClients().sort(byAge).slice(offset, offset + limit)
  }

  async count (): Promise<number> {
    return this.#activeClients().length
  }

  #activeClients (): OAuthClient[] {
    return clientsOf(this.#list.entries).filter((client) => !isIdleClient(client))
  }

  async create (client: OAuthClient): Promise<boolean> {
    return await this.#change((entries) => {
      if (entries.has(client.clientId)) return false
      entries.set(client.clientId, toClientEntry(client))
      return true
    })
  }

  async replace (clientId: string, change: (client: OAuthClient) => OAuthClient): Promise<OAuthClient | undefined> {
    return await this.#change((entries) => {
      const former = findActiveClient(entries, clientId)
      if (former === undefined) return undefined
      const entry = toClientEntry({ ...change(former), clientId }, entries.get(clientId))
      entries.set(clientId, entry)
      return parseClientEntry(entry)
    })
  }

  async remove (clientId: string): Promise<boolean> {
    return await this.#change((entries) => entries.delete(clientId))
  }

  async touch (clientId: string, at: number): Promise<void> {
    const isDue = (client: OAuthClient | undefined): client is OAuthClient =>
      client !== undefined && at - (client.lastUsedAt ?? 0) >= touchInterval
    try {
      if (!isDue(findActiveClient(this.#list.entries, clientId))) return
      await this.#change((entries) => {
        const client = findActiveClient(entries, clientId)
        if (isDue(client)) entries.set(clientId, toClientEntry({ ...client, lastUsedAt: at }, entries.get(clientId)))
      })
    } catch {
      // A failed write is ignored, since the next use of the client is recorded.
    }
  }

  /**
   * Changes the clients in one write: on a copy of the entries, it removes idle clients, runs `work`, and enforces the
   * limit. The tokens and consents of removed clients are removed in the same write.
   * @returns the result of `work`
   */
  async #change<Result> (work: (entries: Map<string, ClientEntry>) => Result): Promise<Result> {
    return await this.#file.updateSections((sections) => {
      const gone = new Set<string>()
      let dropsSecret = false
      const own = this.#list.planChange(sections, (entries) => {
        const former = new Map(entries)
        for (const client of clientsOf(entries).filter(isIdleClient)) gone.add(client.clientId)
        for (const clientId of gone) entries.delete(clientId)
        const result = work(entries)
        for (const { clientId } of excessClients(entries, this.#maxRegistered)) entries.delete(clientId)
        for (const [clientId, entry] of former) {
          if (!entries.has(clientId)) gone.add(clientId)
          dropsSecret ||= hasPlainSecret(entry) && entries.get(clientId) !== entry
        }
        return result
      })
      const update = { ...own, dropsSecret }
      if (gone.size === 0) return update
      const filter = { labels: [...gone].map(clientLabel) }
      const tokens = this.#records.planRemoval(sections, recordCollections.tokens, filter, (families) => {
        const entries = families.map((family) =>
          ({ key: family, value: null, owner: family, expiresIn: tombstoneRetention }))
        void this.#records.put(recordCollections.revokedFamilies, entries)
      })
      return mergeUpdates(update, tokens, this.#records.planRemoval(sections, recordCollections.consents, filter))
    })
  }
}

const clientsOf = (entries: ReadonlyMap<string, ClientEntry>): OAuthClient[] =>
  [...entries.values()].flatMap((entry) => parseClientEntry(entry) ?? [])

function findActiveClient (entries: ReadonlyMap<string, ClientEntry>, clientId: string): OAuthClient | undefined {
  const client = parseClientEntry(entries.get(clientId))
  return client === undefined || isIdleClient(client) ? undefined : client
}

/** Compares clients for sorting by creation time, oldest first. */
const byAge = (one: OAuthClient, other: OAuthClient): number =>
  one.createdAt - other.createdAt || (one.clientId < other.clientId ? -1 : 1)

/** Selects the self-registered clients to remove so that at most `max` remain, as `maxRegisteredClients` describes. */
function excessClients (entries: ReadonlyMap<string, ClientEntry>, max: number): OAuthClient[] {
  const newestFirst = clientsOf(entries).filter(({ origin }) => origin === 'registered').sort((one, other) =>
    lastUse(other) - lastUse(one))
  if (newestFirst.length <= max) return []
  const unused = newestFirst.filter(({ lastUsedAt }) => lastUsedAt === undefined)
  const removedFirst = new Set(unused.slice(Math.floor(max / 4)))
  return [...newestFirst.filter((client) => !removedFirst.has(client)), ...removedFirst].slice(max)
}

const lastUse = ({ createdAt, lastUsedAt }: OAuthClient): number => lastUsedAt ?? createdAt
