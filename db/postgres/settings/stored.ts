import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../errors.ts'
import { isPlainObject } from '../../../schemas/unknown-members.ts'
import { entityFactsOf, isListEntityName } from '../../entities.ts'
import { markUndecryptable, undecryptableReasonOf } from '../../document.ts'
import { ServerConfig } from '../../../schemas/server.ts'
import { SystemConfig } from '../../../schemas/settings.ts'
import { SystemSections } from '../../../schemas/system.ts'
import { InvalidChangeError, type Vault } from '../../store.ts'
import { escapeForPostgres, toIndexableText, unescapeFromPostgres } from '../text.ts'
import { diffRows, entryName, type SettingsRow, type SettingsRows } from './rows.ts'
import { settingsTableNames, type StoredSettingsRow, type SettingsTableName } from '../tables.ts'

/** Replaces the escape sequences of a JSON text that JSONB does not accept (NUL, unpaired surrogates) by U+FFFD. */
function asJsonb (text: string): string {
  if (!text.includes('\\u')) return text
  return text.replace(/\\(u0000|ud[89a-f][0-9a-f]{2}|.)/g, (all, escaped: string) =>
    /^u(0000|d[89a-f])/.test(escaped) ? '\\ufffd' : all)
}

/**
 * Whether the members of all objects in a value, at any depth, are in the order of JSONB: by length of the name, then
 * by its bytes.
 */
function isInJsonbOrder (value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isInJsonbOrder)
  if (!isPlainObject(value)) return true
  const names = Object.keys(value).map((name) => Buffer.from(name))
  return (
    names.every((name, at) => {
      const before = names[at - 1]
      return before === undefined || (before.length - name.length || before.compare(name)) < 0
    }) && Object.values(value).every(isInJsonbOrder)
  )
}

/**
 * The members in which only the secrets are encrypted (parameter `plain` of `Vault.encryptSecrets`), by table. The
 * other members are encrypted completely, so that a new member is encrypted unless it is added here. Tables that are
 * not listed use the default of `Vault.encryptSecrets`.
 */
const plainMembers: Partial<Record<SettingsTableName, ReadonlySet<string>>> = {
  mcpServers: new Set([
    ...Object.keys(ServerConfig.properties).filter((name) =>
      !['args', 'url', 'oauth', 'proxy', 'openapi'].includes(name)),
    'openapi.schema'
  ]),
  systemConfig: new Set([...Object.keys(SystemSections.properties), ...Object.keys(SystemConfig.properties), 'auth'])
}

/**
 * Encrypts the secrets of an entry. The password hash of a user stays readable; a password of another form does not.
 */
function sealEntry (
  table: SettingsTableName, row: SettingsRow, entry: unknown, vault: Vault
): { value: unknown, sealed: string | null } {
  const { password } = isPlainObject(entry) ? entry : {}
  if (table !== 'users' || typeof password !== 'string' || !/^(scrypt\$|\$2[aby]\$)/.test(password)) {
    return vault.encryptSecrets(entry, rowVaultPlace(table, row), plainMembers[table])
  }
  const { value, sealed } = vault.encryptSecrets({ ...entry as object, password: null }, rowVaultPlace(table, row))
  return { value: { ...value, password }, sealed }
}

/** Returns the place of a row, such as `users/ada`, for messages and as the `place` of its secrets for the vault. */
export const rowVaultPlace = (table: SettingsTableName, row: SettingsRow): string =>
  table === 'systemConfig' ? table : `${table}/${entryName(table, row) ?? ''}`

/**
 * Converts rows to the columns of their table, with their secrets encrypted. If several entries have the same name,
 * only the first gets it as its `key`.
 * @param rows the rows to convert
 * @param all all rows that the table will have after the write
 */
export function encodeRows (
  table: SettingsTableName, rows: readonly SettingsRow[], all: readonly SettingsRow[], vault: Vault
): StoredSettingsRow[] {
  const keys = firstOfEachName(all, (row) => entryName(table, row))
  const alias = isListEntityName(table) ? entityFactsOf(table).alias : undefined
  const aliases = alias === undefined ? undefined : firstOfEachName(all, ({ entry }) => textMember(entry, alias))
  return rows.map((row) => {
    const { position, entry } = row
    // An unknown section may contain anything, so it is encrypted completely.
    const {
      value, sealed
    } = sealEntry(table, row, table === 'sections' ? { secret: JSON.stringify(entry) } : entry, vault)
    const text = JSON.stringify(value)
    const jsonb = asJsonb(text)
    return {
      position,
      key: keys(row),
      data: jsonb === text ? value : JSON.parse(jsonb) as unknown,
      spelling: jsonb === text && isInJsonbOrder(value) ? null : text,
      sealed,
      name: escapeForPostgres(row.name),
      alias: aliases?.(row) ?? null
    }
  })
}

const textMember = (entry: unknown, name: string): string | undefined =>
  isPlainObject(entry) && typeof entry[name] === 'string' ? entry[name] : undefined

