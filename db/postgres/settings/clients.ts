// Moves OAuth clients between a settings document and their table.
import { and, eq, isNotNull, notInArray } from 'drizzle-orm'
import { messageOf } from '../../errors.ts'
import type { SettingsDocument } from '../../apply.ts'
import { isPlainObject } from '../../../schemas/unknown-members.ts'
import { clientsSectionName, parseClientEntry, type ClientEntry } from '../../client-entry.ts'
import type { Vault } from '../../store.ts'
import {
  removeClientAuthorizations, insertClients, resealClientColumns, toClientRow, clientEntryOfRow, type ClientRow
} from '../client-rows.ts'
import type { Db, Transaction } from '../connection/driver.ts'
import { oauthClients as clients } from '../tables.ts'

/** A settings document without its OAuth clients, and the clients as rows. */
interface SplitDocument { readonly document: SettingsDocument, readonly clients: readonly ClientRow[] }

/**
 * Separates the OAuth clients from a settings document. Entries that are not valid clients stay in the document.
 * @throws Error when the plain-text secret of a client is a mask
 */
export function separateClients (document: SettingsDocument, vault: Vault): SplitDocument {
  const { [clientsSectionName]: value, ...rest } = document
  if (!Array.isArray(value)) return { document, clients: [] }
  const rows = new Map<string, ClientRow>()
  const others = value.filter((entry) => {
    const client = parseClientEntry(entry)
    if (client === undefined || !isPlainObject(entry)) return true
    if (vault.findMasks({ clientSecret: entry.clientSecret }).length > 0) {
      throw new Error(
        'The settings file contains a mask in place of a secret. Write the secret itself, or remove the client: ' +
        `clientSecret of ${clientsSectionName}/${client.clientId}.`
      )
    }
    const row = toClientRow(entry, client, vault)
    // If several entries have the same id, only the first is kept.
    if (!rows.has(row.key)) rows.set(row.key, row)
    return false
  })
  if (rows.size === 0) return { document, clients: [] }
  return {
    document: others.length === 0 ? rest : { ...rest, [clientsSectionName]: others }, clients: [...rows.values()]
  }
}

/** Replaces all clients by the given ones. Tokens and consents of clients that are not among these are removed. */
export async function replaceClients (tx: Transaction, rows: readonly ClientRow[]): Promise<void> {
  const keys = rows.map(({ key }) => key)
  await removeClientAuthorizations(
    tx, await tx.delete(clients).where(notInArray(clients.key, keys)).returning({ data: clients.data })
  )
  await tx.delete(clients)
  await insertClients(tx, rows)
}

/**
 * Reads all clients as entries of the settings. Unknown members that cannot be decrypted are omitted.
 * @returns `locked`: a message for each client with omitted members
 */
export async function readClientEntries (db: Db, vault: Vault): Promise<{ entries: ClientEntry[], locked: string[] }> {
  const entries: ClientEntry[] = []
  const locked: string[] = []
  for (const row of await db.select().from(clients).orderBy(clients.key)) {
    try {
      entries.push(clientEntryOfRow(row, vault))
    } catch (error) {
      entries.push(clientEntryOfRow({ ...row, unknown: null, sealed: null }, vault))
      locked.push(`The client ${JSON.stringify(row.key)} cannot be decrypted: ${messageOf(error)}`)
    }
  }
  return { entries, locked }
}

/** Returns a settings document with the given OAuth clients added. Reverses `separateClients`. */
export function addClientsToDocument (document: SettingsDocument, entries: readonly ClientEntry[]): SettingsDocument {
  const others: unknown = document[clientsSectionName]
  if (entries.length === 0) return document
  return { ...document, [clientsSectionName]: [...Array.isArray(others) ? others as unknown[] : [], ...entries] }
}

/** Returns the keys of the clients whose unknown members are encrypted with a former encryption key. */
export async function findClientsToReseal (db: Db, vault: Vault): Promise<string[]> {
  const sealed =
    await db.select({ key: clients.key, sealed: clients.sealed }).from(clients).where(isNotNull(clients.sealed))
  return sealed.flatMap((row) => row.sealed !== null && vault.isSealedWithFormerKey(row.sealed) ? [row.key] : [])
}

/**
 * Re-encrypts the unknown members of clients with the newest key. Clients that are changed meanwhile, or whose members
 * cannot be decrypted, are skipped.
 * @returns the number of re-encrypted clients
 */
export async function resealClients (db: Db, vault: Vault, keys: readonly string[]): Promise<number> {
  let count = 0
  for (const key of keys) {
    const [row] = await db.select().from(clients).where(eq(clients.key, key))
    const columns = row === undefined || row.sealed === null ? undefined : resealClientColumns(row, vault)
    if (row === undefined || row.sealed === null || columns === undefined) continue
    const updated = await db.update(clients).set(columns)
      .where(and(eq(clients.key, key), eq(clients.sealed, row.sealed))).returning({ key: clients.key })
    count += updated.length
  }
  return count
}
