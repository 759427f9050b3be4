import { getTableName, is } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import * as tables from '../tables.ts'

/** Tables that a backup leaves out: what passes by itself, what is worked out again, and the log of calls. */
const left: ReadonlySet<unknown> = new Set([
  tables.revision, tables.commits, tables.counters, tables.grants, tables.loginStates, tables.usedStates,
  tables.activities, tables.activityHours, tables.vectors
])
/** Tables whose rows are used up or withdrawn: older rows must not come back beside newer ones. */
const spent: ReadonlySet<unknown> = new Set([tables.tokenFamilies, tables.tokens, tables.oauthConsents])

interface BackupTable {
  readonly name: string
  readonly isSpent: boolean
  /** Its rows stay when a backup is restored: those of the backup join them, as older ones. */
  readonly isLog: boolean
}

/** The tables of a backup. A new table is among them unless it is listed above. */
export const backupTables: readonly BackupTable[] = [...Object.values(tables), ...Object.values(tables.settingsTables)]
  .filter((each): each is typeof each & PgTable => is(each, PgTable) && !left.has(each))
  .map((table) => ({ name: getTableName(table), isSpent: spent.has(table), isLog: table === tables.auditEntries }))
