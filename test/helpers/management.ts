// The management API as admins script it, for the tests of test/api.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Test } from 'tap'
import bcrypt from 'bcryptjs'
import { JsonFileStore } from '../../db/json/file.ts'
import { assertPlain, at, settings, type Json } from './client.ts'
import { Refusal, tool, type Options } from '../fakes/fault-http.ts'
import { path, startHub, until, type Cleanup, type Hub, type HubOptions } from './hub.ts'

export const MASK = '••••'
export const STDIO = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
export const NOTE = 'fault://note'
export const WORDS = { admin: 'Open-Sesame-1', bob: 'Bobs-Word-1' }

export interface Answer { status: number, text: string, body: unknown, headers: Headers }

export interface Extra { headers?: Record<string, string>, raw?: string | Uint8Array<ArrayBuffer> }

/** Every answer, for a search for secrets at the end of a file. */
export const transcript: string[] = []

/** One request of a route. */
export async function ask (
  hub: Hub, method: string, route: string, { body, headers, raw }: Extra & { body?: unknown } = {}
): Promise<Answer> {
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const reply = await fetch(`${hub.url}${route}`, {
    method,
    headers: { ...(content === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: content
  })
  const text = await reply.text()
  transcript.push(text)
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {}
  return { status: reply.status, text, body: parsed, headers: reply.headers }
}

/** Neither a hash of a password nor a whole `canary` is in it. */
function assertNoSecret (answer: string): void {
  assert.doesNotMatch(answer, /\$2[aby]\$\d\d\$|scrypt|argon2/, 'a hash in an answer')
  assert.doesNotMatch(answer, /canary-[a-z]+-[0-9a-f]{12}-/, answer.slice(0, 2_000))
}

/** Somebody at the management API; without credentials: nobody. No answer may hold a secret. */
export class Api {
  readonly hub: Hub
  readonly headers: Record<string, string>
  constructor (hub: Hub, headers: Record<string, string> = {}) {
    this.hub = hub
    this.headers = headers
  }

  static async login<Made extends Api> (
    this: new (hub: Hub, headers: Record<string, string>) => Made, hub: Hub, username: keyof typeof WORDS = 'admin', password = WORDS[username]
  ): Promise<Made> {
    const answer = await ask(hub, 'POST', '/api/auth/login', { body: { username, password } })
    assert.equal(answer.status, 200, answer.text)
    return new this(hub, { 'x-auth-token': String(at(answer.body, 'token')) })
  }

  async ask (method: string, route: string, body?: unknown, { headers, raw }: Extra = {}): Promise<Answer> {
    const answer = await ask(this.hub, method, `/api${route}`, { body, raw, headers: { ...this.headers, ...headers } })
    // An export with its secrets is asked for as such.
    if (!route.includes('includeSecrets=true')) assertNoSecret(answer.text)
    return answer
  }

  /** A request that must succeed; its data. */
  async ok (method: string, route: string, body?: unknown, status = 200): Promise<Json> {
    return fine(await this.ask(method, route, body), status)
  }

  async server (name: string): Promise<Json> { return await this.ok('GET', `/servers/${encodeURIComponent(name)}`) }

  /** Adds a server and waits until it is connected. */
  async add (name: string, config: Json): Promise<Json> {
    await this.ok('POST', '/servers', { name, config })
    return config.enabled === false ? await this.server(name) : await this.has(name, 'connected')
  }

  async has (name: string, status: string): Promise<Json> {
    let record: Json = {}
    await until(
      async () => {
        record = await this.server(name)
        return record.status === status
      },
      () => `${name} never became ${status}: ${JSON.stringify(record)}`
    )
    return record
  }

  async system (): Promise<Json> { return at(await this.ok('GET', '/settings'), 'systemConfig') as Json }
}

export function fine (answer: Answer, status = 200): Json {
  assert.equal(answer.status, status, answer.text.slice(0, 2_000))
  assert.equal(at(answer.body, 'success'), true, answer.text.slice(0, 2_000))
  const data = at(answer.body, 'data')
  return (typeof data === 'object' && data !== null ? data : {}) as Json
}

/** The envelope of a failure: words for the caller, and nothing else but code and errors. */
export function refused (answer: Answer, status: number, what = ''): void {
  assert.equal(answer.status, status, `${what} ${answer.text.slice(0, 1_000)}`)
  members(answer.body, ['success', 'message'], ['code', 'errors'])
  assert.equal(at(answer.body, 'success'), false, `${what} ${answer.text}`)
  const message = at(answer.body, 'message')
  assert.ok(typeof message === 'string' && message !== '', `${what} ${answer.text}`)
  assertPlain(answer.text)
}

/** Exactly these members, and none but these others. */
export function members (value: unknown, required: readonly string[], optional: readonly string[] = []): void {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `no object: ${JSON.stringify(value)}`)
  const keys = Object.keys(value)
  for (const key of required) assert.ok(keys.includes(key), `no "${key}" in ${JSON.stringify(value).slice(0, 1_000)}`)
  for (const key of keys) {
    assert.ok(required.includes(key) || optional.includes(key), `"${key}" should not be in ${JSON.stringify(value).slice(0, 1_000)}`)
  }
}

/** An answer of this kind: `data` as given, a message where it is a write. */
export const envelope = (answer: Answer, status: number, message: 'message' | 'no message'): Json => {
  const data = fine(answer, status)
  members(answer.body, ['success', 'data', ...(message === 'message' ? ['message'] : [])])
  if (message === 'message') assert.ok(typeof at(answer.body, 'message') === 'string' && at(answer.body, 'message') !== '', answer.text)
  return data
}

export const deleted = (answer: Answer): void => {
  fine(answer)
  members(answer.body, ['success', 'message'])
}

export const serverRecord = (value: unknown): void => {
  const sometimes = ['connectedAt', 'protocolVersion', 'era', 'oauth']
  members(value, ['name', 'enabled', 'status', 'error', 'tools', 'prompts', 'resources', 'skills', 'config', 'createdAt'], sometimes)
  assert.ok(
    ['connecting', 'connected', 'disconnected', 'oauth_required', 'disabled'].includes(String(at(value, 'status'))),
    JSON.stringify(value)
  )
}
export const groupRecord = (value: unknown): void => { members(value, ['id', 'name', 'servers', 'owner'], ['description']) }
export const toolRecord = (value: unknown): void => {
  members(value, ['name', 'description', 'inputSchema', 'enabled'], ['title', 'outputSchema', 'annotations', 'overridden'])
}
export const promptRecord = (value: unknown): void => { members(value, ['name', 'enabled'], ['description', 'arguments', 'title', 'overridden']) }
export const resourceRecord = (value: unknown): void => {
  members(value, ['uri', 'name', 'enabled'], ['description', 'mimeType', 'title', 'overridden'])
}

export const onDisk = async (hub: Hub): Promise<Json> => JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json
/** The settings file without what counts writes. */
export const stored = async (hub: Hub): Promise<Json> => { const { version, ...rest } = await onDisk(hub); return rest }
export const list = (answer: Answer): Json[] => { fine(answer); return at(answer.body, 'data') as Json[] }
export const enc = encodeURIComponent

/** What an upstream of these tests offers. */
export const offers: Options = {
  tools: [
    tool('echo'),
    tool('two-words'),
    tool('typed', {
      inputSchema: {
        type: 'object',
        properties: { n: { type: 'integer' }, list: { type: 'array', items: { type: 'string' } } },
        required: ['n']
      }
    })
  ],
  prompts: [{ name: 'greet', description: 'Greets', arguments: [{ name: 'who' }] }, { name: 'broken' }],
  resources: [{ name: 'note', uri: NOTE, description: 'A note' }],
  on ({ method, params }) {
    if (method === 'tools/call' && params.name === 'typed') return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] }
    if (method !== 'prompts/get') return undefined
    if (params.name === 'broken') return new Refusal(-32000, 'not today')
    return {
      description: 'A greeting',
      messages: [
        { role: 'user', content: { type: 'text', text: `Greet ${String(at(params, 'arguments', 'who') ?? 'all')}` } },
        { role: 'assistant', content: { type: 'image', data: 'aGk=', mimeType: 'image/png' } }
      ]
    }
  }
}

