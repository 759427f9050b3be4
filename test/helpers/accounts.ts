// What the tests of users and logins share: a gateway with an admin, callers of its management API, and what its answers must look like.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { assertPlain, KEY, settings, type Json } from './client.ts'
import { startHub, type Cleanup, type Hub, type HubOptions } from './hub.ts'
import { tokenOf as signed } from './token.ts'

export const PASSWORD = 'Open-Sesame-1'
export const SECRET = 'a-secret-of-more-than-thirty-two-bytes-for-the-tests'

export interface Answer { status: number, text: string, body: Json, headers: Headers }

/** Every answer, for a search for passwords and hashes at the end of a file. */
export const transcript: string[] = []

export async function ask (hub: Hub, method: string, route: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const content = typeof body === 'string' ? body : body === undefined ? undefined : JSON.stringify(body)
  const reply = await fetch(`${hub.url}/api${route}`, {
    method,
    headers: { ...(content === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: content
  })
  const text = await reply.text()
  transcript.push(text)
  return { status: reply.status, text, body: JSON.parse(text) as Json, headers: reply.headers }
}

export type Caller = (method: string, route: string, body?: unknown) => Promise<Answer>
export const as =
  (hub: Hub, headers: Record<string, string>): Caller => async (method, route, body) => await ask(hub, method, route, body, headers)
export const withToken = (hub: Hub, token: unknown): Caller => as(hub, { 'x-auth-token': String(token) })
export const withKey = (hub: Hub, token: unknown = KEY): Caller => as(hub, { authorization: `Bearer ${String(token)}` })
export const login = async (hub: Hub, username: string, password: string, headers?: Record<string, string>): Promise<Answer> =>
  await ask(hub, 'POST', '/auth/login', { username, password }, headers)
export const loggedIn = async (hub: Hub, username: string, password = PASSWORD): Promise<Caller> =>
  withToken(hub, fine(await login(hub, username, password)).token)

export function fine (answer: Answer, status = 200): Json {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.success, true)
  return answer.body
}

/** The envelope of a failure: words for the caller, nothing of our insides. */
export function refused (answer: Answer, status: number, what = ''): Json {
  assert.equal(answer.status, status, `${what} ${answer.text}`)
  assert.equal(answer.body.success, false)
  assert.ok(typeof answer.body.message === 'string' && answer.body.message !== '', answer.text)
  assert.equal(answer.body.data, undefined)
  assertPlain(answer.text)
  return answer.body
}

/** 400, since no admin would be left. */
export const remains = (answer: Answer): void => { assert.match(String(refused(answer, 400).message), /admin must remain/) }

/** 400 with one sentence for each rule that a password does not keep. */
export function weak (answer: Answer, count: number, what = ''): void {
  const { errors, code } = refused(answer, 400, what)
  assert.equal(code, 'TH_WEAK_PASSWORD')
  assert.ok(
    Array.isArray(errors) && errors.length === count && errors.every((each) => typeof each === 'string' && each.endsWith('.')),
    `${what} ${answer.text}`
  )
}

export const onDisk = async (hub: Hub): Promise<Json> => JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json
export const data = (answer: Answer, status = 200): Json => fine(answer, status).data as Json
export const rows = (answer: Answer): Json[] => fine(answer).data as Json[]

/** A login token for a user of a settings file, signed here. */
export const tokenOf = (user: Parameters<typeof signed>[0]): string => signed(user, SECRET)

export const start = async (t: Cleanup, { env, ...options }: HubOptions = {}): Promise<Hub> =>
  await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD, JWT_SECRET: SECRET, ...env }, ...options })
