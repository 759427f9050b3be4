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

/** Max number of clients in one statement. */
const batchSize = 1_000

/**
 * Returns the `place` of a client for the vault: its unknown members cannot be decrypted in the row of another client.
 */
const placeOf = (key: string): string => `oauth-clients/${key}`

/** Converts a client to the columns of its row, except those of its unknown members. */
export function toClientColumns (client: OAuthClient): Omit<ClientRow, 'unknown' | 'sealed'> {
  const { lastUsedAt, ...rest } = client
  return {
    key: toIndexableText(client.clientId),
    origin: client.origin,
    data: JSON.stringify(toClientEntry(rest)),
    lastUsed: lastUsedAt === undefined ? null : new Date(lastUsedAt),
    // If both the last use and the creation are unknown, the idle time starts now.
    idleSince: new Date(lastUsedAt ?? (client.createdAt === 0 ? Date.now() : client.createdAt))
  }
}

/** Converts an entry of the settings to a row, with its unknown members encrypted. @param client the parsed entry */
export function toClientRow (entry: ClientEntry, client: OAuthClient, vault: Vault): ClientRow {
  const columns = toClientColumns(client)
  const unknown = unknownClientMembers(entry)
  if (Object.keys(unknown).length === 0) return { ...columns, unknown: null, sealed: null }
  const { data, sealed } = sealText(vault, JSON.stringify(unknown), placeOf(columns.key))
  return { ...columns, unknown: data, sealed }
}

/** Converts a row to the client, without the unknown members. @throws Error when the row is not a valid client */
export function clientOfRow ({ data, lastUsed }: Pick<StoredClient, 'data' | 'lastUsed'>): OAuthClient {
  const client = parseClientEntry(JSON.parse(data))
  if (client === undefined) throw new Error('A client in the table "oauth_clients" cannot be read.')
  return lastUsed === null ? client : { ...client, lastUsedAt: lastUsed.getTime() }
}

/** Converts a row to an entry of the settings. @throws Error when the client's unknown members cannot be decrypted */
export function clientEntryOfRow (stored: StoredClient, vault: Vault): ClientEntry {
  return toClientEntry(clientOfRow(stored), unknownOf(stored, vault))
}

const unknownOf = ({ key, unknown, sealed }: StoredClient, vault: Vault): Record<string, unknown> =>
  unknown === null
    ? {}
    : JSON.parse(unsealText(vault, { data: unknown, sealed }, placeOf(key))) as Record<string, unknown>

/**
 * Returns the columns of a client's unknown members, re-encrypted with the newest key; undefined if the members cannot
 * be decrypted.
 */
export function resealClientColumns (
  stored: StoredClient, vault: Vault
): Pick<ClientRow, 'unknown' | 'sealed'> | undefined {
  try {
    const { data, sealed } = sealText(vault, JSON.stringify(unknownOf(stored, vault)), placeOf(stored.key))
    return { unknown: data, sealed }
  } catch {
    return undefined
  }
}

/** Adds clients. Existing clients with the same ids stay unchanged. */
export async function insertClients (tx: Transaction, rows: readonly ClientRow[]): Promise<void> {
  for (let at = 0; at < rows.length; at += batchSize) {
    await tx.insert(clients).values(rows.slice(at, at + batchSize)).onConflictDoNothing()
  }
}

/**
 * Revokes the tokens and removes the consents of clients that the transaction removes.
 * @param removed the rows of the clients
 */
export async function removeClientAuthorizations (
  tx: Transaction, removed: ReadonlyArray<{ data: string }>
): Promise<void> {
  const ids = removed.map(({ data }) => (JSON.parse(data) as { clientId: string }).clientId)
  for (let at = 0; at < ids.length; at += batchSize) {
    const labels = ids.slice(at, at + batchSize).map(clientLabel)
    const tokens = recordCondition(recordCollections.tokens, { labels })
    // The first removal waits for token rotations in progress; the second one finds the tokens that these have stored.
    const gone = [...await removeRecords(tx, tokens), ...await removeRecords(tx, tokens)]
    const families = [...new Set(gone.flatMap(({ owner }) => owner ?? []))]
    if (families.length > 0) await tx.insert(records).values(revokedFamilyRows(families)).onConflictDoNothing()
    await removeRecords(tx, recordCondition(recordCollections.consents, { labels }))
  }
}
