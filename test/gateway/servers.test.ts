// Servers over HTTP that differ from what MCP says, and are served all the same.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { Refusal, startUpstream } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { connected, Session, settings, text } from '../helpers/client.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'
import { served } from '../helpers/served.ts'
import { startSse } from '../helpers/wire.ts'

test('servers that accept a connection and say nothing do not keep others from connecting', async (t) => {
  const silent = await startSse(t, { endpoint: false })
  const good = await startUpstream(t)
  const quiet = ['one', 'two', 'three', 'four']
  const servers = { ...Object.fromEntries(quiet.map((name) => [name, { type: 'sse', url: silent.url }])), good: { url: good.url } }
  const statuses = async (hub: Hub): Promise<unknown[]> => await Promise.all(quiet.map(async (name) => {
    const { status, error } = await managed(hub, 'GET', `/servers/${name}`)
    return error === undefined || error === null ? status : `${String(status)}, with an error`
  }))
  const hub = await startHub(t, { env: { INIT_TIMEOUT: '10m' }, settings: settings(servers) })
  await connected(hub, 1)
  assert.deepEqual(await statuses(hub), quiet.map(() => 'connecting'), 'they are still waited for')
  assert.equal(text(await (await Session.open(`${hub.url}/mcp/good`)).call('echo', { message: 'well' })), 'well')
  await hub.stop()
  const short = await startHub(t, { env: { INIT_TIMEOUT: '1s' }, settings: settings(servers) })
  const failed = new Set<number>()
  await until(async () => {
    for (const [at, status] of (await statuses(short)).entries()) if (status === 'disconnected, with an error') failed.add(at)
    return failed.size === quiet.length
  })
})

test('a server with sessions that answers 404 to GET is not taken for one that has lost its session', async (t) => {
  let gets = 0
  const server = await startUpstream(t, {
    raw: (req, res) => {
      if (req.method !== 'GET') return false
      gets++
      res.writeHead(404, { 'content-type': 'text/html' }).end('Cannot GET /mcp')
      return true
    }
  })
  const hub = await served(t, { noGet: { url: server.url } })
  await until(() => gets > 0)
  const session = await Session.open(`${hub.url}/mcp/noGet`)
  for (let n = 0; n < 4; n++) assert.equal(text(await session.call('echo', { message: `m${n}` })), `m${n}`)
  assert.equal(server.count('initialize'), 1, 'the session was taken for lost')
})

test('a server that refuses the newest version is offered others, first those that it names', async (t) => {
  for (const [says, data, offers] of [['which it knows', { supported: ['2025-03-26'] }, 2], ['nothing', undefined, 3]] as const) {
    await t.test(`it says ${says}`, async (t) => {
      const server = await startUpstream(t, {
        on: ({ method, params }) => method === 'initialize' && params.protocolVersion !== '2025-03-26'
          ? new Refusal(-32602, `Unsupported protocol version: ${String(params.protocolVersion)}`, data)
          : undefined
      })
      const hub = await served(t, { strict: { url: server.url } })
      assert.equal(text(await (await Session.open(`${hub.url}/mcp/strict`)).call('echo', { message: 'well' })), 'well')
      assert.equal(server.count('initialize'), offers)
    })
  }
})

test('a server that has no request to spare for the other era is connected', async (t) => {
  let previous = ''
  const server = await startUpstream(t, {
    on: ({ method }) => {
      const isTooMany = method === 'initialize' && previous === 'server/discover'
      previous = method
      return isTooMany ? new Refusal(-32004, 'Too many requests') : undefined
    }
  })
  const hub = await served(t, { busy: { url: server.url } })
  assert.equal(text(await (await Session.open(`${hub.url}/mcp/busy`)).call('echo', { message: 'well' })), 'well')
  assert.equal(server.count('server/discover'), 1)
})
