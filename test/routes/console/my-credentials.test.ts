/* eslint no-template-curly-in-string: off -- configs hold them */
// The page on which a user gives values for a server, and on which its owner sees who has.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { signedIn } from '../../helpers/console.ts'
import { admin, alice } from '../../helpers/doors.ts'

const wanting = {
  url: 'http://127.0.0.1:9/mcp',
  enabled: false,
  owner: 'alice',
  visibility: 'public',
  headers: { Authorization: '${user.TOKEN}' },
  userVariables: [{ name: 'TOKEN', title: 'Your token' }, { name: 'NOTE', secret: false, required: false }]
}

test('a user gives credentials in the console, and its owner and admins see who has', async (t) => {
  const plain = { ...wanting, headers: {}, userVariables: undefined }
  const app = await appFor(t, { users: [admin, alice], mcpServers: { wanting, plain } })
  const browser = await signedIn(app, 'alice')
  assert.match((await browser.get('/servers/wanting')).text, /href="[^"]+\/my-credentials"/)
  assert.doesNotMatch((await browser.get('/servers/plain')).text, /my-credentials/)
  const page = await browser.get('/servers/wanting/my-credentials')
  assert.match(page.text, /name="values\.TOKEN" type="password"/)
  assert.match(page.text, /name="values\.NOTE" type="text"/)
  assert.doesNotMatch(page.text, /Remove mine|Stored/)
  const refused = await browser.post('/servers/wanting/my-credentials', { 'values.TOKEN': 'not→sendable' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /not allowed in a header/)
  assert.doesNotMatch(refused.text, /not→sendable/)
  assert.equal((await browser.post('/servers/wanting/my-credentials', { 'values.TOKEN': 'canary', 'values.NOTE': '' })).status, 303)
  const given = (await browser.get('/servers/wanting/my-credentials')).text
  assert.match(given, /Given by: alice \(TOKEN\)/)
  assert.match(given, /Leave empty to keep it/)
  assert.doesNotMatch(given, /canary/)
  assert.match((await (await signedIn(app)).get('/servers/wanting/my-credentials')).text, /Given by: alice \(TOKEN\)/)
  assert.equal((await browser.post('/servers/wanting/my-credentials/forget', {})).status, 303)
  assert.doesNotMatch((await browser.get('/servers/wanting/my-credentials')).text, /Given/)
})
