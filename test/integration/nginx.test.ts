// Two replicas on one PostgreSQL behind Debian's nginx, with the configuration of examples/nginx-replicas.conf. Run by
// `npm run test:system`; it needs nginx (apt-get install nginx) and starts one of its own, on loopback, from a folder of its own.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { before, test } from 'tap'
import { at, connected, send, Session, settings, sleep, text, within } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { asThird, managed, parked, serverNames, shared, spawnReplica } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { bearerKey, freePort, path, until, type Cleanup, type ProcessHub } from '../helpers/hub.ts'

const timeout = 170_000

before(() => {
  assert.equal(spawnSync('nginx', ['-v']).status, 0, 'these tests need nginx: apt-get install nginx')
})

/** The example as it stands, but for what a test cannot have: ports, certificates, and a folder of its own. */
async function startNginx (t: Cleanup, ports: readonly [number, number]): Promise<string> {
  const folder = await temporaryFolder(t)
  const port = await freePort()
  let site = await readFile(path('examples/nginx-replicas.conf'), 'utf8')
  for (const [from, to] of [
    ['server 127.0.0.1:3001', `server 127.0.0.1:${ports[0]}`],
    ['server 127.0.0.1:3002', `server 127.0.0.1:${ports[1]}`],
    ['listen 443 ssl;', `listen 127.0.0.1:${port};`],
    ['ssl_certificate     /etc/ssl/hub.example.com.pem;', ''],
    ['ssl_certificate_key /etc/ssl/hub.example.com.key;', '']
  ] as const) {
    assert.equal(site.split(from).length, 2, `the example does not say ${from}`)
    site = site.replace(from, to)
  }
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  const user = process.geteuid?.() === 0 ? 'user root;' : ''
  await writeFile(
    join(folder, 'nginx.conf'),
    `${user} worker_processes 2; pid ${folder}/pid; error_log ${folder}/error.log;\nevents {}\nhttp { access_log ` +
    `${folder}/access.log; ${own}\n${site}\n}\n`
  )
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log'), '-g', 'daemon off;'], {
    stdio: ['ignore', 'ignore', 'pipe']
  })
  let said = ''
  child.stderr.on('data', (chunk) => { said += String(chunk) })
  t.after(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const url = `http://127.0.0.1:${port}`
  await until(async () => (await fetch(`${url}/health`)).ok, () => `nginx does not serve: ${said}`)
  return url
}

const token = (n: number): string => `thk_${String(n).padStart(64, '0')}`

/** A request from another address of this machine. */
async function from (localAddress: string, url: string, body: unknown): Promise<number> {
  const sent = request(url, { method: 'POST', localAddress, agent: false, headers: { 'content-type': 'application/json' } })
  sent.end(JSON.stringify(body))
  const [response] = await once(sent, 'response') as [{ statusCode: number, resume: () => void }]
  response.resume()
  return response.statusCode
}

