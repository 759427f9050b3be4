import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import bcrypt from 'bcryptjs'
import type { FastifyInstance } from 'fastify'
import type { Storage } from '../../db/store.ts'
import { readEnv } from '../../schemas/read-env.ts'
import type { Env } from '../../schemas/env.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { appFor } from './app.ts'
import { initialize } from './client.ts'
import { bearerKey, until, type Cleanup } from './hub.ts'
import { Browser, codeFor, form, register, type Code, type Person, type Visit } from './oauth.ts'

export type Json = Record<string, unknown>

export const password = 'Same-1234'
export const admin: Person = { username: 'admin', password }
export const alice: Person = { username: 'alice', password }
export const bob: Person = { username: 'bob', password }
const hash = bcrypt.hashSync(password, 4)

export const callback = 'http://127.0.0.1:8123/callback'

/** An answer of JSON. */
export interface Answer { readonly status: number, readonly body: Json, readonly headers: Headers }

export async function answerOf (reply: Response): Promise<Answer> {
  const text = await reply.text()
  const isJson = reply.headers.get('content-type')?.includes('json') === true
  return { status: reply.status, body: isJson && text !== '' ? JSON.parse(text) as Json : { text }, headers: reply.headers }
}

export interface WorldOptions {
  readonly oauthServer?: Json
  readonly system?: Json
  readonly env?: Record<string, string>
  readonly servers?: Json
  /** As the settings file has them. */
  readonly clients?: readonly Json[]
  /** Puts faults between the gateway and its storage. */
  readonly wrap?: (opened: Storage) => Storage
}

/** A gateway with the authorization server switched on, three users (one an admin), and the means of whoever talks to it. */
export class World {
  readonly app: FastifyInstance
  readonly origin: string
  /** The address below which everything is, without a slash at the end. */
  readonly base: string

  constructor (app: FastifyInstance, port: number, basePath: string) {
    this.app = app
    this.origin = `http://127.0.0.1:${port}`
    this.base = `${this.origin}${basePath}`
  }

