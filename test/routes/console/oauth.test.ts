// The page OAuth lists applications in pages, since clients can register themselves.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { openConsole, signedIn } from '../../helpers/console.ts'

test('more applications than one page has are on the next ones', async (t) => {
  const oauthClients = Array.from({ length: 60 }, (_, at) => ({
    clientId: `client-${String(at).padStart(2, '0')}`, name: `Application ${String(at).padStart(2, '0')}`, redirectUris: ['https://app.example/callback'], scopes: ['mcp']
  }))
  const { browser } = await openConsole(t, { oauthClients, systemConfig: { oauthServer: { enabled: true }, install: { baseUrl: 'https://hub.example' } } })
  const listed = (text: string): string[] => [...text.matchAll(/Application (\d\d)/g)].map(([, at = '']) => at)
  const first = (await browser.get('/oauth')).text
  assert.deepEqual([listed(first).length, listed(first)[0]], [50, '00'])
  assert.match(first, /href="\/console\/oauth\?clients=2"/)
  assert.match(first, /60/)
  const second = (await browser.get('/oauth?clients=2')).text
  assert.deepEqual(listed(second), Array.from({ length: 10 }, (_, at) => String(50 + at)))
  assert.match(second, /href="\/console\/oauth\?clients=1"/)
  assert.deepEqual(listed((await browser.get('/oauth?clients=99')).text), listed(second), 'the last page')
  assert.deepEqual(listed((await browser.get('/oauth?clients=x')).text), listed(first))
})

test('users are not told to change a setting', async (t) => {
  const { app, browser: his } = await openConsole(t, { teams: [{ name: 'crew', members: ['alice'] }] })
  const hers = await signedIn(app, 'alice')
  assert.match((await hers.get('/oauth')).text, /Only an admin can turn it on/)
  assert.match((await his.get('/oauth')).text, /Turn it on in the settings/)
  assert.doesNotMatch((await hers.get('/teams')).text, /Login groups|Servers<\/th>/, 'what she may not see is no column')
  assert.match((await his.get('/teams')).text, /Login groups[\s\S]*Servers<\/th>/)
})
