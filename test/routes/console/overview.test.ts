// What of the settings cannot be used stands on the overview of admins, and in the API.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { Browser, decoded } from '../../helpers/console.ts'
import { admin, alice, key } from '../../helpers/doors.ts'

void test('entries of the settings that are ignored are told to admins', async (t) => {
  const app = await appFor(t, {
    users: [admin, alice],
    mcpServers: { 'bad/name': { url: 'https://mcp.example.com/mcp' } },
    groups: [{ id: key.id, name: 'office', servers: ['gone'] }, { id: key.id, name: 'again', servers: [] }]
  })
  const ask = async (user: typeof admin): Promise<{ statusCode: number, text: string }> => {
    const { statusCode, payload } = await app.inject({
      url: '/api/settings/problems', headers: { 'x-auth-token': app.auth.createLoginToken(user) }
    })
    return { statusCode, text: payload }
  }
  const told = await ask(admin)
  const { data } = JSON.parse(told.text) as { data: string[] }
  assert.equal(data.length, 2, told.text)
  assert.match(data[0] ?? '', /"groups" entry 2 is ignored/)
  assert.match(data[1] ?? '', /group "office" contains a server "gone", which does not exist/)
  assert.equal((await ask(alice)).statusCode, 403)

  const browser = new Browser(app)
  await browser.signIn('admin')
  const page = decoded((await browser.get('/overview')).text)
  assert.match(page, /"groups" entry 2 is ignored: [^<]*\.</)
  const other = new Browser(app)
  await other.signIn('alice')
  assert.doesNotMatch((await other.get('/overview')).text, /is ignored/)
})
