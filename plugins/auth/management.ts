import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../gateway/view.ts'
import type { Keys } from '../keys/keys.ts'

/** What a management request carries that may tell who is asking. */
export interface Credentials { headers: IncomingHttpHeaders, query: Readonly<Record<string, unknown>> }

/** One way to know who is asking: an identity, or undefined for "not mine". */
export type ManagementStep = (credentials: Credentials, snapshot: Snapshot) => Principal | undefined

const bearerOf = (header: unknown): string | undefined => typeof header === 'string' ? /^bearer +(.+)$/i.exec(header)?.[1]?.trim() : undefined

/** A system key that is good for everything acts as its owner, with an admin's rights (DECISIONS §3). Other keys are for MCP only. */
export const systemKey = (keys: Keys): ManagementStep => ({ headers }, { system }) => {
  const named = headers[(system.routing?.bearerAuthHeaderName ?? 'authorization').toLowerCase()]
  for (const token of [bearerOf(headers.authorization), bearerOf(named) ?? (typeof named === 'string' ? named.trim() : undefined)]) {
    const key = token === undefined ? undefined : keys.find(token)
    if (!key || key.kind === 'user' || (key.accessType ?? 'all') !== 'all') continue
    const username = key.owner ?? 'system'
    return { key: `key ${key.id}`, kind: 'system-key', user: username, username, isAdmin: true }
  }
  return undefined
}

/** A login token, in `x-auth-token` or `?token=`. The user is read again: demotion and deletion take effect at once. */
export const loginToken = (usernameOf: (token: string) => string | undefined): ManagementStep => ({ headers, query }, { users }) => {
  for (const token of [headers['x-auth-token'], query.token]) {
    const username = typeof token === 'string' ? usernameOf(token) : undefined
    const user = username === undefined ? undefined : users.get(username)
    if (user) return { key: `user ${user.username}`, kind: 'user', user: user.username, username: user.username, isAdmin: user.isAdmin === true }
  }
  return undefined
}

/** Everybody is the guest admin where `routing.skipAuth` says so. */
export const guest: ManagementStep = (_credentials, { system }) => system.routing?.skipAuth === true
  ? { key: 'guest', kind: 'guest', user: 'guest', username: 'guest', isAdmin: true }
  : undefined

/** Who is asking: the first step that knows. @throws Unauthorized */
export function authenticateManagement (steps: readonly ManagementStep[], credentials: Credentials, snapshot: Snapshot): Principal {
  for (const step of steps) {
    const principal = step(credentials, snapshot)
    if (principal) return principal
  }
  throw new errors.Unauthorized('Log in with POST /api/auth/login and send the token in x-auth-token, or send a system bearer key')
}