export const users = [
  { username: 'admin', password: bcrypt.hashSync(WORDS.admin, 4), isAdmin: true },
  { username: 'bob', password: bcrypt.hashSync(WORDS.bob, 4), isAdmin: false }
]

/** A gateway with one admin, one who is none, and these servers. */
export const started = async (
  t: Test,
  mcpServers: Json = {},
  more: Json = {},
  options: HubOptions = {}
): Promise<{ hub: Hub; admin: Api; bob: Api }> => {
  const hub = await startHub(t, { settings: settings(mcpServers, { users, ...more }), ...options })
  return { hub, admin: await Api.login(hub), bob: await Api.login(hub, 'bob') }
}

/** A secret that no answer may show. */
export const canary = (what: string): string => `canary-${what}-${randomBytes(6).toString('hex')}-${what.slice(0, 2)}9z`

/** Counts how often gateways within this process write their settings files, until the test ends. */
export function countWrites (t: Cleanup): () => number {
  let count = 0
  const { commit } = JsonFileStore.prototype
  JsonFileStore.prototype.commit = async function (changes, baseVersion) {
    const next = await commit.call(this, changes, baseVersion)
    if (next.version !== baseVersion) count++
    return next
  }
  t.after(() => { JsonFileStore.prototype.commit = commit })
  return () => count
}
