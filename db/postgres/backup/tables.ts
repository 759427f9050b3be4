import { getTableName, is } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import { recordCollections, reusableCollectionNames } from '../../records.ts'
import * as tables from '../tables.ts'

/** Tables that a backup omits: temporary data, data that can be recomputed, recorded calls, and most of `records`. */
const omittedTables: ReadonlySet<unknown> = new Set([
  tables.settingsRevision, tables.commits, tables.counters, tables.records, tables.activities, tables.activityHours,
  tables.vectors
])

interface BackupTable {
  readonly name: string
  /** The name of this part of the backup: the name of the table, or `records-<collection>`. */
  readonly part: string
  /** The name of the collection that this part of `records` contains; undefined for other tables. */
  readonly collection?: string
  /**
   * Whether rows become invalid when they are used or withdrawn, as tokens do: a restore must not make rows valid again
   * that have become invalid since the backup.
   */
  readonly isRevocable: boolean
  /** Whether a restore keeps the existing rows, and adds those of the backup as older ones. */
  readonly isLog: boolean
}

const wholeTables = [...Object.values(tables), ...Object.values(tables.settingsTables)]
  .filter((each): each is typeof each & PgTable => is(each, PgTable) && !omittedTables.has(each))
  .map((table) => ({
    name: getTableName(table), part: getTableName(table), isRevocable: false, isLog: table === tables.auditEntries
  }))

/** The tables and parts of tables in a backup: all tables except `omittedTables`, and some collections of `records`. */
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
      isRevocable: !reusableCollectionNames.includes(name),
      isLog: false
    }))
]
