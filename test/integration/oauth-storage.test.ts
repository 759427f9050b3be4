// The authorization server while its storage fails, and after kill -9: nothing is usable twice, and what was answered counts. Run by
// `npm run test:system`; it needs PostgreSQL, as replicas.test.ts does.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { shared, startReplica } from '../fakes/replica.ts'
import { settings, sleep } from '../helpers/client.ts'
import { cluster, database } from '../helpers/database.ts'
import { isFull } from '../helpers/full.ts'
import { spawnHub, until, type Hub, type ProcessHub } from '../helpers/hub.ts'
import { assertDead, redeem, startReplicas, statusOf, Visitor } from '../helpers/oauth-replicas.ts'
import { form, register, type Tokens } from '../helpers/oauth.ts'

type Fields = Record<string, string>

// ---- kill -9 --------------------------------------------------------------------------------------

/** When the gateway is killed: by the time since the request was sent, or by how much of its answer has come. */
const moments = ['at once', 'while it works', 'while it works', 'at the first byte', 'when it has answered', 'asked twice'] as const
type Moment = typeof moments[number]

/** A request to the token endpoint, whose answer is followed byte by byte. */
interface Sent { readonly begun: Promise<unknown>, readonly answer: Promise<Tokens | undefined> }

function sendForm (url: string, fields: Fields): Sent {
  const body = new URLSearchParams(fields).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': Buffer.byteLength(body) }
  const outgoing = httpRequest(`${url}/oauth/token`, { method: 'POST', headers })
  const answer = new Promise<Tokens | undefined>((resolve) => {
    outgoing.once('error', () => { resolve(undefined) })
    outgoing.once('response', (reply) => {
      let text = ''
      reply.on('data', (chunk) => { text += String(chunk) })
      reply.once('error', () => { resolve(undefined) })
      reply.once('close', () => { resolve(reply.complete && reply.statusCode === 200 ? JSON.parse(text) as Tokens : undefined) })
    })
  })
  const begun = Promise.race([once(outgoing, 'response').catch(() => {}), answer])
  outgoing.end(body)
  return { begun, answer }
}

/** Sends a code and a refresh token, and kills the gateway. @returns the tokens that were answered for each */
async function killAmid (hub: ProcessHub, moment: Moment, pairs: readonly Fields[], usual: number): Promise<Tokens[][]> {
  // The first request to a process loads what serves the others.
  await redeem(hub, { ...pairs[0], code: 'none', refresh_token: 'none' })
  const times = moment === 'asked twice' ? 2 : 1
  const sent = pairs.map((fields) => Array.from({ length: times }, () => sendForm(hub.url, fields)))
  const all = sent.flat()
  if (moment === 'at once') await sleep(Math.random() * 2)
  else if (moment === 'while it works' || moment === 'asked twice') await sleep(Math.random() * 2 * usual)
  else if (moment === 'at the first byte') await Promise.race(all.map(async ({ begun }) => await begun))
  else await Promise.all(all.map(async ({ answer }) => await answer))
  hub.child.kill('SIGKILL')
  const answers = await Promise.all(sent.map(async (each) => await Promise.all(each.map(async ({ answer }) => await answer))))
  await hub.stop()
  return answers.map((each) => each.flatMap((tokens) => tokens ?? []))
}

/** What became of codes and refresh tokens, counted. */
class Outcomes {
  readonly #counts = new Map<string, number>()
  readonly #remembersCodes: boolean

  /** @param remembersCodes whether a code that comes back after the kill ends the tokens that it was good for */
  constructor ({ remembersCodes }: { remembersCodes: boolean }) {
    this.#remembersCodes = remembersCodes
  }

