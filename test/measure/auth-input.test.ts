// What callers without credentials send costs little: queries, forms and large bodies that are refused.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { alice, start } from '../helpers/doors.ts'
import { cpuTime, median } from '../helpers/measured.ts'

test('a form of too many parameters is refused within 0.3 s', async (t) => {
  const { app } = await start(t, { settings: { systemConfig: { oauthServer: { enabled: true } } } })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const url of ['/oauth/authorize', '/oauth/token', '/oauth/revoke']) {
    for (const payload of ['a&'.repeat(28_000), Array.from({ length: 8_000 }, (_, n) => `a${n}`).join('&')]) {
      const time = await median(t, url, async () => await cpuTime(async () => await app.inject({ method: 'POST', url, headers, payload })))
      assert.ok(time < 300, `${url}: ${time} ms`)
    }
  }
})

test('a body with half a million wrong values is refused within 3 s', async (t) => {
  const { app } = await start(t)
  const payload = { name: 'q', servers: Array.from({ length: 490_000 }, () => 1) }
  const headers = { 'x-auth-token': app.auth.createLoginToken(alice) }
  const time = await median(t, 'POST /api/groups', async () =>
    await cpuTime(async () => await app.inject({ method: 'POST', url: '/api/groups', headers, payload })))
  assert.ok(time < 3_000, `${time} ms`)
})
