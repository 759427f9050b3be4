import { isPlainObject } from '../../../schemas/unknown-members.ts'
import type { SettingsDocument } from '../../apply.ts'
import { entities, isListEntityName as isList } from '../../entities.ts'
import { orderedEntries, createOrderedObject } from '../../order.ts'
import type { Change } from '../../store.ts'
import { settingsTableNames, type SettingsTableName } from '../tables.ts'

/**
 * An entry of the settings as a row. `name`: in `mcpServers`, the name of the server; in `sections`, the name of the
 * section; in `systemConfig`, which has one row, `systemConfig`; otherwise empty. `entry`: the value, with its secrets
 * decrypted, or masked if they cannot be decrypted.
 */
export interface SettingsRow { readonly position: number, readonly name: string, readonly entry: unknown }

/** The rows of each settings table, in the order of configuration. */
export type SettingsRows = Readonly<Record<SettingsTableName, readonly SettingsRow[]>>

/** The difference between two versions of a table: the new or changed rows, and the positions of removed rows. */
interface Difference { readonly written: readonly SettingsRow[], readonly removed: readonly number[] }

/** The rows of the settings in a database whose tables are all empty. */
export const noRows = Object.fromEntries(settingsTableNames.map((name) => [name, []])) as unknown as SettingsRows

type OwnTable = Exclude<SettingsTableName, 'sections'>
const ownTables = settingsTableNames.filter((name): name is OwnTable => name !== 'sections')

/** Returns the name or id of an entry; undefined if the entry has none, in which case it is kept but not used. */
export function entryName (table: SettingsTableName, { name, entry }: SettingsRow): string | undefined {
  if (!isList(table)) return name
  const key = isPlainObject(entry) ? entry[entities[table].key] : undefined
  return typeof key === 'string' ? key : undefined
}

/**
 * Whether the value of a section has the type that the section's own table can store. Otherwise, the table `sections`
 * stores it.
 */
const hasTableType = (name: SettingsTableName, value: unknown): boolean =>
  isList(name) ? Array.isArray(value) : name === 'systemConfig' || isPlainObject(value)
const isOwnTable = (name: string): name is OwnTable => name !== 'sections' && Object.hasOwn(noRows, name)

/** Converts a settings document to rows with new positions. */
export function toRows (document: SettingsDocument): SettingsRows {
  const own = ownTables.map((name) => [name, withPositions(entriesOf(name, document[name]))])
  const rest = Object.entries(document).filter(([name, value]) => isForSections(name, value))
  return { ...Object.fromEntries(own) as SettingsRows, sections: withPositions(rest) }
}

const withPositions = (entries: ReadonlyArray<[name: string, entry: unknown]>): SettingsRow[] =>
  entries.map(([name, entry], at) => ({ position: at + 1, name, entry }))

const isMissing = (value: unknown): boolean => value === undefined || value === null

/** Whether a section is stored in the table `sections`. */
function isForSections (name: string, value: unknown): boolean {
  return isOwnTable(name) ? !isMissing(value) && !hasTableType(name, value) : value !== undefined
}

/** Returns the entries of a section for its own table; none if the section is missing or has the wrong type. */
function entriesOf (table: OwnTable, value: unknown): Array<[name: string, entry: unknown]> {
  if (isMissing(value) || !hasTableType(table, value)) return []
  if (table === 'systemConfig') return [['systemConfig', value]]
  return Array.isArray(value) ? value.map((entry) => ['', entry]) : orderedEntries(value as Record<string, unknown>)
}

/**
 * Converts rows to a settings document. Sections whose rows have not changed stay the same objects as in the former
 * document.
 */
export function toDocument (
  rows: SettingsRows, former?: { rows: SettingsRows, document: SettingsDocument }
): SettingsDocument {
  const own = ownTables.flatMap((name): Array<[string, unknown]> => {
    if (former !== undefined && rows[name] === former.rows[name]) {
      return Object.hasOwn(former.document, name) && hasTableType(name, former.document[name])
        ? [[name, former.document[name]]]
        : []
    }
    const [first] = rows[name]
    if (first === undefined) return []
    if (name === 'systemConfig') return [[name, first.entry]]
    return [
      [name, isList(name)
        ? rows[name].map(({ entry }) => entry)
        : createOrderedObject(rows[name].map((row) => [row.name, row.entry]))]
    ]
  })
  return Object.fromEntries([...own, ...rows.sections.map(({ name, entry }): [string, unknown] => [name, entry])])
}

