import { randomUUID } from 'node:crypto'
import { isPlainObject } from '../../../schemas/unknown-members.ts'
import type { SettingsDocument } from '../../apply.ts'
import { undecryptableReasonOf } from '../../document.ts'
import { sealedRecordsIn, withoutRecords } from '../../json/records.ts'
import { recordCollections, type RecordEntry } from '../../records.ts'
import { withRestoredUsers } from '../../restored-users.ts'
import type { Vault } from '../../store.ts'
import type { ClientRow } from '../client-rows.ts'
import type { DatabaseDriver, Transaction } from '../connection/driver.ts'
import { insertRecords } from '../ports/records.ts'
import { readClientEntries, replaceClients, separateClients, addClientsToDocument } from './clients.ts'
import { isDatabaseEmpty, settingsLostError, readHead, readRows, readRowsInTransaction } from './read.ts'
import { noRows, toDocument, toRows } from './rows.ts'
import { assertNoMasks, rowVaultPlace } from './stored.ts'
import { settingsTableNames } from '../tables.ts'
import { safeMessageOf } from '../connection/failures.ts'
import { lockHead, planWrites, writeCommit, type Writes } from './write.ts'

/**
 * The content of a database as a settings document. `locked`: a message for each entry whose secrets cannot be
 * decrypted. The document has masks in place of these secrets, and omits what is encrypted as a whole and cannot be
 * decrypted: sections that have no table of their own, and unknown members of clients.
 */
interface ExportedSettings { readonly document: SettingsDocument, readonly locked: readonly string[] }

/**
 * Reads the settings and OAuth clients of a database, with secrets in plain text.
 * @returns undefined if nothing was ever stored in the database
 * @throws Error whose message contains no SQL and no values
 */
export async function exportDocument (driver: DatabaseDriver, vault: Vault): Promise<ExportedSettings | undefined> {
  return await withReadableErrors(async () => {
    if (await readHead(driver.db) === undefined) {
      if (await isDatabaseEmpty(driver.db)) return undefined
      throw settingsLostError()
    }
    const { rows } = await readRows(driver.db, vault)
    const locked = settingsTableNames.flatMap((table) => rows[table].flatMap((row) => {
      const reason = undecryptableReasonOf(row.entry)
      return reason === undefined
        ? []
        : [`${table === 'sections' ? `The section ${JSON.stringify(row.name)}` : rowVaultPlace(table, row)} cannot ` +
          `be opened: ${reason}`]
    }))
    const document = toDocument({
      ...rows,
      sections: rows.sections.filter(({ entry }) => undecryptableReasonOf(entry) === undefined)
    })
    const clients = await readClientEntries(driver.db, vault)
    return { document: addClientsToDocument(document, clients.entries), locked: [...locked, ...clients.locked] }
  })
}

/** The rows and records that store a settings document in a database. */
interface DatabaseContent {
  readonly writes: Writes
  readonly clients: readonly ClientRow[]
  /** The values of users for servers. The other records, such as tokens, may have been used or revoked since. */
  readonly userValues: readonly RecordEntry[]
  /** Warnings about what is left out. */
  readonly warnings: readonly string[]
}

/** Converts a settings document. @throws Error if it contains a mask in place of a secret */
export function toDatabaseContent (document: SettingsDocument, vault: Vault): DatabaseContent {
  const { records, locked } = sealedRecordsIn(document, recordCollections.userValues, vault)
  const split = separateClients(withoutRecords(document), vault)
  const rows = toRows(split.document)
  assertNoMasks(rows, vault)
  return {
    writes: planWrites(noRows, rows, vault),
    clients: split.clients,
    userValues: records,
    warnings: locked === 0
      ? []
      : [
          `Cannot be decrypted and left out: ${locked} of the users' values for servers. Let the users enter them ` +
          'again. Or set ENCRYPTION_KEY and DATA_DIR as they were for the settings file, and import or restore it ' +
          'again with --replace, which replaces later changes of the settings, too.'
        ]
  }
}

/** Stores the values of users for servers, in place of existing ones of the same users for the same servers. */
export async function insertUserValues (
  tx: Transaction, vault: Vault, entries: readonly RecordEntry[]
): Promise<void> {
  // In batches, since a statement has at most 65,535 parameters.
  for (let from = 0; from < entries.length; from += 1_000) {
    await insertRecords(tx, vault, recordCollections.userValues, entries.slice(from, from + 1_000))
  }
}

/**
 * Replaces the settings and OAuth clients in a database by a settings document, in one commit. The values of users
 * for servers are added; they replace existing values of the same users for the same servers. Running replicas then
 * load the new settings. Tokens and logins of users whose account differs from the existing one become invalid.
 * @param mayReplace whether existing settings may be replaced; if not, the database must be empty
 * @returns warnings about what is left out
 * @throws Error whose message contains no SQL and no values; nothing is changed then
 */
export async function importDocument (
  driver: DatabaseDriver, vault: Vault, document: SettingsDocument, mayReplace: boolean
): Promise<readonly string[]> {
  const id = randomUUID()
  return await withReadableErrors(async () => {
    return await driver.db.transaction(async (tx) => {
      const base = await lockHead(tx, id)
      const wasEmpty = await isDatabaseEmpty(tx)
      if (!mayReplace && !wasEmpty) {
        throw new Error(
          'The database already contains settings, and was not changed. ' +
          'Use --replace to replace them with the file; export them first if you need them.'
        )
      }
      const { users } = toDocument((await readRowsInTransaction(tx, vault)).rows)
      const restored = withRestoredUsers(document, Array.isArray(users) ? users.filter(isPlainObject) : [], wasEmpty)
      const { writes, clients, userValues, warnings } = toDatabaseContent(restored, vault)
      await writeCommit(tx, base, id, writes, true)
      await replaceClients(tx, clients)
      await insertUserValues(tx, vault, userValues)
      return warnings
    })
  })
}

/** Runs work, and throws its errors with messages that contain no SQL and no values (`safeMessageOf`). */
async function withReadableErrors<Result> (work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw new Error(safeMessageOf(error))
  }
}
