// A new key is shown once, in the answer to its form.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { openConsole } from '../../helpers/console.ts'

void test('the answer to the form shows the key, and nothing else stores or shows it', async (t) => {
  const { app, browser } = await openConsole(t, { groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'few', servers: [] }] })
  const made = await browser.post('/keys/new', { name: 'agent', kind: 'user', owner: 'admin', accessType: 'all' }, '/keys/new')
  const token = /thk_[\w-]{20,}/.exec(made.text)?.[0] ?? ''
  assert.deepEqual([made.status, made.headers['cache-control'], made.headers['set-cookie']], [200, 'no-store', undefined])
  assert.equal((await app.inject({ url: '/api/auth/keys', headers: { authorization: `Bearer ${token}` } })).statusCode, 401)
  assert.match(made.text, /<h1>Key created<[\s\S]*Opens: what its owner sees[\s\S]*127\.0\.0\.1:3000\/mcp</)
  assert.ok(!(await browser.get('/keys')).text.includes(token))
  assert.deepEqual([...app.settings.current.keys.values()].map(({ name }) => name), ['agent'])
  const limited = await browser.post('/keys/new', { name: 'limited', kind: 'user', owner: 'admin', accessType: 'custom', allowedGroups: 'few' })
  assert.match(limited.text, /Opens: few\.[\s\S]*127\.0\.0\.1:3000\/mcp\/few</)
  const refused = await browser.post('/keys/new', { name: '', kind: 'user', owner: 'admin', accessType: 'all' })
  assert.deepEqual([refused.status, app.settings.current.keys.size], [400, 2])
  const over = await browser.post('/keys/new', { name: 'old', kind: 'user', owner: 'admin', accessType: 'all', expiresAt: '2020-01-01' })
  assert.match(over.text, /id="expiresAt-problem"[\s\S]*This day is over in UTC/)
  assert.equal(app.settings.current.keys.size, 2)
})