/**
 * Computes the rows of a changed document. Existing entries keep their positions, unless they are reordered; new ones
 * get the next free positions.
 * @param former the document before the changes, with its rows
 * @param document the document after the changes
 * @param changes the changes between the two, which tell what servers were renamed or removed
 */
export function toUpdatedRows (
  former: { rows: SettingsRows, document: SettingsDocument }, document: SettingsDocument, changes: readonly Change[]
): SettingsRows {
  const changed =
    ownTables.filter((name) =>
      document[name] !== former.document[name]).map((name): [OwnTable, readonly SettingsRow[]] => {
      const value = document[name]
      if (isList(name)) return [name, updateList(name, former.rows[name], value as readonly unknown[])]
      if (name === 'systemConfig') return [name, [{ position: 1, name, entry: value }]]
      return [name, updateMembers(former.rows[name], value as Record<string, unknown>, changes)]
    })
  return changed.length === 0 ? former.rows : { ...former.rows, ...Object.fromEntries(changed) }
}

const nextPosition = (rows: readonly SettingsRow[]): number => (rows.at(-1)?.position ?? 0) + 1

/**
 * Computes the rows of a changed list. Both the entries and the former rows are read once, in order: an entry takes the
 * next row with the same key. Rows that are skipped in this search are removed; an entry that finds no row gets a new
 * one at the end.
 */
function updateList (
  table: SettingsTableName, former: readonly SettingsRow[], next: readonly unknown[]
): SettingsRow[] {
  let at = 0
  let position = nextPosition(former)
  return next.map((entry) => {
    const key = entryName(table, { position: 0, name: '', entry })
    for (; at < former.length; at++) {
      const row = former[at] as SettingsRow
      if (row.entry === entry) { at++; return row }
      if (key !== undefined && entryName(table, row) === key) { at++; return { ...row, entry } }
    }
    return { position: position++, name: '', entry }
  })
}

/** Computes the rows of a changed object. An entry keeps the row with its name, or with the name before a rename. */
function updateMembers (
  former: readonly SettingsRow[], next: Record<string, unknown>, changes: readonly Change[]
): SettingsRow[] {
  const rowsByName = new Map(former.map((row) => [row.name, row]))
  for (const change of changes) {
    if (change.entity !== 'mcpServers') continue
    const { key, value, rename = key } = change
    const row = rowsByName.get(key)
    if (value !== undefined && rename === key) continue
    rowsByName.delete(key)
    if (value !== undefined && row !== undefined) rowsByName.set(rename, row)
  }
  let position = nextPosition(former)
  const rows = orderedEntries(next).map(([name, entry]): SettingsRow => {
    const row = rowsByName.get(name)
    if (row === undefined) return { position: position++, name, entry }
    return row.entry === entry && row.name === name ? row : { position: row.position, name, entry }
  })
  return rows.sort((one, other) => one.position - other.position)
}

/** Returns, by table, which rows the second version of the settings adds, changes and removes. */
export function diffRows (former: SettingsRows, next: SettingsRows): Map<SettingsTableName, Difference> {
  const found = new Map<SettingsTableName, Difference>()
  for (const table of settingsTableNames) {
    if (former[table] === next[table]) continue
    const before = new Map(former[table].map((row) => [row.position, row]))
    const written = next[table].filter((row) => before.get(row.position) !== row)
    for (const { position } of next[table]) before.delete(position)
    if (written.length + before.size > 0) found.set(table, { written, removed: [...before.keys()] })
  }
  return found
}

/**
 * Returns the rows of a table after some of them were read again. Rows with unchanged content stay the same objects.
 * @param read the rows that were found
 * @param positions the positions that were read: those without a row were removed; undefined means all positions
 */
export function mergeRows (
  former: readonly SettingsRow[], read: readonly SettingsRow[], positions?: ReadonlySet<number>
): readonly SettingsRow[] {
  const before = new Map(former.map((row) => [row.position, row]))
  const fresh = read.map((row) => {
    const known = before.get(row.position)
    return known !== undefined && known.name === row.name && JSON.stringify(known.entry) === JSON.stringify(row.entry)
      ? known
      : row
  })
  const rows =
    [...(positions === undefined ? [] : former.filter(({ position }) => !positions.has(position))), ...fresh].sort(
      (one, other) => one.position - other.position
    )
  return rows.length === former.length && rows.every((row, at) => row === former[at]) ? former : rows
}
