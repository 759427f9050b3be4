// A new key is shown once, at an address of its own: a reload neither makes nor shows another.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { Browser } from '../../helpers/console.ts'
import { admin } from '../../helpers/doors.ts'

void test('the page of a new key shows it once, and a reload makes no second one', async (t) => {
  const app = await appFor(t, { users: [admin] })
  const browser = new Browser(app)
  await browser.signIn('admin')
  const made = await browser.post('/keys/new', { name: 'agent', kind: 'user', owner: 'admin', accessType: 'all' }, '/keys/new')
  assert.deepEqual([made.status, made.location], [303, '/console/keys/made'])
  const cookie = [made.headers['set-cookie'] ?? []].flat().find((each) => each.startsWith('tool-hub-console-made'))
  assert.match(String(cookie), /Path=\/console\/keys\/made; HttpOnly; SameSite=Strict/)
  const shown = await browser.get('/keys/made')
  const token = /thk_[\w-]{20,}/.exec(shown.text)?.[0] ?? ''
  assert.equal((await app.inject({ url: '/api/auth/keys', headers: { authorization: `Bearer ${token}` } })).statusCode, 401)
  assert.match(shown.text, /Opens: what its owner sees/)
  assert.equal(shown.headers['cache-control'], 'no-store')
  const reloaded = await browser.get('/keys/made')
  assert.deepEqual([reloaded.status, reloaded.location], [303, '/console/keys'])
  const list = await browser.get('/keys')
  assert.match(list.text, /shown only once, when it is created/)
  assert.ok(!list.text.includes(token))
  assert.equal(app.settings.current.keys.size, 1)
})

void test('what stands in the cookie of a new key is checked', async (t) => {
  const app = await appFor(t, { users: [admin] })
  const browser = new Browser(app)
  await browser.signIn('admin')
  for (const value of ['nonsense', '7', '{"id":"none","token":"thk_forged"}']) {
    browser.cookies.set('tool-hub-console-made', Buffer.from(value).toString('base64url'))
    assert.equal((await browser.get('/keys/made')).status, 303, value)
  }
})
