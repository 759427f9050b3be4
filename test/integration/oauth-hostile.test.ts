// What nobody sends by mistake, at every endpoint of the authorization server: each is refused in plain words, and none is a fault of ours.
// Run by `npm run test:system`.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { register, request } from '../helpers/oauth.ts'
import { alice, startWorld } from '../helpers/oauth-world.ts'

const odd = ['__proto__', 'constructor', '%00', '\u0000', '\ud800', '../../x', '<\'"\\', '\r\nx: y', '%zz', 'ü', 'a'.repeat(6_000)]
const ofAuthorization = ['client_id', 'redirect_uri', 'scope', 'resource', 'state', 'code_challenge', 'prompt', 'response_type', '__proto__', 'x[y]']

test('odd values in every place are refused, and the gateway goes on', async (t) => {
  // Each request comes from an address of its own: how often one may ask is tested elsewhere.
  const world = await startWorld(t, { env: { TRUST_PROXY: 'loopback' } })
  let count = 0
  const { base } = world
  const { client_id: clientId = '', registration_access_token: token = '' } = await register(base)
  const { params } = request(clientId)
  const code = await world.code(alice, {}, clientId)
  const faults: string[] = []
  const send = async (what: string, path: string, init: RequestInit = {}): Promise<void> => {
    const headers = { ...init.headers, 'x-forwarded-for': `10.0.${++count >> 8}.${count & 255}` }
    const reply = await fetch(`${base}${path}`, { redirect: 'manual', ...init, headers })
    const text = await reply.text()
    if (reply.status >= 500 || /at .*\(|node_modules|\.ts:/.test(text)) faults.push(`${what}: ${reply.status} ${text.slice(0, 200)}`)
    for (const [name, value] of reply.headers) if (name === 'x') faults.push(`${what}: a header ${name}: ${value}`)
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const value of odd) {
    const shown = JSON.stringify(value.slice(0, 20))
    const path = encodeURIComponent(Buffer.from(value).toString())
    for (const name of ofAuthorization) {
      const query = new URLSearchParams({ ...params, [name]: value }).toString()
      await send(`authorize ${name} ${shown}`, `/oauth/authorize?${query}`)
      await send(`authorize POST ${name} ${shown}`, '/oauth/authorize', { method: 'POST', headers: form, body: query })
    }
    for (const name of ['grant_type', 'code', 'client_id', 'redirect_uri', 'code_verifier', 'resource', 'scope', 'client_secret', '__proto__']) {
      const fields = { ...code, code: 'none', [name]: value }
      await send(`token ${name} ${shown}`, '/oauth/token', { method: 'POST', headers: form, body: new URLSearchParams(fields).toString() })
    }
    await send(`token raw ${shown}`, '/oauth/token', { method: 'POST', headers: form, body: value })
    const revocation = new URLSearchParams({ token: value, client_id: clientId }).toString()
    await send(`revoke ${shown}`, '/oauth/revoke', { method: 'POST', headers: form, body: revocation })
    for (const name of ['redirect_uris', 'client_name', 'scope', 'grant_types', 'client_uri', 'contacts', '__proto__', 'jwks_uri']) {
      for (const each of [value, [value], { [value]: value }]) {
        const body = `{"redirect_uris": ["http://127.0.0.1/"], ${JSON.stringify(name)}: ${JSON.stringify(each)}}`
        const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
        await send(`manage ${name} ${shown}`, `/oauth/register/${clientId}`, { method: 'PUT', headers, body })
      }
    }
    for (const place of ['register', 'interaction', 'authorize']) {
      await send(`${place}/${shown}`, `/oauth/${place}/${path}`, { headers: { authorization: 'Bearer x' } })
    }
    for (const action of ['login', 'consent', 'logout']) {
      const body = new URLSearchParams({ csrf: value }).toString()
      await send(`${action} ${shown}`, `/oauth/interaction/${path}/${action}`, { method: 'POST', headers: form, body })
    }
    for (const document of ['oauth-authorization-server', 'oauth-protected-resource']) {
      await send(`${document} ${shown}`, `/.well-known/${document}/${path}`)
    }
    await send(`userinfo ${shown}`, `/oauth/userinfo?access_token=${path}`)
  }
  assert.deepEqual(faults, [])
  t.comment(`${count} requests`)
  assert.equal((await world.token(code)).status, 200, 'what was asked before is still good')
})