void test('two replicas behind nginx', { timeout }, async (t) => {
  const { url: dbUrl } = await database(t)
  let running = 0
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('slow'), tool('count')],
    on: async ({ method, params, notify }) => {
      if (method !== 'tools/call' || params.name === 'echo') return undefined
      running++
      if (params.name === 'slow') { await sleep(4_000); return { content: [{ type: 'text', text: 'slept' }] } }
      const progressToken = at(params, '_meta', 'progressToken')
      for (let progress = 1; progress <= 4; progress++) {
        notify('notifications/progress', { progressToken, progress, total: 4 })
        await sleep(500)
      }
      return { content: [{ type: 'text', text: 'counted' }] }
    }
  })
  const content = settings(
    { fake: { type: 'streamable-http', url: upstream.url, visibility: 'public' } },
    { bearerKeys: [bearerKey(), ...Array.from({ length: 16 }, (_, n) => bearerKey({ id: `key-${n}`, name: `key ${n}`, token: token(n) }))] }
  )
  const env = { ALLOWED_HOSTS: 'hub.example.com', TRUST_PROXY: '127.0.0.1' }
  const start = async (port: number): Promise<ProcessHub> =>
    await spawnReplica(t, dbUrl, { settings: content, env: { ...env, PORT: String(port) } })
  const ports = [await freePort(), await freePort()] as const
  const replicas = await Promise.all(ports.map(start))
  for (const replica of replicas) await connected(replica, 1)
  const url = await startNginx(t, ports)

  /** The replica that has a session: asked directly, only that one knows it. */
  const home = async (session: Session, key: string): Promise<number> => {
    const known = await Promise.all(
      replicas.map(
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

  // Open all the while: longer than the 60 s after which a proxy that was not told would cut it.
  const listener = await sessions[homes.indexOf(1)]?.session.listen()
  assert.ok(listener)
  const listening = Date.now()

  await t.test('clients stay with their replica, and both have some', async () => {
    t.comment(`${at0.length} of 16 clients at the first replica`)
    assert.ok(at0.length > 0 && at0.length < 16)
    for (let round = 0; round < 5; round++) {
      for (const { session } of sessions) {
        assert.equal(text(await session.call('fake-echo', { message: `round ${round}` })), `round ${round}`)
      }
    }
    assert.deepEqual(await Promise.all(sessions.map(async ({ session, key }) => await home(session, key))), homes)
  })

  await t.test('what is written through one is seen through both, and news reach a stream', async () => {
    const stream = await victim.session.listen()
    await until(() => stream.comments > 0, 'the first comment of the stream was held back')
    await victim.session.tools()
    await managed({ url }, 'POST', '/servers', { name: 'added', config: { type: 'streamable-http', url: upstream.url } })
    await stream.wait((message) => message.method === 'notifications/tools/list_changed')
    for (const replica of replicas) await until(async () => (await serverNames(replica)).includes('added'), 'not on both')
    stream.close()
  })

  await t.test('events come one by one, not collected', async () => {
    const stream = await victim.session.start({
      jsonrpc: '2.0',
      id: 'p',
      method: 'tools/call',
      params: { name: 'fake-count', arguments: {}, _meta: { progressToken: 'mine' } }
    })
    const times: number[] = []
    for (let progress = 1; progress <= 4; progress++) {
      await stream.wait((message) => message.params?.progress === progress)
      times.push(Date.now())
    }
    await within('the answer', stream.done)
    for (let n = 1; n < times.length; n++) {
      assert.ok((times[n] ?? 0) - (times[n - 1] ?? 0) > 200, `collected: ${times.map((time) => time - (times[0] ?? 0)).join()}`)
    }
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
    replicas[0]?.child.kill('SIGKILL')
    assert.equal((await broken.catch(() => ({ status: 502 }))).status, 502)
    assert.equal((await rest).status, 502)
    await sleep(1_000)
    assert.equal(running, 2, 'a call ran twice')
    const statuses = await Promise.all(sessions.map(async ({ session }) => await ping(session)))
    assert.deepEqual(statuses, homes.map((where) => where === 0 ? 404 : 200))
    const anew = await Session.open(`${url}/mcp`, { key: victim.key })
    assert.equal(text(await anew.call('fake-echo', { message: 'anew' })), 'anew')
    await managed({ url }, 'POST', '/servers', { name: 'while-one-is-dead', config: parked() })
  })

  await t.test('it comes back, has missed nothing, and its clients go home', async () => {
    replicas[0] = await start(ports[0])
    const [replica] = replicas
    assert.ok((await serverNames(replica)).includes('while-one-is-dead'))
    await connected(replica, 1)
    await until(async () => {
      const session = await Session.open(`${url}/mcp`, { key: victim.key })
      return await home(session, victim.key) === 0
    }, 'nobody comes home')
  })

  await t.test('with enableSessionRebuild a session outlives its replica, under its id', async () => {
    await asThird(t, dbUrl, ({ system }) => [{ entity: 'systemConfig', value: { ...system, enableSessionRebuild: true } }])
    const session = await Session.open(`${url}/mcp`, { key: victim.key })
    await until(
      async () =>
        (
          await send(`${replicas[1]?.url}/mcp`, {
            key: victim.key,
            headers: session.headers,
            body: { jsonrpc: '2.0', id: 1, method: 'ping' }
          })
        ).status === 200,
      'the other does not rebuild'
    )
    assert.equal(await replicas[0]?.stop(), 0)
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

  await t.test('a stream is open for longer than a minute', async () => {
    await sleep(Math.max(0, 66_000 - (Date.now() - listening)))
    assert.ok(!listener.ended)
    assert.ok(listener.comments >= 4, `${listener.comments} comments`)
    listener.close()
  })
})
