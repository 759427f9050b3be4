import { getTableName, is } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import { recordCollections } from '../../records.ts'
import * as tables from '../tables.ts'

/** Tables that a backup omits: temporary data, data that can be recomputed, and the log of calls. */
const omittedTables: ReadonlySet<unknown> = new Set([
  tables.settingsRevision, tables.commits, tables.counters, tables.records, tables.activities, tables.activityHours,
  tables.vectors
])

interface BackupTable {
  readonly name: string
  /** The name of this part of the backup: that of the table, or `records-<collection>`. */
  readonly part: string
  /** The collection of records that this part contains. */
  readonly collection?: string
  /**
   * Whether its rows become invalid when they are used or withdrawn, such as tokens: a restore must not bring back rows
   * that have become invalid since the backup.
   */
  readonly isRevocable: boolean
  /** Whether a restore keeps the existing rows, and adds the rows of the backup as older ones. */
  readonly isLog: boolean
}

const wholeTables = [...Object.values(tables), ...Object.values(tables.settingsTables)]
  .filter((each): each is typeof each & PgTable => is(each, PgTable) && !omittedTables.has(each))
  .map((table) => ({
    name: getTableName(table), part: getTableName(table), isRevocable: false, isLog: table === tables.auditEntries
  }))

/** The collections of a backup whose entries stay valid when they are used. */
const keptCollections: ReadonlySet<string> =
  new Set([recordCollections.upstreamTokens.name, recordCollections.userValues.name])

/** The parts of a backup: all tables except `omittedTables`, and some collections of `records`. */
export const tablesInBackup: readonly BackupTable[] = [
  ...wholeTables,
  ...[
    recordCollections.tokens, recordCollections.revokedFamilies, recordCollections.consents,
    recordCollections.upstreamTokens, recordCollections.userValues
  ]
    .map(({ name }) => ({
      name: getTableName(tables.records),
      part: `records-${name}`,
      collection: name,
      isRevocable: !keptCollections.has(name),
      isLog: false
    }))
]
