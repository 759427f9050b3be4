import { randomUUID } from 'node:crypto'
import type { SettingsDocument } from '../../apply.ts'
import { undecryptableReasonOf } from '../../document.ts'
import type { Vault } from '../../store.ts'
import type { DatabaseDriver } from '../connection/driver.ts'
import { readClientEntries, replaceClients, separateClients, addClientsToDocument } from './clients.ts'
import { isDatabaseEmpty, settingsLostError, readHead, readRows } from './read.ts'
import { noRows, toDocument, toRows } from './rows.ts'
import { assertNoMasks, rowVaultPlace } from './stored.ts'
import { settingsTableNames } from '../tables.ts'
import { safeMessageOf } from '../connection/failures.ts'
import { lockHead, planWrites, writeCommit } from './write.ts'

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

/**
 * Replaces the settings and OAuth clients in a database by a settings document, in one commit. Running replicas then
 * load the new settings.
 * @param mayReplace whether existing settings may be replaced; if not, the database must be empty
 * @throws Error whose message contains no SQL and no values; nothing is changed then
 */
export async function importDocument (
  driver: DatabaseDriver, vault: Vault, document: SettingsDocument, mayReplace: boolean
): Promise<void> {
  const id = randomUUID()
  const split = separateClients(document, vault)
  const rows = toRows(split.document)
  assertNoMasks(rows, vault)
  const writes = planWrites(noRows, rows, vault)
  await withReadableErrors(async () => {
    await driver.db.transaction(async (tx) => {
      const base = await lockHead(tx, id)
      if (!mayReplace && !(await isDatabaseEmpty(tx))) {
        throw new Error(
          'The database already contains settings, and was not changed. ' +
          'Use --replace to replace them with the file; export them first if you need them.'
        )
      }
      await writeCommit(tx, base, id, writes, true)
      await replaceClients(tx, split.clients)
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
