import { getTableName, is } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import { collections } from '../../records.ts'
import * as tables from '../tables.ts'

/** Tables that a backup omits: temporary data, data that can be computed again, and the log of calls. */
const left: ReadonlySet<unknown> = new Set([
  tables.revision, tables.commits, tables.counters, tables.records, tables.activities, tables.activityHours,
  tables.vectors
])

interface BackupTable {
  readonly name: string
  /** The name of the table's part in the backup. */
  readonly part: string
  /** The collection of records that this part contains. */
  readonly collection?: string
  /** Its rows get used or withdrawn: older rows must not be restored beside newer ones. */
  readonly isSpent: boolean
  /** Its existing rows are kept by a restore: the rows of the backup are added as older ones. */
  readonly isLog: boolean
}

const whole = [...Object.values(tables), ...Object.values(tables.settingsTables)]
  .filter((each): each is typeof each & PgTable => is(each, PgTable) && !left.has(each))
  .map((table) => ({
    name: getTableName(table), part: getTableName(table), isSpent: false, isLog: table === tables.auditEntries
  }))

/** The parts of a backup. A new table is included unless it is listed above. */
export const backupTables: readonly BackupTable[] = [
  ...whole,
  ...[collections.tokens, collections.revokedFamilies, collections.consents, collections.upstreamTokens]
    .map(({ name }) => ({
      name: getTableName(tables.records),
      part: `records-${name}`,
      collection: name,
      isSpent: name !== collections.upstreamTokens.name,
      isLog: false
    }))
]
