// What the tests of users and logins share: a gateway with an admin, callers of its management API, and what its answers must look like.
import assert from 'node:assert/strict'
import { KEY, settings, type Json } from './client.ts'
import { startHub, type Cleanup, type Hub, type HubOptions } from './hub.ts'
import { ask as askRoute, refused as assertRefused, type Answer as Plain } from './management.ts'
import { tokenOf as signed } from './token.ts'

export { transcript, onDisk } from './management.ts'

export const PASSWORD = 'Open-Sesame-1'
export const SECRET = 'a-secret-of-more-than-thirty-two-bytes-for-the-tests'

export interface Answer extends Plain { body: Json }

export async function ask (hub: Hub, method: string, route: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return await askRoute(hub, method, `/api${route}`, typeof body === 'string' ? { raw: body, headers } : { body, headers }) as Answer
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

/** The envelope of a failure. */
export function refused (answer: Answer, status: number, what = ''): Json {
  assertRefused(answer, status, what)
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

export const data = (answer: Answer, status = 200): Json => fine(answer, status).data as Json
export const rows = (answer: Answer): Json[] => fine(answer).data as Json[]

/** A login token for a user of a settings file, signed here. */
export const tokenOf = (user: Parameters<typeof signed>[0]): string => signed(user, SECRET)

export const start = async (t: Cleanup, { env, ...options }: HubOptions = {}): Promise<Hub> =>
  await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD, JWT_SECRET: SECRET, ...env }, ...options })
