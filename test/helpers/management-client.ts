// The management API as its clients see it, with every answer kept for a search for secrets.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { assertPlain, at, type Json } from './client.ts'
import { path, until, type Hub } from './hub.ts'

export const PASSWORD = 'Open-Sesame-1'
export const SECRET = 'a-secret-of-more-than-thirty-two-bytes-for-the-tests'
export const MASK = '••••'
export const STDIO = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }

export interface Answer { status: number, text: string, body: unknown, headers: Headers }

/** Every answer of the API in this file, for the search for secrets at the end. */
export const transcript: string[] = []

export interface Ask { body?: unknown, headers?: Record<string, string>, raw?: string | Uint8Array<ArrayBuffer> }

export async function ask (hub: Hub, method: string, route: string, { body, headers, raw }: Ask = {}): Promise<Answer> {
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const reply = await fetch(`${hub.url}${route}`, {
    method,
    headers: { ...(content === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: content
  })
  const answer = await reply.text()
  transcript.push(answer)
  let parsed: unknown
  try { parsed = JSON.parse(answer) } catch {}
  return { status: reply.status, text: answer, body: parsed, headers: reply.headers }
}

/** Somebody at the management API. */
export class Api {
  readonly hub: Hub
  readonly headers: Record<string, string>
  readonly token: string
  constructor (hub: Hub, headers: Record<string, string>, token = '') {
    this.hub = hub
    this.headers = headers
    this.token = token
  }

  static async login (hub: Hub, username = 'admin', password = PASSWORD): Promise<Api> {
    const answer = await ask(hub, 'POST', '/api/auth/login', { body: { username, password } })
    assert.equal(answer.status, 200, answer.text)
    const token = String(at(answer.body, 'token'))
    return new Api(hub, { 'x-auth-token': token }, token)
  }

  static key (hub: Hub, token: string): Api {
    return new Api(hub, { authorization: `Bearer ${token}` }, token)
  }

  async ask (method: string, route: string, body?: unknown): Promise<Answer> {
    return await ask(this.hub, method, `/api${route}`, { body, headers: this.headers })
  }

  /** A request that must succeed; its data. */
  async ok (method: string, route: string, body?: unknown, status = 200): Promise<Json> {
    return fine(await this.ask(method, route, body), status)
  }

  async add (name: string, config: Json): Promise<Json> {
    return await this.ok('POST', '/servers', { name, config })
  }

  async server (name: string): Promise<Json> {
    return await this.ok('GET', `/servers/${encodeURIComponent(name)}`)
  }

  /** Waits until the server has this status; its record. */
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

  async put (name: string, config: unknown, more: Json = {}): Promise<Answer> {
    return await this.ask('PUT', `/servers/${encodeURIComponent(name)}`, { config, ...more })
  }

  async run (server: string, toolName: string, args?: Json): Promise<Answer> {
    return await this.ask('POST', `/tools/call/${encodeURIComponent(server)}`, { toolName, arguments: args })
  }
}

export function fine (answer: Answer, status = 200): Json {
  assert.equal(answer.status, status, answer.text)
  assert.equal(at(answer.body, 'success'), true, answer.text)
  const data = at(answer.body, 'data')
  return (typeof data === 'object' && data !== null ? data : {}) as Json
}

/** The envelope of a failure: words for the caller, nothing of our insides. */
export function refused (answer: Answer, status: number, what = ''): void {
  assert.equal(answer.status, status, `${what} ${answer.text.slice(0, 1_000)}`)
  assert.equal(at(answer.body, 'success'), false, `${what} ${answer.text.slice(0, 1_000)}`)
  const message = at(answer.body, 'message')
  assert.ok(typeof message === 'string' && message !== '', `${what} ${answer.text.slice(0, 1_000)}`)
  assert.equal(at(answer.body, 'data'), undefined)
  assertPlain(answer.text)
}

/** 400 with the list of what is wrong. */
export function invalid (answer: Answer, what = ''): void {
  refused(answer, 400, what)
  const errors = at(answer.body, 'errors')
  assert.ok(Array.isArray(errors) && errors.length > 0, `${what} ${answer.text}`)
  for (const error of errors) assert.ok(typeof at(error, 'path') === 'string' && typeof at(error, 'message') === 'string', answer.text)
}

export const onDisk = async (hub: Hub): Promise<Json> => JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json
export const configOnDisk = async (hub: Hub, name: string): Promise<unknown> => at(await onDisk(hub), 'mcpServers', name)
export const records = (answer: Answer): Json[] => { fine(answer); return at(answer.body, 'data') as Json[] }
export const later = (answer: Answer): unknown =>
  at(answer.body, 'nextCursor') ?? at(answer.body, 'data', 'nextCursor') ?? at(answer.body, 'pagination', 'nextCursor')

/** A signed token, made here. */
export function sign (claims: unknown, { alg = 'HS256', secret = SECRET }: { alg?: string, secret?: string } = {}): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = `${part({ alg, typ: 'JWT' })}.${part(claims)}`
  const digest = alg === 'none' ? '' : createHmac(`sha${alg.slice(2)}`, secret).update(head).digest('base64url')
  return `${head}.${digest}`
}

export const claimsOf = (token: string): Json => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Json

/** The password that the first start printed. */
export const printed = (output: string): string => /password[^"'`\n]*["'`]([^"'`\s]{8,})["'`]/i.exec(output.replaceAll('\\', ''))?.[1] ?? ''
