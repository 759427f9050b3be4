// Conversion of OAuth clients to and from rows of the table `oauth_clients`, and statements on that table.
import { parseClientEntry, toClientEntry, unknownClientMembers, type ClientEntry } from '../client-entry.ts'
import type { OAuthClient } from '../ports/clients.ts'
import type { Vault } from '../store.ts'
import type { Transaction } from './connection/driver.ts'
import { clientLabel, recordCollections } from '../records.ts'
import { recordCondition, removeRecords, revokedFamilyRows } from './ports/records.ts'
import { unsealText, sealText } from './sealed-text.ts'
import { oauthClients as clients, records } from './tables.ts'
import { toIndexableText } from './text.ts'

export type ClientRow = typeof clients.$inferInsert
type StoredClient = typeof clients.$inferSelect

/** Number of clients in one statement. */
const batchSize = 1_000

/** Returns the `place` of a client for the vault: its unknown members cannot be decrypted for another client. */
const placeOf = (key: string): string => `oauth-clients/${key}`

/** Converts a client to columns: all but those of its unknown members. */
export function toClientColumns (client: OAuthClient): Omit<ClientRow, 'unknown' | 'sealed'> {
  const { lastUsedAt, ...rest } = client
  return {
    key: toIndexableText(client.clientId),
    origin: client.origin,
    data: JSON.stringify(toClientEntry(rest)),
    lastUsed: lastUsedAt === undefined ? null : new Date(lastUsedAt),
    // For a client of unknown age, the idle time starts now.
    idleSince: new Date(lastUsedAt ?? (client.createdAt === 0 ? Date.now() : client.createdAt))
  }
}

/** Converts an entry of the settings into a row, with its unknown members encrypted. */
export function toClientRow (entry: ClientEntry, client: OAuthClient, vault: Vault): ClientRow {
  const columns = toClientColumns(client)
  const unknown = unknownClientMembers(entry)
  if (Object.keys(unknown).length === 0) return { ...columns, unknown: null, sealed: null }
  const { data, sealed } = sealText(vault, JSON.stringify(unknown), placeOf(columns.key))
  return { ...columns, unknown: data, sealed }
}

/** Reads the client of a row. Its unknown members stay encrypted. */
export function clientOfRow ({ data, lastUsed }: Pick<StoredClient, 'data' | 'lastUsed'>): OAuthClient {
  const client = parseClientEntry(JSON.parse(data))
  if (client === undefined) throw new Error('A client in the table "oauth_clients" cannot be read.')
  return lastUsed === null ? client : { ...client, lastUsedAt: lastUsed.getTime() }
}

/** Converts a row to the client's entry in the settings. @throws Error when its unknown members cannot be decrypted */
export function clientEntryOfRow (stored: StoredClient, vault: Vault): ClientEntry {
  return toClientEntry(clientOfRow(stored), unknownOf(stored, vault))
}

const unknownOf = ({ key, unknown, sealed }: StoredClient, vault: Vault): Record<string, unknown> =>
  unknown === null
    ? {}
    : JSON.parse(unsealText(vault, { data: unknown, sealed }, placeOf(key))) as Record<string, unknown>

/** Re-encrypts the unknown members of a client with the newest key. @throws Error when these cannot be decrypted */
export function resealClientColumns (stored: StoredClient, vault: Vault): Pick<ClientRow, 'unknown' | 'sealed'> {
  const { data, sealed } = sealText(vault, JSON.stringify(unknownOf(stored, vault)), placeOf(stored.key))
  return { unknown: data, sealed }
}

/** Adds clients. Existing clients with the same id stay unchanged. */
export async function insertClients (tx: Transaction, rows: readonly ClientRow[]): Promise<void> {
  for (let at = 0; at < rows.length; at += batchSize) {
    await tx.insert(clients).values(rows.slice(at, at + batchSize)).onConflictDoNothing()
  }
}

/** Revokes the tokens and removes the consents of clients that this transaction removes. */
export async function removeClientAuthorizations (
  tx: Transaction, removed: ReadonlyArray<{ data: string }>
): Promise<void> {
  const ids = removed.map(({ data }) => (JSON.parse(data) as { clientId: string }).clientId)
  for (let at = 0; at < ids.length; at += batchSize) {
    const labels = ids.slice(at, at + batchSize).map(clientLabel)
    const tokens = recordCondition(recordCollections.tokens, { labels })
    // The first removal waits for token swaps in progress; the second one finds the tokens that they created.
    const gone = [...await removeRecords(tx, tokens), ...await removeRecords(tx, tokens)]
    const families = [...new Set(gone.flatMap(({ owner }) => owner ?? []))]
    if (families.length > 0) await tx.insert(records).values(revokedFamilyRows(families)).onConflictDoNothing()
    await removeRecords(tx, recordCondition(recordCollections.consents, { labels }))
  }
}
