import assert from 'node:assert/strict'
import { test } from 'tap'
import { logIn, mount, socialHub } from '../helpers/identity-provider.ts'

test('smoke', async (t) => {
  const { hub, idp } = await socialHub(t, { env: { LOG_LEVEL: 'debug' } })
  const { browser, end } = await logIn(hub, idp)
  console.log(end.status, end.location, end.headers.getSetCookie(), end.text.slice(-600))
  console.log((await browser.get(`${mount}/session`)).text)
  console.log((await browser.get('/api/social-auth/user')).text)
  console.log((await browser.get('/api/auth/user')).text)
  console.log((await browser.get('/public-config')).text)
  console.log(hub.output().split('\n').filter((l) => /better-auth|social|err/.test(l)).join('\n'))
  assert.ok(true)
})
