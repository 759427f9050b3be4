import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../apply.ts'
import { lock, lockOf } from '../../document.ts'
import { ServerConfig } from '../../../schemas/server.ts'
import { SystemConfig } from '../../../schemas/settings.ts'
import { SystemSections } from '../../../schemas/system.ts'
import { Invalid, type Vault } from '../../store.ts'
import { difference, keyOf, type Row, type Rows } from './rows.ts'
import { tableNames, type Stored, type TableName } from '../tables.ts'

/** What PostgreSQL cannot hold in a text (NUL, half a surrogate pair), and U+E000 itself, as U+E000 and four digits. */
const escape = (text: string): string =>
  text.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000\ue000]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    (character) => `\ue000${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  )
const unescape = (text: string): string =>
  text.replace(/\ue000([0-9a-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A name as an index can hold it. */
function indexed (name: string): string {
  const text = escape(name)
  return Buffer.byteLength(text) <= 512 ? text : `${text.slice(0, 64)}…${sha256(text)}`
}

/** JSON text as JSONB takes it. */
const asJsonb = (text: string): string =>
  text.includes('\\u')
    ? text.replace(/\\(u0000|ud[89a-f][0-9a-f]{2}|.)/g, (escaped, what: string) => (/^u(0000|d[89a-f])/.test(what) ? '\\ufffd' : escaped))
    : text

/** Whether all members stand in the order that JSONB gives them: by length, then by bytes. */
function inOrder (value: unknown): boolean {
  if (Array.isArray(value)) return value.every(inOrder)
  if (!isObject(value)) return true
  const names = Object.keys(value).map((name) => Buffer.from(name))
  return (
    names.every((name, at) => {
      const before = names[at - 1]
      return before === undefined || (before.length - name.length || before.compare(name)) < 0
    }) && Object.values(value).every(inOrder)
  )
}

/** What may be read in a table: nobody is to look for secrets there, so nothing is plain because nobody thought of it. */
const plain: Partial<Record<TableName, ReadonlySet<string>>> = {
  mcpServers: new Set([
    ...Object.keys(ServerConfig.properties).filter((name) => !['args', 'url', 'oauth', 'proxy', 'openapi'].includes(name)),
    'openapi.schema'
  ]),
  systemConfig: new Set([...Object.keys(SystemSections.properties), ...Object.keys(SystemConfig.properties), 'auth'])
}

/** An entry with its secrets sealed. A password is one only until it is a hash. */
function hide (table: TableName, row: Row, entry: unknown, vault: Vault): { value: unknown, sealed: string | null } {
  const { password } = isObject(entry) ? entry : {}
  if (table !== 'users' || typeof password !== 'string' || !/^(scrypt\$|\$2[aby]\$)/.test(password)) {
    return vault.hide(entry, placeOf(table, row), plain[table])
  }
  const { value, sealed } = vault.hide({ ...entry as object, password: null }, placeOf(table, row))
  return { value: { ...value, password }, sealed }
}

/** What a row is called, for people and for what is sealed with it. */
export const placeOf = (table: TableName, row: Row): string => table === 'systemConfig' ? table : `${table}/${keyOf(table, row) ?? ''}`

/**
 * Rows as the table keeps them. A name counts for the first entry that has it.
 * @param rows those to write
 * @param all the rows of the table when they are written
 */
export function encode (table: TableName, rows: readonly Row[], all: readonly Row[], vault: Vault): Stored[] {
  const keys = firsts(all, (row) => keyOf(table, row))
  const member =
    (name: string) =>
      ({ entry }: Row): string | undefined =>
        isObject(entry) && typeof entry[name] === 'string' ? entry[name] : undefined
  const names = table === 'groups' ? firsts(all, member('name')) : undefined
  const hashes = table === 'bearerKeys' ? firsts(all, member('tokenHash')) : undefined
  return rows.map((row) => {
    const { position, entry } = row
    // A section that we do not know may hold anything: all of it is a secret.
    const { value, sealed } = hide(table, row, table === 'sections' ? { secret: JSON.stringify(entry) } : entry, vault)
    const text = JSON.stringify(value)
    const jsonb = asJsonb(text)
    return {
      position,
      key: keys(row),
      data: jsonb === text ? value : JSON.parse(jsonb) as unknown,
      spelling: jsonb === text && inOrder(value) ? null : text,
      sealed,
      name: names?.(row) ?? (names === undefined ? escape(row.name) : null),
      tokenHash: hashes?.(row) ?? null
    }
  })
}

/** Gives an entry its name if no entry before it has the same. */
function firsts (all: readonly Row[], nameOf: (row: Row) => string | undefined): (row: Row) => string | null {
  const first = new Map<string, number>()
  for (const row of all) {
    const name = nameOf(row)
    if (name !== undefined && !first.has(name)) first.set(name, row.position)
  }
  return (row) => {
    const name = nameOf(row)
    return name !== undefined && first.get(name) === row.position ? indexed(name) : null
  }
}

function isSpelling (text: string | null, data: unknown): text is string {
  try {
    return text !== null && isDeepStrictEqual(JSON.parse(asJsonb(text)), data)
  } catch {
    return false
  }
}

/** A row as it was before it was stored. One whose secrets cannot be opened has masks in their place, and is locked. */
export function decode (table: TableName, stored: Stored, vault: Vault): Row {
  // The spelling only tells how the data is spelled: if somebody edited that by hand, it is believed.
  const spelled = isSpelling(stored.spelling, stored.data) ? JSON.parse(stored.spelling) as unknown : stored.data
  const row: Row = {
    position: stored.position,
    name: table === 'systemConfig' ? table : table === 'mcpServers' || table === 'sections' ? unescape(stored.name ?? '') : '',
    entry: spelled
  }
  try {
    const entry = vault.reveal(spelled, stored.sealed, placeOf(table, row))
    return { ...row, entry: table === 'sections' ? JSON.parse((entry as { secret: string }).secret) as unknown : entry }
  } catch (error) {
    const entry = isObject(spelled) ? table === 'systemConfig' ? withoutKey(spelled) : spelled : {}
    lock(entry, error instanceof Error ? error.message : String(error))
    return { ...row, entry }
  }
}

/** A system configuration that cannot be opened: the mask of the legacy key is no key. */
function withoutKey (system: Record<string, unknown>): Record<string, unknown> {
  if (!isObject(system.routing)) return { ...system }
  const { bearerAuthKey: _, ...routing } = system.routing
  return { ...system, routing }
}

/** A file that came from where secrets are not shown holds masks, and they would be taken for secrets. @throws Error with a sentence */
export function checkMasks (rows: Rows, vault: Vault): void {
  const masks = tableNames
    .filter((table) => table !== 'sections')
    .flatMap((table) => rows[table].flatMap((row) => vault.masks(row.entry).map((path) => `${path} of ${placeOf(table, row)}`)))
  if (masks.length > 0) {
    throw new Error(
      `The settings file has masks where secrets should be. Write the secrets themselves there, or remove what has them: ${masks.slice(0, 20).join('; ')}${masks.length > 20 ? ' …' : '.'}`
    )
  }
}

/** What cannot be opened is not written over while masks would take the place of secrets, or nobody sees what is there. @throws Invalid */
export function checkLocks (former: Rows, next: Rows, vault: Vault): void {
  for (const [table, { written }] of difference(former, next)) {
    const before = new Map(former[table].map((row) => [row.position, row]))
    for (const { position, name, entry } of written) {
      const why = lockOf(before.get(position)?.entry)
      if (why === undefined) continue
      if (table !== 'mcpServers' && table !== 'systemConfig') {
        throw new Invalid(`There is an entry of that name in "${table}" already, and its secrets cannot be opened. ${why}`)
      }
      const masks = vault.masks(entry)
      if (masks.length > 0) {
        throw new Invalid(
          `${JSON.stringify(name)} cannot be changed while its secrets cannot be opened, unless all of them are given anew, or removed, by the same change: ${masks.join(', ')}. ${why}`
        )
      }
    }
  }
}
