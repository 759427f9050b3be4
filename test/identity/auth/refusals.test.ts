import assert from 'node:assert/strict'
import { test } from 'tap'
import { CredentialRefusals } from '../../../plugins/identity/auth/refusals.ts'
import { KEY, settings, type Json } from '../../helpers/client.ts'
import { startHub } from '../../helpers/hub.ts'
import { identityLimits } from '../../../plugins/identity/limits.ts'

test('refused credentials are counted, and told in the log with their address', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: 'Open-Sesame-1' } })
  const lines = (): Json[] => hub.output().split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Json)
  const warned = (pattern: RegExp): Json[] => lines().filter(({ level, msg }) => level === 40 && pattern.test(String(msg)))
  const logIn = async (password: string): Promise<number> => (await fetch(`${hub.url}/api/auth/login`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ username: 'admin', password })
  })).status
  await logIn('a-secret-guess')
  const [line] = warned(/^127\.0\.0\.1 sent a wrong password for "admin"$/)
  assert.equal(line?.address, '127.0.0.1')
  assert.equal(line.name, 'admin')
  for (let n = 0; n < identityLimits.loginFailures + 3; n++) await logIn('a-secret-guess')
  assert.equal(warned(/is locked out of "admin" for \d+ s: too many failures$/).length, 1, 'once')

  const wrong = `thk_${'e'.repeat(64)}`
  for (const path of ['/mcp', '/api/servers']) {
    const { status } = await fetch(`${hub.url}${path}`, { headers: { authorization: `Bearer ${wrong}`, accept: 'text/event-stream' } })
    assert.equal(status, 401, path)
  }
  assert.equal(warned(/^127\.0\.0\.1 sent a bearer key that is not valid$/).length, 2)
  await fetch(`${hub.url}/mcp`)
  assert.equal(warned(/bearer key/).length, 2, 'no credential is none that was refused')
  assert.ok(!hub.output().includes('a-secret-guess') && !hub.output().includes(wrong), 'no secret is told')

  const metrics = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text()
  assert.match(metrics, /^toolhub_authentication_failures_total\{credential="key"\} 2$/m)
  assert.match(metrics, new RegExp(`^toolhub_authentication_failures_total\\{credential="password"\\} ${identityLimits.loginFailures + 4}$`, 'm'))
})

test('a flood of refusals does not fill the log, and no text of a caller breaks its lines', async () => {
  let now = 0
  const told: string[] = []
  const refusals = new CredentialRefusals((_details, sentence) => { told.push(sentence) }, (name) => name === 'admin', () => now)
  for (let n = 0; n < 5_000; n++) refusals.note('password', `203.0.113.${n % 250}`, `user\n${n}\u202e"`)
  assert.equal(told.length, identityLimits.refusals.linesPerMinute)
  assert.ok(told.every((sentence) => /^203\.0\.113\.\d+ sent a wrong password for a user that does not exist$/.test(sentence)))
  now += 60_000
  refusals.note('key', '203.0.113.7')
  assert.equal(told.at(-2), `${5_000 - identityLimits.refusals.linesPerMinute} more credentials were refused within a minute`)
  assert.equal(told.at(-1), '203.0.113.7 sent a bearer key that is not valid')
  refusals.note('token', '203.0.113.7')
  assert.equal(told.length, identityLimits.refusals.linesPerMinute + 2, 'tokens end every hour')
  assert.deepEqual(refusals.counts, { password: 5_000, key: 1, token: 1, secret: 0 })
})
