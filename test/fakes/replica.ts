import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { openVault } from '../../plugins/base/secrets/vault.ts'
import { openStorage } from '../../db/open.ts'
import type { Change, Snapshot, Vault } from '../../db/store.ts'
import { at, KEY, within, type Json } from '../helpers/client.ts'
import { spawnHub, startHub, type Cleanup, type Hub, type HubOptions, type ProcessHub, type ProcessOptions } from '../helpers/hub.ts'

/** What every replica is given alike. Each holds a canary: none may ever be seen. */
export const shared = {
  ENCRYPTION_KEY: 'ca4a47'.padEnd(64, '0'),
  JWT_SECRET: 'canary-of-the-jwt-secret-canary-of-the-jwt-secret',
  ADMIN_PASSWORD: 'Canary-Of-The-Admin-1'
}

/** The vault of those replicas. */
export const vault = async (): Promise<Vault> => await openVault({ dataDir: tmpdir(), encryptionKey: shared.ENCRYPTION_KEY })

/**
 * A gateway on a database within this process, with a folder of its own and what all replicas share.
 * @param url empty: on its settings file
 */
export async function startReplica (t: Cleanup, url: string, options: HubOptions = {}): Promise<Hub> {
  return await startHub(t, { ...options, env: { DB_URL: url, ...shared, ...options.env } })
}

/** As `startReplica`, as a process of its own. It is ready, unless told not to wait: with a database that takes longer. */
export async function spawnReplica (t: Cleanup, url: string, options: ProcessOptions = {}): Promise<ProcessHub> {
  return await spawnHub(t, { wait: '/health/ready', ...options, env: { DB_URL: url, ...shared, ...options.env } })
}

export interface Answer { status: number, headers: Headers, text: string, body: unknown }

/** A request of the management API. @param headers instead of the key that `settings()` puts into every file */
export async function manage (
  hub: Pick<Hub, 'url'>,
  method: string,
  route: string,
  body?: unknown,
  headers: Record<string, string> = { authorization: `Bearer ${KEY}` }
): Promise<Answer> {
  const [reply, text] = await within(`${method} ${route}`,
    (async () => {
      const reply = await fetch(`${hub.url}/api${route}`, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? undefined : JSON.stringify(body)
      })
      return [reply, await reply.text()] as const
    })()
  )
  return { status: reply.status, headers: reply.headers, text, body: text === '' ? undefined : JSON.parse(text) }
}

/** As `manage`, for what must succeed; its data. */
export async function managed (
  hub: Pick<Hub, 'url'>,
  method: string,
  route: string,
  body?: unknown,
  headers?: Record<string, string>
): Promise<Json> {
  const answer = await manage(hub, method, route, body, headers)
  assert.ok(answer.status === 200 || answer.status === 201, `${method} ${route}: ${answer.status} ${answer.text}`)
  return at(answer.body, 'data') as Json
}

export const login = async (hub: Pick<Hub, 'url'>, username = 'admin', password: string = shared.ADMIN_PASSWORD): Promise<Answer> =>
  await manage(hub, 'POST', '/auth/login', { username, password }, {})

/** The headers of somebody who is logged in. */
export async function loggedIn (hub: Pick<Hub, 'url'>, username?: string, password?: string): Promise<Record<string, string>> {
  const answer = await login(hub, username, password)
  assert.equal(answer.status, 200, answer.text)
  return { 'x-auth-token': String(at(answer.body, 'token')) }
}

/** A server that is stored and never connected. */
export const parked = (description = 'parked'): Json => ({
  type: 'streamable-http',
  url: 'http://127.0.0.1:9/mcp',
  enabled: false,
  description
})

/** The names of all servers. */
export async function serverNames (hub: Pick<Hub, 'url'>, headers?: Record<string, string>): Promise<string[]> {
  return ((await managed(hub, 'GET', '/servers?fields=name', undefined, headers)) as unknown as Array<{ name: string }>).map(
    ({ name }) => name
  )
}

/** Changes the settings as a third replica would. */
export async function asThird (t: Cleanup, url: string, work: (snapshot: Snapshot) => Change[]): Promise<void> {
  const { store } = await openStorage({
    settingsPath: '/nonexistent/mcp_settings.json',
    dbUrl: url,
    startupTimeout: 60_000,
    vault: await vault(),
    warn: () => {},
    info: () => {}
  })
  t.after(async () => { await store.close() })
  const snapshot = await store.load()
  await store.commit(work(snapshot), snapshot.version)
}
