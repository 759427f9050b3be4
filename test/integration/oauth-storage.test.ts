// The authorization server while its storage fails, and after kill -9: nothing is usable twice, and what was answered counts. Run by
// `npm run test:system`; it needs PostgreSQL. test/soak/oauth-kills.ts kills at random times.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startReplica } from '../fakes/replica.ts'
import { settings } from '../helpers/client.ts'
import { cluster, database } from '../helpers/database.ts'
import { until } from '../helpers/hub.ts'
import { killOnFile, killReplicas, whenAnswered, type Moment } from '../helpers/oauth-kills.ts'
import { redeem, statusOf, Visitor, type Redeemed } from '../helpers/oauth-replicas.ts'
import { form, register } from '../helpers/oauth.ts'
import { basic } from '../helpers/oauth-world.ts'

const moments: readonly Moment[] = [
  { name: 'when it is sent', times: 1, wait: async (all) => await Promise.all(all.map(async ({ sent }) => await sent)) },
  { name: 'at the first byte, asked twice', times: 2, wait: async (all) => await Promise.race(all.map(async ({ begun }) => await begun)) },
  whenAnswered
]

test('a replica that is killed around its answers leaves nothing that can be used twice', async (t) => { await killReplicas(t, moments) })
test('a gateway on a settings file that is killed around its answers, neither', async (t) => { await killOnFile(t, moments) })

test('while the database is away, the endpoints say so in their own words, and nothing is used up', async (t) => {
  const server = await cluster(t, { fsync: 'off' })
  const db = await database(t, server)
  const written = settings({}, { systemConfig: { oauthServer: { enabled: true } } })
  const hub = await startReplica(t, db.url, { settings: written })
  const open = await register(hub.url)
  const secret = await register(hub.url, { token_endpoint_auth_method: 'client_secret_basic' })
  const visitor = new Visitor(hub.url, open.client_id ?? '')
  const [code, other] = [await visitor.code(), (await redeem(hub, await visitor.code())).body]
  const registration = { authorization: `Bearer ${secret.registration_access_token}`, 'content-type': 'application/json' }
  const requests: Array<[string, () => Promise<Response>]> = [
    ['a code', async () => await form(`${hub.url}/oauth/token`, code)],
    ['a refresh token', async () => await form(`${hub.url}/oauth/token`, visitor.refresh(other))],
    ['a secret', async () => await form(`${hub.url}/oauth/token`, { grant_type: 'refresh_token', refresh_token: 'none' }, basic(secret.client_id ?? '', secret.client_secret ?? ''))],
    ['a wrong secret', async () => await form(`${hub.url}/oauth/token`, { ...code, client_id: secret.client_id ?? '', client_secret: 'no' })],
    ['an unknown client', async () => await form(`${hub.url}/oauth/token`, { ...code, client_id: 'nobody' })],
    ['a revocation', async () => await form(`${hub.url}/oauth/revoke`, { token: other.access_token, client_id: visitor.clientId })],
    ['a registration', async () => await fetch(`${hub.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['http://127.0.0.1:1/'] })
    })],
    ['a look at a registration', async () => await fetch(`${hub.url}/oauth/register/${secret.client_id}`, { headers: registration })],
    ['the user of an unknown token', async () =>
      await fetch(`${hub.url}/oauth/userinfo`, { headers: { authorization: `Bearer ${'x'.repeat(43)}` } })]
  ]
  for (const mode of ['fast', 'immediate'] as const) {
    await t.test(`after a stop that is ${mode}`, async () => {
      await server.stop(mode)
      for (const [what, ask] of requests) {
        const reply = await ask()
        const body = await reply.json() as Record<string, unknown>
        const said = `${what}: ${reply.status} ${JSON.stringify(body)}`
        assert.equal(reply.status, 503, said)
        assert.match(reply.headers.get('retry-after') ?? '', /^\d+$/, said)
        assert.match(reply.headers.get('content-type') ?? '', /^application\/json/, said)
        assert.equal(typeof body.error, 'string', said)
        assert.equal(typeof body.error_description, 'string', said)
        assert.equal(body.access_token, undefined, said)
        assert.doesNotMatch(JSON.stringify(body), /ECONN|postgres|127\.0\.0\.1/i, said)
      }
      const browser = await fetch(`${hub.url}/oauth/authorize?client_id=${visitor.clientId}`, { redirect: 'manual' })
      const page = await browser.text()
      assert.equal(browser.status, 503, page)
      assert.match(browser.headers.get('content-type') ?? '', /^text\/html/)
      assert.match(page, /storage cannot be used now/)
      assert.doesNotMatch(page, /oops|ECONN|postgres/i)
      const interaction = await fetch(`${hub.url}/oauth/interaction/${'x'.repeat(21)}`, { headers: { cookie: 'tool-hub-interaction=x' } })
      assert.deepEqual([interaction.status, interaction.headers.get('content-type')?.split(';')[0]], [503, 'text/html'])
      assert.equal(await statusOf(hub, 'y'.repeat(43)), 503)
      await server.start()
      // A gateway is ready while its database is away for less than a minute.
      await until(async () => await statusOf(hub, 'y'.repeat(43)) === 401, 'the storage is never used again')
    })
  }
  // A connection of the pool that has not come back yet answers 503, as the clients above were told.
  const redeemedAt = async (fields: Record<string, string>): Promise<Redeemed> => {
    let answered = await redeem(hub, fields)
    await until(async () => {
      if (answered.status === 503) answered = await redeem(hub, fields)
      return answered.status !== 503
    }, 'the storage is never used again')
    return answered
  }
  const redeemed = await redeemedAt(code)
  assert.equal(redeemed.status, 200, `the code was used up: ${JSON.stringify(redeemed.body)}`)
  const refreshed = await redeemedAt(visitor.refresh(other))
  assert.equal(refreshed.status, 200, `the refresh token was used up: ${JSON.stringify(refreshed.body)}`)
  for (const { body } of [redeemed, refreshed]) assert.equal(await statusOf(hub, body.access_token), 200)
  assert.equal(await statusOf(hub, other.access_token), 200, 'the access token was revoked')
})
