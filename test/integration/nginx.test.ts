// Two replicas on one PostgreSQL behind nginx (helpers/nginx.ts). Run by `npm run test:system`. test/nightly/nginx.test.ts keeps a stream
// open for longer than a minute.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { test } from 'tap'
import { at, connected, send, Session, settings, text, within } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { asThird, managed, parked, serverNames, shared, spawnReplica, startReplica } from '../fakes/replica.ts'
import { bearerKey, freePort, until, type Hub, type ProcessHub } from '../helpers/hub.ts'
import { behindNginx, example, startNginx } from '../helpers/nginx.ts'

const token = (n: number): string => `thk_${String(n).padStart(64, '0')}`

/** A request from another address of this machine. */
async function from (localAddress: string, url: string, body: unknown): Promise<number> {
  const sent = request(url, { method: 'POST', localAddress, agent: false, headers: { 'content-type': 'application/json' } })
  sent.end(JSON.stringify(body))
  const [response] = await once(sent, 'response') as [{ statusCode: number, resume: () => void }]
  response.resume()
  return response.statusCode
}

test('two replicas behind nginx', async (t) => {
  const { url: dbUrl } = await database(t)
  let running = 0
  /** Lets the tool `count` go on by one step. */
  let step = (): void => {}
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('slow'), tool('count')],
    on: async ({ method, params, notify }) => {
      if (method !== 'tools/call' || params.name === 'echo') return undefined
      running++
      if (params.name === 'slow') return 'never'
      const progressToken = at(params, '_meta', 'progressToken')
      for (let progress = 1; progress <= 4; progress++) {
        const next = new Promise<void>((resolve) => { step = resolve })
        notify('notifications/progress', { progressToken, progress, total: 4 })
        await next
      }
      return { content: [{ type: 'text', text: 'counted' }] }
    }
  })
  const content = settings(
    { fake: { type: 'streamable-http', url: upstream.url, visibility: 'public' } },
    { bearerKeys: [bearerKey(), ...Array.from({ length: 16 }, (_, n) => bearerKey({ id: `key-${n}`, name: `key ${n}`, token: token(n) }))] }
  )
  const ports = [await freePort(), await freePort()] as const
  const options = (port: number) => ({ settings: content, env: { ...behindNginx, PORT: String(port) } })
  /** The one that dies, and is a process therefore. */
  const spawnFirst = async (): Promise<ProcessHub> => await spawnReplica(t, dbUrl, options(ports[0]))
  let first = await spawnFirst()
  const second = await startReplica(t, dbUrl, options(ports[1]))
  const replicas = (): readonly [Hub, Hub] => [first, second]
  for (const replica of replicas()) await connected(replica, 1)
  const { url } = await startNginx(t, ports)

  /** The replica that has a session: asked directly, only that one knows it. */
  const home = async (session: Session, key: string): Promise<number> => {
    const known = await Promise.all(
      replicas().map(
        async (replica) =>
          (await send(`${replica.url}/mcp`, { key, headers: session.headers, body: { jsonrpc: '2.0', id: 'ping', method: 'ping' } })).status
      )
    )
    assert.deepEqual([...known].sort(), [200, 404])
    return known.indexOf(200)
  }
  const ping = async (session: Session): Promise<number> => (await session.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).status
  const sessions = await Promise.all(
    Array.from({ length: 16 }, async (_, n) => ({ key: token(n), session: await Session.open(`${url}/mcp`, { key: token(n) }) }))
  )
  const homes = await Promise.all(sessions.map(async ({ session, key }) => await home(session, key)))
  const at0 = sessions.filter((_, n) => homes[n] === 0)
  const [victim] = at0
  assert.ok(victim)

  await t.test('clients stay with their replica, and both have some', async () => {
    assert.ok(at0.length > 0 && at0.length < 16, `${at0.length} of 16 at the first replica`)
    for (const { session } of [...sessions, ...sessions]) assert.equal(text(await session.call('fake-echo', { message: 'hi' })), 'hi')
    assert.deepEqual(await Promise.all(sessions.map(async ({ session, key }) => await home(session, key))), homes)
  })

  await t.test('what is written through one is seen through both, and news reach a stream', async () => {
    const stream = await victim.session.listen()
    await until(() => stream.comments > 0, 'the first comment of the stream was held back')
    await victim.session.tools()
    await managed({ url }, 'POST', '/servers', { name: 'added', config: { type: 'streamable-http', url: upstream.url } })
    await stream.wait((message) => message.method === 'notifications/tools/list_changed')
    for (const replica of replicas()) await until(async () => (await serverNames(replica)).includes('added'), 'not on both')
    stream.close()
  })

  await t.test('events come one by one, not collected', async () => {
    const stream = await victim.session.start({
      jsonrpc: '2.0',
      id: 'p',
      method: 'tools/call',
      params: { name: 'fake-count', arguments: {}, _meta: { progressToken: 'mine' } }
    })
    // The tool goes on once a client has its last step: an event that is held back would never come.
    for (let progress = 1; progress <= 4; progress++) {
      await stream.wait((message) => message.params?.progress === progress)
      step()
    }
    await within('the answer', stream.done)
  })

  await t.test('failed logins are counted by the address that nginx saw', async () => {
    const body = { username: 'admin', password: 'Wrong-Guess-1' }
    for (let n = 0; n < 10; n++) assert.equal(await from('127.0.0.2', `${url}/api/auth/login`, body), 401)
    assert.equal(await from('127.0.0.2', `${url}/api/auth/login`, { username: 'admin', password: shared.ADMIN_PASSWORD }), 429)
    assert.equal(await from('127.0.0.3', `${url}/api/auth/login`, { username: 'admin', password: shared.ADMIN_PASSWORD }), 200)
  })

  await t.test('a replica dies in the middle of a call: the call is not run twice, and its clients begin anew on the other', async () => {
    running = 0
    const broken = send(`${url}/mcp`, {
      key: victim.key,
      headers: victim.session.headers,
      body: { jsonrpc: '2.0', id: 's', method: 'tools/call', params: { name: 'fake-slow', arguments: {} } }
    })
    const rest = fetch(`${url}/api/tools/call/fake`, {
      method: 'POST',
      headers: { authorization: `Bearer ${victim.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ toolName: 'slow' })
    })
    await until(() => running === 2, 'the calls never ran')
    first.child.kill('SIGKILL')
    assert.equal((await broken.catch(() => ({ status: 502 }))).status, 502)
    assert.equal((await rest).status, 502)
    // nginx may send a request on an idle connection to the dead replica before it has learned that it is closed.
    const statuses = await Promise.all(sessions.map(async ({ session }) => {
      let status = 502
      await until(async () => (status = await ping(session)) !== 502)
      return status
    }))
    assert.deepEqual(statuses, homes.map((where) => where === 0 ? 404 : 200))
    const anew = await Session.open(`${url}/mcp`, { key: victim.key })
    assert.equal(text(await anew.call('fake-echo', { message: 'anew' })), 'anew')
    assert.equal(running, 2, 'a call ran twice')
    await managed({ url }, 'POST', '/servers', { name: 'while-one-is-dead', config: parked() })
  })

  await t.test('it comes back, has missed nothing, and its clients go home', async () => {
    first = await spawnFirst()
    assert.ok((await serverNames(first)).includes('while-one-is-dead'))
    await connected(first, 1)
    await until(async () => {
      const session = await Session.open(`${url}/mcp`, { key: victim.key })
      return await home(session, victim.key) === 0
    }, 'nobody comes home')
  })

  await t.test('with enableSessionRebuild a session outlives its replica, under its id', async () => {
    await asThird(t, dbUrl, ({ system }) => [{ entity: 'systemConfig', value: { ...system, enableSessionRebuild: true } }])
    const session = await Session.open(`${url}/mcp`, { key: victim.key })
    const ping = { key: victim.key, headers: session.headers, body: { jsonrpc: '2.0', id: 1, method: 'ping' } }
    await until(async () => (await send(`${second.url}/mcp`, ping)).status === 200, 'the other does not rebuild')
    assert.equal(await first.stop(), 0)
    assert.equal(text(await session.call('fake-echo', { message: 'goes on' })), 'goes on')
    const stream = await session.listen()
    await managed({ url }, 'DELETE', '/servers/added')
    await stream.wait((message) => message.method === 'notifications/tools/list_changed')
    stream.close()
  })

  await t.test('what is for those inside only is not served outside', async () => {
    const inside = ['/metrics', '/metrics/', '/docs', '/docs/json', '/hub/metrics', '/hub/docs', '/a/b/docs/json', '/hub/%64ocs', '/hub//metrics']
    // The gateway answers 404 to some of these itself, in JSON.
    const isByNginx = async (route: string): Promise<boolean> => /nginx/.test(await (await fetch(`${url}${route}`)).text())
    for (const route of inside) assert.ok(await isByNginx(route), route)
    for (const route of ['/mcp/docs', '/hub/mcp/metrics', '/sse/docs/x', '/api/tools/docs/metrics', '/api/servers/docs', '/metricsx', '/docsx']) {
      assert.ok(!await isByNginx(route), route)
    }
    for (const route of ['/metrics', '/docs', '/docs/json']) assert.equal((await fetch(`${url}${route}`)).status, 404, route)
    assert.equal((await fetch(`${url}/health`)).status, 200)
  })

  await t.test('a stream may be silent for far longer than the 15 s between its comments', async () => {
    assert.match(await example(), /^ *proxy_read_timeout 1h;$/m)
  })
})
