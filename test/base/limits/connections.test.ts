// The bound of open connections, and the share of one address.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { test } from 'tap'
import { createTrustedProxyCheck } from '../../../plugins/base/config/trust-proxy.ts'
import { maxConnectionsFrom } from '../../../plugins/base/limits/connections.ts'
import { appFor } from '../../helpers/app.ts'
import { until, type Cleanup } from '../../helpers/hub.ts'
import { dial, type Client } from '../../helpers/sockets.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'

/** One address may take 30 of these; the others are for addresses that hold less than 4. */
const max = 40

interface Gateway { app: FastifyInstance, dial: (from: string, port?: number) => Promise<Client>, log: () => string }

async function gateway (t: Cleanup, env: { TRUST_PROXY?: string } = {}): Promise<Gateway> {
  let log = ''
  const logger = { level: 'warn', stream: { write: (text: string) => { log += text } } }
  const app = await appFor(t, {}, env, { maxConnections: max, logger })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return { app, dial: async (from, port) => await dial(t, app, { from, port }), log: () => log }
}

/** Connections that send nothing. */
async function silent ({ dial }: Gateway, from: string, count: number, port?: number): Promise<Client[]> {
  const clients: Client[] = []
  for (let each = 0; each < count; each++) clients.push(await dial(from, port))
  return clients
}

const open = (clients: readonly Client[]): number => clients.filter(({ socket }) => !socket.closed && !socket.readableEnded).length

async function answers ({ socket, read }: Client): Promise<void> {
  const before = read().length
  socket.write('GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
  await until(() => /HTTP\/1\.1 200/.test(read().slice(before)), 'no answer')
}

/** Begins a request whose body has not arrived. */
const hold = ({ socket }: Client): void => {
  socket.write('POST /api/auth/login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{')
}

test('one address has a share of the connections, and others are served meanwhile', async (t) => {
  const hub = await gateway(t)
  const used = await hub.dial('127.0.0.1')
  const held = await hub.dial('127.0.0.1')
  hold(held)
  const silents = await silent(hub, '127.0.0.1', 3 * max)
  await until(() => hub.app.connections.open === 30 && open(silents) === 29, () => `${hub.app.connections.open}, ${open(silents)}`)
  assert.equal(open(silents.slice(-29)), 29, 'those that were idle for longest are closed')
  const others = await silent(hub, '127.0.0.2', 3)
  for (const other of others) await answers(other)
  assert.equal(open([used]), 0)
  await t.test('a request in flight is never closed', async () => {
    held.socket.write('}')
    await until(() => /HTTP\/1\.1 4\d\d/.test(held.read()), 'no answer')
  })
  await t.test('a connection that was used goes after those that are idle for longer', async () => {
    await silent(hub, '127.0.0.1', 20)
    assert.equal(open([held]), 1)
    await until(() => open(silents) === 9, () => String(open(silents)))
  })
  await t.test('the log says it once a minute', async () => {
    assert.equal(hub.log().split('\n').filter((line) => line.includes('127.0.0.1 has')).length, 1, hub.log())
  })
})

test('where all connections of an address have requests in flight, the new one is closed', async (t) => {
  const hub = await gateway(t)
  const held = await silent(hub, '127.0.0.1', 30)
  held.forEach(hold)
  await until(() => hub.app.connections.open === 30)
  // The gateway has read the heads.
  await answers(await hub.dial('127.0.0.2'))
  const late = await silent(hub, '127.0.0.1', 5)
  await until(() => open(late) === 0, 'the new ones are open')
  assert.equal(open(held), 30)
})

test('the address of a trusted proxy has no share, only the bound for all', async (t) => {
  const hub = await gateway(t, { TRUST_PROXY: '127.0.0.1' })
  const proxied = await silent(hub, '127.0.0.1', max)
  await until(() => hub.app.connections.open === max)
  assert.equal(open(proxied), max)
  await t.test('beyond it, an idle one of the address that holds most goes', async () => {
    await answers(await hub.dial('127.0.0.2'))
    assert.equal(open(proxied), max - 1)
    assert.equal(hub.app.connections.open, max)
  })
})

test('all servers of an app count: for "localhost" Fastify makes a second one with the same handler', async (t) => {
  const hub = await gateway(t)
  const second = createServer()
  for (const handler of hub.app.server.listeners('request').slice(0, 1)) second.on('request', handler as RequestListener)
  second.listen(0, '127.0.0.1')
  await once(second, 'listening')
  t.after(() => { second.close() })
  const { port } = second.address() as AddressInfo
  const silents = await silent(hub, '127.0.0.1', max, port)
  await until(() => hub.app.connections.open === 30 && open(silents) === 30, () => `${hub.app.connections.open}, ${open(silents)}`)
  const [used] = await silent(hub, '127.0.0.2', 1, port)
  assert.ok(used)
  await answers(used)
  await answers(await hub.dial('127.0.0.2'))
})

test('the bound leaves files for others', async () => {
  const of = (files: string): number => maxConnectionsFrom(`Limit  Soft\nMax open files            ${files}                 4096                 files\n`)
  assert.deepEqual(['64', '300', '1024', '1048576', 'unlimited'].map(of), [32, 200, 768, baseLimits.connections.most, baseLimits.connections.most])
  assert.equal(maxConnectionsFrom(undefined), baseLimits.connections.elsewhere)
})

test('TRUST_PROXY says whose address has no share', async () => {
  const table: Array<[string, string, boolean]> = [
    ['', '127.0.0.1', false], ['true', '8.8.8.8', true], ['1', '8.8.8.8', true], ['0', '8.8.8.8', false],
    ['loopback', '127.0.0.9', true], ['loopback', '::1', true], ['loopback', '::ffff:127.0.0.1', true], ['loopback', '10.0.0.1', false],
    ['uniquelocal, 8.8.8.8', '10.2.3.4', true], ['uniquelocal, 8.8.8.8', '8.8.8.8', true], ['uniquelocal, 8.8.8.8', 'fd00::1', true],
    ['10.0.0.0/8', '10.9.9.9', true], ['10.0.0.0/255.0.0.0', '10.9.9.9', true], ['10.0.0.0/255.0.0.0', '11.9.9.9', false],
    ['linklocal', 'fe80::1%eth0', true], ['2001:db8::/32', '2001:db8:1::1', true], ['2001:db8::1', '2001:db8::2', false]
  ]
  for (const [text, address, expected] of table) assert.equal(createTrustedProxyCheck(text)(address), expected, `${text}: ${address}`)
})
