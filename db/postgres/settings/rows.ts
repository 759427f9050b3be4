import { isObject, keyMembers, type Document } from '../../apply.ts'
import type { Change } from '../../store.ts'
import { tableNames, type TableName } from '../tables.ts'

/** An entry of the settings at its place. `name`: what it is called where its section is an object; the entry itself is as in the document. */
export interface Row { readonly position: number, readonly name: string, readonly entry: unknown }

/** What each table holds, in the order of configuration. */
export type Rows = Readonly<Record<TableName, readonly Row[]>>

/** What rows differ by. */
export interface Difference { readonly written: readonly Row[], readonly removed: readonly number[] }

export const noRows: Rows = { users: [], mcpServers: [], groups: [], bearerKeys: [], systemConfig: [], sections: [] }

type Own = Exclude<TableName, 'sections'>
const owns = Object.keys(noRows).filter((name): name is Own => name !== 'sections')
const isList = (name: TableName): name is keyof typeof keyMembers => Object.hasOwn(keyMembers, name)

/** What an entry is called; undefined: it has no name, and does not count. */
export function keyOf (table: TableName, { name, entry }: Row): string | undefined {
  if (!isList(table)) return name
  const key = isObject(entry) ? entry[keyMembers[table]] : undefined
  return typeof key === 'string' ? key : undefined
}

/** Whether a section has the form that its table is for. One of another kind is kept among those that have none. */
const fits = (name: TableName, value: unknown): boolean => isList(name) ? Array.isArray(value) : name === 'systemConfig' || isObject(value)
const isOwn = (name: string): name is Own => name !== 'sections' && Object.hasOwn(noRows, name)

/** A whole document as rows. */
export function toRows (document: Document): Rows {
  const rest = Object.entries(document).filter(([name, value]) =>
    isOwn(name) ? value !== undefined && value !== null && !fits(name, value) : value !== undefined
  )
  const rows = owns.map((name) => {
    const value = document[name]
    return [
      name,
      value === undefined || value === null || !fits(name, value)
        ? []
        : listed(name, value).map(([key, entry], at) => ({ position: at + 1, name: key, entry }))
    ]
  })
  return { ...Object.fromEntries(rows) as Rows, sections: rest.map(([name, entry], at) => ({ position: at + 1, name, entry })) }
}

const listed = (table: Own, value: unknown): Array<[name: string, entry: unknown]> =>
  table === 'systemConfig'
    ? [['systemConfig', value]]
    : Array.isArray(value)
      ? value.map((entry) => ['', entry])
      : Object.entries(value as object)

/** The document that rows say. Sections whose rows are the same as before are the same objects. */
export function toDocument (rows: Rows, former?: { rows: Rows, document: Document }): Document {
  const own = owns.flatMap((name): Array<[string, unknown]> => {
    if (former !== undefined && rows[name] === former.rows[name]) {
      return Object.hasOwn(former.document, name) && fits(name, former.document[name]) ? [[name, former.document[name]]] : []
    }
    const [first] = rows[name]
    if (first === undefined) return []
    if (name === 'systemConfig') return [[name, first.entry]]
    return [
      [name, isList(name) ? rows[name].map(({ entry }) => entry) : Object.fromEntries(rows[name].map((row) => [row.name, row.entry]))]
    ]
  })
  return Object.fromEntries([...own, ...rows.sections.map(({ name, entry }): [string, unknown] => [name, entry])])
}

/**
 * The rows of a document that changes were applied to. Each entry stays at its place; new ones come behind the last.
 * @param former the rows of the document before
 */
export function follow (former: { rows: Rows, document: Document }, document: Document, changes: readonly Change[]): Rows {
  const changed = owns.filter((name) => document[name] !== former.document[name]).map((name): [Own, readonly Row[]] => {
    const value = document[name]
    if (isList(name)) return [name, followList(name, former.rows[name], value as readonly unknown[])]
    if (name === 'systemConfig') return [name, [{ position: 1, name, entry: value }]]
    return [name, followMembers(former.rows[name], value as Record<string, unknown>, changes)]
  })
  return changed.length === 0 ? former.rows : { ...former.rows, ...Object.fromEntries(changed) }
}

const behind = (rows: readonly Row[]): number => (rows.at(-1)?.position ?? 0) + 1

/** Changes never reorder a list: what is met out of order was removed. */
function followList (table: TableName, former: readonly Row[], next: readonly unknown[]): Row[] {
  let at = 0
  let position = behind(former)
  return next.map((entry) => {
    const key = keyOf(table, { position: 0, name: '', entry })
    for (; at < former.length; at++) {
      const row = former[at] as Row
      if (row.entry === entry) { at++; return row }
      if (key !== undefined && keyOf(table, row) === key) { at++; return { ...row, entry } }
    }
    return { position: position++, name: '', entry }
  })
}

/** Of an object the names tell, once those of renamed members are followed. */
function followMembers (former: readonly Row[], next: Record<string, unknown>, changes: readonly Change[]): Row[] {
  const places = new Map(former.map((row) => [row.name, row]))
  for (const change of changes) {
    if (change.entity !== 'mcpServers') continue
    const { key, value, rename = key } = change
    const row = places.get(key)
    if (value !== undefined && rename === key) continue
    places.delete(key)
    if (value !== undefined && row !== undefined) places.set(rename, row)
  }
  let position = behind(former)
  const rows = Object.entries(next).map(([name, entry]): Row => {
    const row = places.get(name)
    if (row === undefined) return { position: position++, name, entry }
    return row.entry === entry && row.name === name ? row : { position: row.position, name, entry }
  })
  return rows.sort((one, other) => one.position - other.position)
}

/** What must be written so that rows become others. */
export function difference (former: Rows, next: Rows): Map<TableName, Difference> {
  const found = new Map<TableName, Difference>()
  for (const table of tableNames) {
    if (former[table] === next[table]) continue
    const before = new Map(former[table].map((row) => [row.position, row]))
    const written = next[table].filter((row) => before.get(row.position) !== row)
    for (const { position } of next[table]) before.delete(position)
    if (written.length + before.size > 0) found.set(table, { written, removed: [...before.keys()] })
  }
  return found
}

/** Rows with those of some positions read anew: what is not there any more was removed. What says the same as before is the same object. */
export function patch (former: readonly Row[], read: readonly Row[], positions?: ReadonlySet<number>): readonly Row[] {
  const before = new Map(former.map((row) => [row.position, row]))
  const fresh = read.map((row) => {
    const known = before.get(row.position)
    return known !== undefined && known.name === row.name && JSON.stringify(known.entry) === JSON.stringify(row.entry) ? known : row
  })
  const rows = [...(positions === undefined ? [] : former.filter(({ position }) => !positions.has(position))), ...fresh].sort(
    (one, other) => one.position - other.position
  )
  return rows.length === former.length && rows.every((row, at) => row === former[at]) ? former : rows
}
