// Replicas with the authorization server on one database, and a person who logs in there.
import assert from 'node:assert/strict'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { shared, spawnReplica } from '../fakes/replica.ts'
import { connected, initialize, send, settings, type Json } from './client.ts'
import { database, type Database } from './database.ts'
import { until, type Cleanup, type Hub, type ProcessHub } from './hub.ts'
import { allow, Browser, form, request, type Person, type Tokens } from './oauth.ts'

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
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => { server.close(); server.closeAllConnections() })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export interface Replicas {
  /** The one address of both, which changes between them with each request. */
  url: string
  hubs: [ProcessHub, ProcessHub]
  upstream: Upstream
  db: Database
  /** Starts a replica in the place of one that is gone. */
  restart: (index: 0 | 1) => Promise<void>
}

/** Two replicas on one database behind one address, with the authorization server. */
export async function startReplicas (t: Cleanup, oauthServer: Json = {}): Promise<Replicas> {
  const db = await database(t)
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('slow')],
    on: ({ params }) => (params.name === 'slow' ? 'never' : undefined)
  })
  const hubs: ProcessHub[] = []
  const url = await startBalancer(t, () => hubs.map(({ port }) => port))
  const options = {
    settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }, {
      systemConfig: { install: { baseUrl: url }, oauthServer: { enabled: true, ...oauthServer } }
    })
  }
  // The first one stores the settings.
  hubs.push(await spawnReplica(t, db.url, options))
  hubs.push(await spawnReplica(t, db.url, options))
  const [a, b] = hubs
  assert.ok(a && b)
  await connected(a, 1)
  await connected(b, 1)
  const cluster: Replicas = {
    url,
    hubs: [a, b],
    upstream,
    db,
    restart: async (index) => {
      const hub = await spawnReplica(t, db.url, options)
      hubs[index] = hub
      cluster.hubs[index] = hub
    }
  }
  return cluster
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

  /** The fields with which a code is redeemed. */
  async code (): Promise<Record<string, string>> {
    const { verifier, params } = request(this.clientId)
    const end = await allow(this.#browser, `${this.#url}/oauth/authorize?${new URLSearchParams(params).toString()}`, admin)
    const code = end.searchParams.get('code')
    assert.ok(code, end.href)
    return { grant_type: 'authorization_code', code, client_id: this.clientId, redirect_uri: redirectUri, code_verifier: verifier }
  }

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
