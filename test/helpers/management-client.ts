// The management API as its clients see it: what the tests of logins and of whole answers need beside management.ts.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { at, type Json } from './client.ts'
import type { Hub } from './hub.ts'
import { Api as Client, refused, WORDS, type Answer } from './management.ts'

export { ask, fine, list as records, MASK, onDisk, refused, STDIO, transcript, type Answer } from './management.ts'

export const PASSWORD = WORDS.admin
export const SECRET = 'a-secret-of-more-than-thirty-two-bytes-for-the-tests'

/** Somebody at the management API. */
export class Api extends Client {
  static key (hub: Hub, token: string): Api { return new Api(hub, { authorization: `Bearer ${token}` }) }

  get token (): string { return this.headers['x-auth-token'] ?? '' }

  /** Adds a server, and does not wait for it. */
  override async add (name: string, config: Json): Promise<Json> { return await this.ok('POST', '/servers', { name, config }) }

  async put (name: string, config: unknown, more: Json = {}): Promise<Answer> {
    return await this.ask('PUT', `/servers/${encodeURIComponent(name)}`, { config, ...more })
  }

  async run (server: string, toolName: string, args?: Json): Promise<Answer> {
    return await this.ask('POST', `/tools/call/${encodeURIComponent(server)}`, { toolName, arguments: args })
  }
}

/** 400 with the list of what is wrong. */
export function invalid (answer: Answer, what = ''): void {
  refused(answer, 400, what)
  const errors = at(answer.body, 'errors')
  assert.ok(Array.isArray(errors) && errors.length > 0, `${what} ${answer.text}`)
  for (const error of errors) assert.ok(typeof at(error, 'path') === 'string' && typeof at(error, 'message') === 'string', answer.text)
}

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
