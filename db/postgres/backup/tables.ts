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
  /** The name of the table's part in the backup. */
  readonly part: string
  /** The collection of records that this part contains. */
  readonly collection?: string
  /**
   * Whether its rows are consumed or withdrawn over time, so that older rows must not be restored beside newer ones.
   */
  readonly isSpent: boolean
  /** Whether a restore keeps its existing rows, and adds the rows of the backup as older ones. */
  readonly isLog: boolean
}

const wholeTables = [...Object.values(tables), ...Object.values(tables.settingsTables)]
  .filter((each): each is typeof each & PgTable => is(each, PgTable) && !omittedTables.has(each))
  .map((table) => ({
    name: getTableName(table), part: getTableName(table), isSpent: false, isLog: table === tables.auditEntries
  }))

/** Collections whose entries are not consumed when they are used. */
const keptCollections: ReadonlySet<string> =
  new Set([recordCollections.upstreamTokens.name, recordCollections.userValues.name])

/** The tables and collections that a backup contains: all except `omittedTables`. */
export const backupTables: readonly BackupTable[] = [
  ...wholeTables,
  ...[
    recordCollections.tokens, recordCollections.revokedFamilies, recordCollections.consents,
    recordCollections.upstreamTokens, recordCollections.userValues
  ]
    .map(({ name }) => ({
      name: getTableName(tables.records),
      part: `records-${name}`,
      collection: name,
      isSpent: !keptCollections.has(name),
      isLog: false
    }))
]