  async ask (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const reply = await fetch(path.startsWith('http') ? path : `${this.base}${path}`, {
      method,
      redirect: 'manual',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body)
    })
    return await answerOf(reply)
  }

  /** As a user who has logged in. */
  async as (who: Person, method: string, path: string, body?: unknown): Promise<Answer> {
    return await this.ask(method, path, body, { 'x-auth-token': this.login(who) })
  }

  /** The login token of a user. */
  login ({ username }: Person): string {
    const user = this.app.users.get(username)
    assert.ok(user)
    return this.app.auth.createLoginToken(user)
  }

  /** As a client with an access token. */
  async by (token: string, method: string, path: string, body?: unknown): Promise<Answer> {
    return await this.ask(method, path, body, { authorization: `Bearer ${token}` })
  }

  /** Initializes an MCP session with a token. */
  async mcp (token: string, path = '/mcp'): Promise<Answer> {
    return await this.ask('POST', path, initialize(), { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' })
  }

  browser (): Browser { return new Browser(this.origin) }

  authorizeUrl (params: Record<string, string> | URLSearchParams): string {
    return `${this.base}/oauth/authorize?${new URLSearchParams(params).toString()}`
  }

  /** What the authorization endpoint answers a browser at once. */
  async authorize (params: Record<string, string> | URLSearchParams): Promise<Visit> {
    return await this.browser().get(this.authorizeUrl(params))
  }

  /** A code, and all that its client needs to redeem it. */
  async code (who: Person, more: Record<string, string> = {}, clientId?: string, browser = this.browser()): Promise<Code> {
    return await codeFor(this.base, who, clientId ?? (await register(this.base)).client_id ?? '', more, browser)
  }

  async token (fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Answer> {
    return await answerOf(await form(`${this.base}/oauth/token`, fields, headers))
  }

  async revoke (fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Answer> {
    return await answerOf(await form(`${this.base}/oauth/revoke`, fields, headers))
  }

  async refresh (token: string, clientId: string, more: Record<string, string> = {}): Promise<Answer> {
    return await this.token({ grant_type: 'refresh_token', refresh_token: token, client_id: clientId, ...more })
  }

  /** Tokens of a public client that registered itself, or of the one given. */
  async tokens (
    who: Person,
    more: Record<string, string> = {},
    clientId?: string
  ): Promise<{ access: string, refresh: string, clientId: string }> {
    const code = await this.code(who, more, clientId)
    const { status, body } = await this.token(code)
    assert.equal(status, 200, JSON.stringify(body))
    return { access: String(body.access_token), refresh: String(body.refresh_token ?? ''), clientId: code.client_id }
  }

  /** A client that the admin makes. */
  async client (more: Json = {}): Promise<{ id: string, secret: string }> {
    const { status, body } = await this.as(admin, 'POST', '/api/oauth/clients', { name: 'Dashboard', redirectUris: [callback], ...more })
    assert.equal(status, 201, JSON.stringify(body))
    const { clientId, clientSecret } = body.data as Json
    return { id: String(clientId), secret: String(clientSecret ?? '') }
  }

  /** Changes the settings of the authorization server. */
  async configure (oauthServer: Json, more: Json = {}): Promise<void> {
    const { status, body } = await this.as(admin, 'PUT', '/api/system-config', { oauthServer, ...more })
    assert.equal(status, 200, JSON.stringify(body))
  }

  /** Whether a token is good for an MCP session. */
  async isValid (token: string): Promise<boolean> {
    const { status } = await this.mcp(token)
    assert.ok(status === 200 || status === 401, String(status))
    return status === 200
  }
}

export async function startWorld (t: Cleanup, options: WorldOptions = {}): Promise<World> {
  const { oauthServer = {}, system = {}, env = {}, servers = {}, clients = [], wrap } = options
  const createdAt = '2026-01-01T00:00:00.000Z'
  const app = await appFor(t, {
    users: ['admin', 'alice', 'bob'].map((username) => ({ username, password: hash, isAdmin: username === 'admin', createdAt })),
    bearerKeys: [bearerKey()],
    mcpServers: servers,
    oauthClients: clients,
    systemConfig: { ...system, oauthServer: { enabled: true, ...oauthServer } }
  }, readEnv({ JWT_SECRET: 'a secret of the test that is long enough', PORT: '0', ...env }) as Env, { wrap })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return new World(app, (app.server.address() as AddressInfo).port, env.BASE_PATH ?? '')
}

/** Two servers with a tool each: one of the admin's that all see, and one of alice's own. */
export async function startServers (t: Cleanup): Promise<Json> {
  const [open, own] = await Promise.all([startUpstream(t, { tools: [tool('echo')] }), startUpstream(t, { tools: [tool('mine')] })])
  return {
    open: { type: 'streamable-http', url: open.url, owner: 'admin', visibility: 'public' },
    own: { type: 'streamable-http', url: own.url, owner: 'alice', visibility: 'private' }
  }
}

/** The scopes that an answer of the token endpoint grants, sorted. */
export const scopeOf = ({ body }: Answer): string[] => String(body.scope ?? '').split(' ').sort()

/** The parameters of a Bearer challenge. */
export function challengeOf ({ headers }: Answer): Record<string, string> {
  const header = headers.get('www-authenticate') ?? ''
  assert.match(header, /^Bearer /)
  return Object.fromEntries([...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))
}

/** Parameters to set, or with undefined to leave out. */
export type Change = Readonly<Record<string, string | undefined>>
export const changed = (params: Change, change: Change): Record<string, string> =>
  Object.fromEntries(Object.entries({ ...params, ...change }).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]))

/** A refusal in JSON (RFC 6749, section 5.2). */
export function assertRefusal ({ status, body, headers }: Answer, [wanted, error]: [number, string], name: string): void {
  assert.deepEqual([status, body.error], [wanted, error], `${name}: ${status} ${JSON.stringify(body)}`)
  assert.match(headers.get('cache-control') ?? '', /no-store/, name)
  for (const given of ['access_token', 'client_id']) assert.equal(body[given], undefined, name)
}

/** A basic authorization header, as RFC 6749 encodes it. */
export const basic = (id: string, secret: string): Record<string, string> =>
  ({ authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}` })

export { until }