  /**
   * Judges what was sent before a kill, by a gateway that lives: it is good once at most, before and after the kill together, and what was
   * answered counts.
   */
  async judge (hub: Hub, visitor: Visitor, [what, moment]: [string, Moment], fields: Fields, answered: readonly Tokens[]): Promise<void> {
    assert.ok(answered.length <= 1, `a ${what} was good twice`)
    const [won] = answered
    // Who asks twice ends what the first one got.
    if (won && moment !== 'asked twice') assert.equal(await statusOf(hub, won.access_token), 200, `tokens for a ${what} were answered and lost`)
    const late = await redeem(hub, fields)
    this.#count(`${moment}: a ${what} ${won ? 'answered' : late.status === 200 ? 'not taken' : 'taken, and nobody told'}`)
    if (won) assert.equal(late.status, 400, `a ${what} was good again`)
    if (late.status === 200) assert.equal((await redeem(hub, fields)).status, 400, `a ${what} was good twice after the kill`)
    if (what === 'code' && !this.#remembersCodes) return
    for (const tokens of [...answered, ...late.status === 200 ? [late.body] : []]) await assertDead([hub], visitor, tokens)
  }

  #count (outcome: string): void { this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1) }

  /** How many outcomes have these words. */
  of (words: string): number {
    return [...this.#counts].reduce((sum, [outcome, count]) => sum + (outcome.includes(words) ? count : 0), 0)
  }

  toString (): string { return [...this.#counts].map(([outcome, count]) => `${count} × ${outcome}`).sort().join('\n') }
}

/** The usual time of a redemption, in ms. */
async function usualTime (hub: Hub, visitor: Visitor): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < 5; n++) {
    const fields = await visitor.code()
    const since = performance.now()
    assert.equal((await redeem(hub, fields)).status, 200)
    times.push(performance.now() - since)
  }
  return times.sort((one, other) => one - other)[2] ?? 0
}

const rounds = isFull ? 10 * moments.length : moments.length
const momentOf = (round: number): Moment => moments[round % moments.length] ?? 'at once'

test('kill -9 around the answers of a replica leaves nothing that can be used twice', { timeout: 900_000 }, async (t) => {
  const replicas = await startReplicas(t)
  const { url, db, hubs: [a] } = replicas
  const visitor = new Visitor(url, (await register(url)).client_id ?? '')
  const usual = await usualTime(a, visitor)
  const outcomes = new Outcomes({ remembersCodes: true })
  for (let round = 0; round < rounds; round++) {
    const moment = momentOf(round)
    const pairs = [await visitor.code(), visitor.refresh((await redeem(a, await visitor.code())).body)] as const
    const [byCode = [], byRefresh = []] = await killAmid(replicas.hubs[1], moment, pairs, usual)
    await outcomes.judge(a, visitor, ['code', moment], pairs[0], byCode)
    await outcomes.judge(a, visitor, ['refresh token', moment], pairs[1], byRefresh)
    // What nobody was told of counts as well: no family has two tokens to go on with, and no code two families.
    const living = await db.query(`SELECT family FROM tokens JOIN token_families USING (family)
      WHERE NOT revoked AND NOT used AND kind = 'refresh' GROUP BY family HAVING count(*) > 1`)
    assert.deepEqual(living, [])
    const families = await db.query(
      'SELECT hash FROM grants JOIN token_families USING (family) WHERE taken GROUP BY hash HAVING count(*) > 1'
    )
    assert.deepEqual(families, [])
    await replicas.restart(1)
  }
  t.comment(`a redemption takes ${usual.toFixed(1)} ms\n${outcomes.toString()}`)
  for (const words of ['when it has answered: a code answered', 'when it has answered: a refresh token answered']) {
    assert.ok(outcomes.of(words) > 0, words)
  }
})

test('kill -9 around the answers of a gateway on a settings file, too', { timeout: 900_000 }, async (t) => {
  const folder = await temporaryFolder(t)
  const env = { ADMIN_PASSWORD: shared.ADMIN_PASSWORD }
  const written = settings({}, { systemConfig: { oauthServer: { enabled: true } } })
  let hub = await spawnHub(t, { folder, settings: written, env })
  // All on one port, so that the issuer stays the same.
  const again = { ...env, PORT: String(hub.port) }
  const { client_id: clientId = '' } = await register(hub.url)
  const usual = await usualTime(hub, new Visitor(hub.url, clientId))
  // Beside a settings file, codes are kept in memory.
  const outcomes = new Outcomes({ remembersCodes: false })
  for (let round = 0; round < rounds; round++) {
    const moment = momentOf(round)
    // A restart ends logins.
    const visitor = new Visitor(hub.url, clientId)
    const pairs = [await visitor.code(), visitor.refresh((await redeem(hub, await visitor.code())).body)] as const
    const [byCode = [], byRefresh = []] = await killAmid(hub, moment, pairs, usual)
    hub = await spawnHub(t, { folder, env: again })
    await outcomes.judge(hub, visitor, ['code', moment], pairs[0], byCode)
    await outcomes.judge(hub, visitor, ['refresh token', moment], pairs[1], byRefresh)
  }
  t.comment(`a redemption takes ${usual.toFixed(1)} ms\n${outcomes.toString()}`)
  for (const words of ['when it has answered: a code answered', 'when it has answered: a refresh token answered']) {
    assert.ok(outcomes.of(words) > 0, words)
  }
})

// ---- the storage away -----------------------------------------------------------------------------

test('while the database is away, the endpoints say so in their own words, and nothing is used up', { timeout: 240_000 }, async (t) => {
  const server = await cluster(t, { fsync: 'off' })
  const db = await database(t, server)
  const written = settings({}, { systemConfig: { oauthServer: { enabled: true } } })
  const hub = await startReplica(t, db.url, { settings: written })
  const open = await register(hub.url)
  const secret = await register(hub.url, { token_endpoint_auth_method: 'client_secret_basic' })
  const visitor = new Visitor(hub.url, open.client_id ?? '')
  const [code, other] = [await visitor.code(), (await redeem(hub, await visitor.code())).body]
  const basic = { authorization: `Basic ${Buffer.from(`${secret.client_id}:${secret.client_secret}`).toString('base64')}` }
  const registration = { authorization: `Bearer ${secret.registration_access_token}`, 'content-type': 'application/json' }
  const requests: Array<[string, () => Promise<Response>]> = [
    ['a code', async () => await form(`${hub.url}/oauth/token`, code)],
    ['a refresh token', async () => await form(`${hub.url}/oauth/token`, visitor.refresh(other))],
    ['a secret', async () => await form(`${hub.url}/oauth/token`, { grant_type: 'refresh_token', refresh_token: 'none' }, basic)],
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
      await until(async () => (await fetch(`${hub.url}/health/ready`)).ok, 'never ready again')
    })
  }
  const redeemed = await redeem(hub, code)
  assert.equal(redeemed.status, 200, `the code was used up: ${JSON.stringify(redeemed.body)}`)
  const refreshed = await redeem(hub, visitor.refresh(other))
  assert.equal(refreshed.status, 200, `the refresh token was used up: ${JSON.stringify(refreshed.body)}`)
  for (const { body } of [redeemed, refreshed]) assert.equal(await statusOf(hub, body.access_token), 200)
  assert.equal(await statusOf(hub, other.access_token), 200, 'the access token was revoked')
})
