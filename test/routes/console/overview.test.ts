// What of the settings cannot be used stands on the overview of admins, and in the API.
import assert from 'node:assert/strict'
import type { LightMyRequestResponse } from 'fastify'
import { test } from 'tap'
import { decoded, openConsole, signedIn } from '../../helpers/console.ts'
import { admin, key } from '../../helpers/doors.ts'

void test('entries of the settings that are ignored are told to admins', async (t) => {
  const { app, browser } = await openConsole(t, {
    mcpServers: { 'bad/name': { url: 'https://mcp.example.com/mcp' } },
    groups: [{ id: key.id, name: 'office', servers: ['gone'] }, { id: key.id, name: 'again', servers: [] }]
  })
  const ask = async (name: string): Promise<LightMyRequestResponse> => await app.inject({
    url: '/api/settings/problems', headers: { 'x-auth-token': app.auth.createLoginToken(app.users.get(name) ?? admin) }
  })
  const { data } = (await ask('admin')).json<{ data: string[] }>()
  assert.equal(data.length, 2, data.join())
  assert.match(data[0] ?? '', /"groups" entry 2 is ignored/)
  assert.match(data[1] ?? '', /group "office" contains a server "gone", which does not exist/)
  assert.equal((await ask('alice')).statusCode, 403)

  const page = decoded((await browser.get('/overview')).text)
  assert.match(page, /"groups" entry 2 is ignored: [^<]*\.</)
  assert.doesNotMatch((await (await signedIn(app, 'alice')).get('/overview')).text, /is ignored/)
})
