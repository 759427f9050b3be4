// The link of the first start, and sessions of the console, by a held clock.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { MemoryRecords } from '../../../db/memory/records.ts'
import { ConsoleSessions } from '../../../db/ports/console-sessions.ts'
import type { User } from '../../../schemas/settings.ts'
import { SignedInSessions } from '../../../plugins/management/console/sessions.ts'
import { WelcomeLink } from '../../../plugins/management/console/welcome.ts'

const minute = 60_000
const admin: User = { username: 'admin', password: 'x', isAdmin: true, createdAt: '2026-01-01T00:00:00.000Z' }

void test('the link is good for 15 minutes, once, and for one code at a time', async () => {
  let now = 0
  const users = new Map([['admin', admin]])
  const link = new WelcomeLink(() => users, () => now)
  const first = link.createCode(admin)
  assert.equal(link.find(first)?.username, 'admin')
  assert.deepEqual([link.find(''), link.find('wrong'), link.find(`${first} `)], [undefined, undefined, undefined])
  const code = link.createCode(admin)
  assert.equal(link.find(first), undefined, 'a later link replaces it')
  now = 15 * minute - 1
  assert.equal(link.find(code)?.username, 'admin')
  now = 15 * minute
  assert.equal(link.take(code), undefined)
  const again = link.createCode(admin)
  assert.equal(link.take(again)?.username, 'admin')
  assert.equal(link.take(again), undefined)
  const last = link.createCode(admin)
  users.set('admin', { ...admin, password: 'another' })
  assert.equal(link.find(last), undefined, 'the password has changed')
})

void test('a session ends after 12 hours without use; an open page is no use', async () => {
  let now = 0
  const users = new Map([['admin', admin]])
  const settings = { isOutdated: false, current: { users }, refreshFromStore: () => undefined }
  const stored = new ConsoleSessions(new MemoryRecords(() => now))
  const sessions = new SignedInSessions(stored, settings as unknown as ConstructorParameters<typeof SignedInSessions>[1], () => {})
  const token = await sessions.begin(admin)
  now += 11 * 60 * minute
  assert.equal((await sessions.find(token))?.principal.username, 'admin')
  now += 11 * 60 * minute
  assert.notEqual(await sessions.find(token, false), undefined)
  now += 61 * minute
  assert.equal(await sessions.find(token), undefined, 'the look of an open page did not count')
  const demoted = await sessions.begin(admin)
  users.set('admin', { ...admin, isAdmin: false })
  assert.equal(await sessions.find(demoted), undefined)
  users.set('admin', admin)
  assert.equal(await sessions.find(demoted), undefined, 'it has ended for good')
})
