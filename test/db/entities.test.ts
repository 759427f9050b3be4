// A new entity is stated in db/entities.ts alone: everything that lists entities must know it from there.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getTableName } from 'drizzle-orm'
import { test } from 'tap'
import { auditedEntities } from '../../db/audit-trail.ts'
import { parseSnapshot } from '../../db/document.ts'
import { entityNames, entityFactsOf, listEntityNames } from '../../db/entities.ts'
import { tablesInBackup } from '../../db/postgres/backup/tables.ts'
import { noRows, toDocument, toRows } from '../../db/postgres/settings/rows.ts'
import { settingsTableOf } from '../../db/postgres/tables.ts'
import { path } from '../helpers/hub.ts'

const migrations = (): string => readdirSync(path('db/migrations'))
  .filter((name) => name.endsWith('.sql'))
  .map((name) => readFileSync(join(path('db/migrations'), name), 'utf8'))
  .join('\n')

void test('each entity has a table, which a migration makes and a backup holds', async () => {
  const sql = migrations()
  for (const name of entityNames) {
    const { table } = entityFactsOf(name)
    assert.equal(getTableName(settingsTableOf(name)), table)
    assert.ok(sql.includes(`CREATE TABLE "${table}"`), `${table}: npm run db:generate`)
    assert.ok(tablesInBackup.some((each) => each.name === table), table)
    assert.deepEqual(noRows[name], [])
  }
})

void test('each entity is a section of the document, a member of snapshots, and a noun of the audit log', async () => {
  const { snapshot } = parseSnapshot({}, 1)
  for (const name of entityNames) {
    const { member, noun } = entityFactsOf(name)
    assert.ok(Reflect.get(snapshot, member) instanceof Map, member)
    assert.ok((auditedEntities as readonly string[]).includes(noun), noun)
  }
  const nouns = entityNames.map((name) => entityFactsOf(name).noun)
  assert.equal(new Set(nouns).size, nouns.length)
})

void test('rows keep the entries of each list, and a section that is no list is told of', async () => {
  for (const name of listEntityNames) {
    const document = { [name]: [{ [entityFactsOf(name).key ?? '']: 'one', more: 1 }, 'odd'] }
    assert.deepEqual(toDocument(toRows(document)), document)
    assert.match(parseSnapshot({ [name]: 1 }, 1).snapshot.problems.join(), new RegExp(`"${name}" is not a list`))
    assert.match(parseSnapshot(document, 1).snapshot.problems.join(), new RegExp(`"${name}" entry 2 is ignored`))
  }
})
