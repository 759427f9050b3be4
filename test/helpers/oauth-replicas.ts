// Replicas with the authorization server on one database, and a person who logs in there.
import assert from 'node:assert/strict'
import { Agent, createServer, request as httpRequest } from 'node:http'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { shared } from '../fakes/replica.ts'
import { connected, initialize, send, settings } from './client.ts'
import { database, type Database } from './database.ts'
import { until, type Cleanup, type Hub, type HubOptions } from './hub.ts'
import { listen } from './listen.ts'
import { Browser, codeFor, form, type Person, type Tokens } from './oauth.ts'

export const admin: Person = { username: 'admin', password: shared.ADMIN_PASSWORD }
export const redirectUri = 'http://127.0.0.1:8123/callback'

/** An address in front of replicas that sends each request to the next one. @param ports of the replicas, read for each request */
async function startBalancer (t: Cleanup, ports: () => readonly number[]): Promise<string> {
  let turn = 0
  // A request over a connection that its other end is about to close would fail, and a balancer that sends it again is not needed here.
  const agent = new Agent({ keepAlive: false })
  const server = createServer((inbound, reply) => {
    const all = ports()
    const port = all[turn++ % all.length]
    const { method, url: path, headers } = inbound
    inbound.pipe(httpRequest({ host: '127.0.0.1', port, method, path, headers, agent }, (answer) => {
      reply.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(reply)
    }).on('error', () => { reply.destroy() }))
  })
  server.keepAliveTimeout = 60_000
  return `http://127.0.0.1:${await listen(t, server)}`
}

export interface Replicas<Made extends Hub> {
  /** The one address of both, which changes between them with each request. */
  url: string
  hubs: [Made, Made]
  db: Database
}

/** Two replicas on one database behind one address, with the authorization server. @param start `startReplica` or `spawnReplica` */
export async function startReplicas<Made extends Hub> (
  t: Cleanup,
  start: (t: Cleanup, url: string, options: HubOptions) => Promise<Made>
): Promise<Replicas<Made>> {
  const db = await database(t)
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('slow')],
    on: ({ params }) => (params.name === 'slow' ? 'never' : undefined)
  })
  const hubs: Made[] = []
  const url = await startBalancer(t, () => hubs.map(({ port }) => port))
  const options = {
    settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }, {
      systemConfig: { install: { baseUrl: url }, oauthServer: { enabled: true } }
    })
  }
  // The first one stores the settings.
  hubs.push(await start(t, db.url, options))
  hubs.push(await start(t, db.url, options))
  const [a, b] = hubs
  assert.ok(a && b)
  await connected(a, 1)
  await connected(b, 1)
  return { url, hubs: [a, b], db }
}

/** A person with a browser that is logged in, after the first time. */
export class Visitor {
  readonly #browser: Browser
  readonly #url: string
  readonly clientId: string

  constructor (url: string, clientId: string) {
    this.#browser = new Browser(url)
    this.#url = url
    this.clientId = clientId
  }

  async code (): Promise<Record<string, string>> { return await codeFor(this.#url, admin, this.clientId, {}, this.#browser) }

  refresh ({ refresh_token: token = '' }: Tokens): Record<string, string> {
    return { grant_type: 'refresh_token', refresh_token: token, client_id: this.clientId }
  }
}

export interface Redeemed { status: number, body: Tokens & { error?: string } }

export async function redeem ({ url }: Pick<Hub, 'url'>, fields: Record<string, string>): Promise<Redeemed> {
  const reply = await form(`${url}/oauth/token`, fields)
  return { status: reply.status, body: await reply.json() as Redeemed['body'] }
}

export const statusOf = async ({ url }: Pick<Hub, 'url'>, key: string): Promise<number> =>
  (await send(`${url}/mcp`, { key, body: initialize() })).status

/** Waits until tokens are of no use anywhere, which is within 5 s. */
export async function assertDead (hubs: readonly Hub[], visitor: Visitor, tokens: Tokens): Promise<void> {
  for (const hub of hubs) {
    await until(async () => await statusOf(hub, tokens.access_token) === 401, 'the access token is still accepted')
    const { status, body: { error } } = await redeem(hub, visitor.refresh(tokens))
    assert.deepEqual([status, error], [400, 'invalid_grant'])
  }
}