/**
 * Creates a function that returns the name of a row in the form of an indexed column; null if the row has no name, or
 * an earlier row has the same one.
 * @param all all rows of the table
 */
function firstOfEachName (
  all: readonly SettingsRow[], nameOf: (row: SettingsRow) => string | undefined
): (row: SettingsRow) => string | null {
  const first = new Map<string, number>()
  for (const row of all) {
    const name = nameOf(row)
    if (name !== undefined && !first.has(name)) first.set(name, row.position)
  }
  return (row) => {
    const name = nameOf(row)
    return name !== undefined && first.get(name) === row.position ? toIndexableText(name) : null
  }
}

/** Whether `data` equals the value of a JSON text as JSONB stores it. */
function isSpellingOf (text: string | null, data: unknown): text is string {
  try {
    return text !== null && isDeepStrictEqual(JSON.parse(asJsonb(text)), data)
  } catch {
    return false
  }
}

/**
 * Converts the columns of a table row to a row. If its secrets cannot be decrypted, the entry has masks in place of
 * them, and is marked as locked (`markUndecryptable`).
 */
export function decodeRow (table: SettingsTableName, stored: StoredSettingsRow, vault: Vault): SettingsRow {
  // `spelling` is used only if it matches `data`, since an operator may have changed `data` in the database.
  const spelled = isSpellingOf(stored.spelling, stored.data) ? JSON.parse(stored.spelling) as unknown : stored.data
  const row: SettingsRow = { position: stored.position, name: nameOf(table, stored), entry: spelled }
  try {
    const entry = vault.decryptSecrets(spelled, stored.sealed, rowVaultPlace(table, row))
    return { ...row, entry: table === 'sections' ? JSON.parse((entry as { secret: string }).secret) as unknown : entry }
  } catch (error) {
    const known = isPlainObject(spelled) ? spelled : {}
    const entry = table === 'systemConfig' ? withoutLegacyKey(known) : known
    markUndecryptable(entry, messageOf(error))
    return { ...row, entry }
  }
}

/** Returns `SettingsRow.name` for the columns of a row. */
function nameOf (table: SettingsTableName, { name }: StoredSettingsRow): string {
  if (table === 'systemConfig') return table
  return table === 'mcpServers' || table === 'sections' ? unescapeFromPostgres(name ?? '') : ''
}

/**
 * Removes `routing.bearerAuthKey` from a locked system configuration, where it is a mask that must not become a key.
 */
function withoutLegacyKey (system: Record<string, unknown>): Record<string, unknown> {
  if (!isPlainObject(system.routing)) return { ...system }
  const { bearerAuthKey: _, ...routing } = system.routing
  return { ...system, routing }
}

/** Whether a table has no secrets, so that `••••` in its texts is not the mask of a secret. */
const isPlainText = (table: SettingsTableName): boolean =>
  isListEntityName(table) && entityFactsOf(table).isPlainText === true

/**
 * Checks that the entries of a settings file contain no masks. An export without secrets has masks, which would be
 * stored as secrets.
 * @throws Error whose message lists the masks
 */
export function assertNoMasks (rows: SettingsRows, vault: Vault): void {
  const masks = settingsTableNames
    .filter((table) => !isPlainText(table) && table !== 'sections')
    .flatMap((table) =>
      rows[table].flatMap((row) => vault.findMasks(row.entry).map((path) => `${path} of ${rowVaultPlace(table, row)}`)))
  if (masks.length > 0) {
    throw new Error(
      'The settings file contains masks in place of secrets. Write the secrets themselves, or remove these ' +
      `members: ${masks.slice(0, 20).join('; ')}${masks.length > 20 ? ' …' : '.'}`
    )
  }
}

/**
 * Checks that a change overwrites a locked entry only if it replaces or removes all secrets of the entry: otherwise
 * masks would be stored as secrets. Only servers and the system configuration can be changed while they are locked; the
 * API does not show other locked entries, so they must not be overwritten at all.
 * @throws InvalidChangeError
 */
export function assertUndecryptableSecretsReplaced (former: SettingsRows, next: SettingsRows, vault: Vault): void {
  for (const [table, { written }] of diffRows(former, next)) {
    const before = new Map(former[table].map((row) => [row.position, row]))
    for (const { position, name, entry } of written) {
      const reason = undecryptableReasonOf(before.get(position)?.entry)
      if (reason === undefined) continue
      if (table !== 'mcpServers' && table !== 'systemConfig') {
        throw new InvalidChangeError(
          `An entry with that name exists in "${table}", and its secrets cannot be decrypted. ${reason}`
        )
      }
      const masks = vault.findMasks(entry)
      if (masks.length > 0) {
        throw new InvalidChangeError(
          `${JSON.stringify(name)} cannot be changed while its secrets cannot be decrypted, ` +
          `unless the same change sets or removes all of them: ${masks.join(', ')}. ${reason}`
        )
      }
    }
  }
}
