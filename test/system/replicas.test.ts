// A gateway process and its database at the start: waited for, refused, given up with a sentence; and replicas that begin at once.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { assertNoCanary } from '../fakes/canaries.ts'
import { login, spawnReplica, startReplica } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { certificate, startTlsPostgres } from '../fakes/tls-postgres.ts'
import { at, within } from '../helpers/client.ts'
import { cluster, database, passwordCanary } from '../helpers/database.ts'
import { freePort, until } from '../helpers/hub.ts'

const encodedCanary = encodeURIComponent(passwordCanary)

/** A gateway process that gives up with a sentence and exit code 1. */
async function givesUp (t: Test, url: string, says: RegExp, env: Record<string, string>): Promise<void> {
  const hub = await spawnReplica(t, url, { wait: false, env })
  if (hub.child.exitCode === null) await within('the exit', once(hub.child, 'exit'))
  await until(() => says.test(hub.output()), () => hub.output())
  assert.equal(hub.child.exitCode, 1)
  assert.doesNotMatch(hub.output(), /^\s+at .+:\d+:\d+\)?$/m)
  assertNoCanary([hub.output()], 'the output')
}

/** A start within this process that fails with a sentence. */
async function fails (t: Test, url: string, says: RegExp, env: Record<string, string>): Promise<void> {
  await assert.rejects(startReplica(t, url, { env }), ({ message }: Error) => {
    assert.match(message, says)
    assertNoCanary([message], 'the message')
    return true
  })
}

test('PostgreSQL that is away at the start is waited for, and then given up', async (t) => {
  const port = await freePort()
  await givesUp(t, `postgres://hub:${encodedCanary}@127.0.0.1:${port}/hub`, new RegExp(`waiting for PostgreSQL at .*${port}[^]*3 s`), {
    DB_STARTUP_TIMEOUT: '3s'
  })
})

test('PostgreSQL that comes late: health checks are answered meanwhile, and everything once it is there', async (t) => {
  const server = await cluster(t)
  const { url } = await database(t, server)
  await server.stop('fast')
  const hub = await spawnReplica(t, url, { wait: false, env: { DB_STARTUP_TIMEOUT: '10m' } })
  const get = async (route: string): Promise<Response> => await fetch(`${hub.url}${route}`)
  await until(async () => (await get('/health')).ok, () => `no answer while waiting: ${hub.output()}`)
  assert.equal(at(await (await get('/health')).json(), 'status'), 'starting')
  assert.equal((await get('/health/live')).status, 200)
  for (const [method, route] of [['GET', '/health/ready'], ['POST', '/mcp'], ['GET', '/api/servers'], ['GET', '/nothing']] as const) {
    const answer = await fetch(`${hub.url}${route}`, { method })
    assert.equal(answer.status, 503, route)
    assert.ok(Number(answer.headers.get('retry-after')) > 0, route)
    assert.equal(at(await answer.json(), 'code'), 'TH_NOT_READY')
  }
  assert.equal(hub.child.exitCode, null, hub.output())
  await server.start()
  await until(async () => (await get('/health/ready')).ok, () => `never ready: ${hub.output()}`)
  assert.equal(at(await (await get('/health')).json(), 'status'), 'ok')
  assertNoCanary([hub.output()], 'the output')

  await t.test('one that refuses the password, or has no such database, is told of in words', async (t) => {
    const [wrong, none] = [new URL(url), new URL(url)]
    wrong.password = 'canary-that-is-wrong'
    none.pathname = 'no_such_database'
    await fails(t, wrong.href, /password|hub/, { DB_STARTUP_TIMEOUT: '1s' })
    await fails(t, none.href, /no database with that name|no_such_database/, { DB_STARTUP_TIMEOUT: '1s' })
  })
})

test('an address of a database that is none is told of in words', async (t) => {
  const env = { DB_STARTUP_TIMEOUT: '1s' }
  for (const [place, says] of [['127.0.0.1/x', /DB_URL.*%25/], ['[broken/x', /DB_URL/]] as const) {
    const password = place.startsWith('127') ? `100%${encodedCanary}` : encodedCanary
    await fails(t, `postgres://hub:${password}@${place}`, says, env)
  }
  await givesUp(t, `mysql://hub:${encodedCanary}@127.0.0.1/x`, /DB_URL/, env)
})

test('TLS that is asked for: who offers none, and a certificate that is not right, are told of in words', async (t) => {
  const [plain, secure] = [await startTlsPostgres(t, false), await startTlsPostgres(t, true)]
  const trusted = join(await temporaryFolder(t), 'ca.pem')
  await writeFile(trusted, certificate)
  const [env, trusting] = [{ DB_STARTUP_TIMEOUT: '60s' }, { DB_STARTUP_TIMEOUT: '60s', NODE_EXTRA_CA_CERTS: trusted }]
  const url = (place: string, mode: string): string => `postgres://hub:${encodedCanary}@${place}/x?sslmode=${mode}`
  const refuses = /it refused the user or the password/
  await fails(t, url(`127.0.0.1:${plain}`, 'require'), /could not be reached .*it seems not to support TLS, which sslmode in DB_URL requires/, env)
  const untrusted = /cannot be used: its TLS certificate is not signed by a trusted authority: NODE_EXTRA_CA_CERTS/
  await fails(t, url(`127.0.0.1:${secure}`, 'verify-full'), untrusted, env)
  await fails(t, url(`127.0.0.1:${secure}`, 'require'), refuses, env)
  // Only a process takes further authorities.
  const another = /cannot be used: its TLS certificate is not for the host in DB_URL/
  await givesUp(t, url(`localhost:${secure}`, 'verify-full'), another, trusting)
  await givesUp(t, url(`127.0.0.1:${secure}`, 'verify-full'), refuses, trusting)
})

test('of replicas that begin at once without ADMIN_PASSWORD, only the one that stored the admin tells the password that counts', async (t) => {
  const { url } = await database(t, undefined, { tables: false })
  const hubs = await Promise.all([0, 1].map(async () => await spawnReplica(t, url, { env: { ADMIN_PASSWORD: '' } })))
  for (const hub of hubs) await until(() => hub.output().includes('API and its documentation'), hub.output)
  await until(() => hubs.some((hub) => hub.firstWords().includes('Add a first server')), 'none says what to do first')
  const printed = hubs.flatMap((hub) => [...hub.firstWords().matchAll(/with password "([^"]+)"/g)].map(([, password = '']) => password))
  assert.equal(printed.length, 1, printed.join())
  for (const hub of hubs) assert.equal((await login(hub, 'admin', printed[0])).status, 200)
  for (const said of [/Add a first server/, /with password/]) assert.equal(hubs.filter((hub) => said.test(hub.firstWords())).length, 1)
  assert.equal(hubs.filter((hub) => /The credentials of the first start are in /.test(hub.output())).length, 1)
})
