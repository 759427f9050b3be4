// kill -9 of a gateway around the answers of its token endpoint: what is sent, and how it is judged afterwards.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { shared, spawnReplica, startReplica } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { settings } from './client.ts'
import { database } from './database.ts'
import { freePort, spawnHub, type Cleanup, type Hub, type ProcessHub } from './hub.ts'
import { assertDead, redeem, statusOf, Visitor } from './oauth-replicas.ts'
import { register, type Tokens } from './oauth.ts'

type Fields = Record<string, string>

/** A request to the token endpoint: it is on its way, its answer begins to come, and its tokens, or undefined where it broke off. */
export interface Sent { readonly sent: Promise<unknown>, readonly begun: Promise<unknown>, readonly answer: Promise<Tokens | undefined> }

/** When the gateway is killed, after each code and refresh token was sent `times`. */
export interface Moment { readonly name: string, readonly times: number, readonly wait: (requests: readonly Sent[]) => Promise<unknown> }

export const whenAnswered: Moment = {
  name: 'when it has answered', times: 1, wait: async (all) => await Promise.all(all.map(async ({ answer }) => await answer))
}

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
  const unless = async (event: string): Promise<unknown> => await Promise.race([once(outgoing, event).catch(() => {}), answer])
  const sent = unless('finish')
  const begun = unless('response')
  outgoing.end(body)
  return { sent, begun, answer }
}

/** Sends each pair of a code and a refresh token, and kills the gateway. @returns the tokens that were answered for each */
async function killAmid (hub: ProcessHub, { times, wait }: Moment, pairs: readonly Fields[]): Promise<Tokens[][]> {
  // The first request to a process loads what serves the others.
  await redeem(hub, { ...pairs[0], code: 'none', refresh_token: 'none' })
  const sent = pairs.map((fields) => Array.from({ length: times }, () => sendForm(hub.url, fields)))
  await wait(sent.flat())
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
  async judge (
    hub: Hub, visitor: Visitor, what: string, { name, times }: Moment, fields: Fields, answered: readonly Tokens[]
  ): Promise<void> {
    assert.ok(answered.length <= 1, `a ${what} was good twice`)
    const [won] = answered
    // Who asks twice ends what the first one got.
    if (won && times === 1) assert.equal(await statusOf(hub, won.access_token), 200, `tokens for a ${what} were answered and lost`)
    const late = await redeem(hub, fields)
    this.#count(`${name}: a ${what} ${won ? 'answered' : late.status === 200 ? 'not taken' : 'taken, and nobody told'}`)
    if (won) assert.equal(late.status, 400, `a ${what} was good again`)
    if (late.status === 200) assert.equal((await redeem(hub, fields)).status, 400, `a ${what} was good twice after the kill`)
    if (what === 'code' && !this.#remembersCodes) return
    for (const tokens of [...answered, ...late.status === 200 ? [late.body] : []]) await assertDead([hub], visitor, tokens)
  }

  #count (outcome: string): void { this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1) }

  /** A gateway that has answered completely was killed too late to lose anything. */
  end (t: Test): void {
    t.comment([...this.#counts].map(([outcome, count]) => `${count} × ${outcome}`).sort().join('\n'))
    for (const what of ['code', 'refresh token']) assert.ok(this.#counts.has(`${whenAnswered.name}: a ${what} answered`), what)
  }
}

interface Test extends Cleanup { comment: (text: string) => void }

/** Kills one of two replicas on one database at each of these moments, and judges by the other one. */
export async function killReplicas (t: Test, moments: readonly Moment[]): Promise<void> {
  const db = await database(t)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const written = settings({}, { systemConfig: { install: { baseUrl: url }, oauthServer: { enabled: true } } })
  const hub = await startReplica(t, db.url, { settings: written, env: { PORT: String(port) } })
  const visitor = new Visitor(url, (await register(url)).client_id ?? '')
  const outcomes = new Outcomes({ remembersCodes: true })
  for (const moment of moments) {
    const pairs = [await visitor.code(), visitor.refresh((await redeem(hub, await visitor.code())).body)] as const
    const [byCode = [], byRefresh = []] = await killAmid(await spawnReplica(t, db.url), moment, pairs)
    await outcomes.judge(hub, visitor, 'code', moment, pairs[0], byCode)
    await outcomes.judge(hub, visitor, 'refresh token', moment, pairs[1], byRefresh)
    // What nobody was told of counts as well: no family has two tokens to go on with.
    assert.deepEqual(await db.query(`SELECT owner FROM records WHERE collection = 'oauthTokens' AND value::json ->> 'kind' = 'refresh'
      AND value::json ->> 'used' IS NULL GROUP BY owner HAVING count(*) > 1`), [])
  }
  outcomes.end(t)
}

/** Kills a gateway on a settings file at each of these moments, and judges by the next one on the same file. */
export async function killOnFile (t: Test, moments: readonly Moment[]): Promise<void> {
  const folder = await temporaryFolder(t)
  // All on one port, so that the issuer stays the same.
  const env = { ADMIN_PASSWORD: shared.ADMIN_PASSWORD, PORT: String(await freePort()) }
  let hub = await spawnHub(t, { folder, settings: settings({}, { systemConfig: { oauthServer: { enabled: true } } }), env })
  const { client_id: clientId = '' } = await register(hub.url)
  // Beside a settings file, codes are kept in memory.
  const outcomes = new Outcomes({ remembersCodes: false })
  for (const moment of moments) {
    // A restart ends logins.
    const visitor = new Visitor(hub.url, clientId)
    const pairs = [await visitor.code(), visitor.refresh((await redeem(hub, await visitor.code())).body)] as const
    const [byCode = [], byRefresh = []] = await killAmid(hub, moment, pairs)
    hub = await spawnHub(t, { folder, env })
    await outcomes.judge(hub, visitor, 'code', moment, pairs[0], byCode)
    await outcomes.judge(hub, visitor, 'refresh token', moment, pairs[1], byRefresh)
  }
  outcomes.end(t)
}
