// Servers at addresses that not everybody may reach, and behind redirects, proxies and compression.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { served } from '../../helpers/served.ts'
import { test } from 'tap'
import { gzipSync, brotliCompressSync, constants, createGzip } from 'node:zlib'
import bcrypt from 'bcryptjs'
import { assertPlain, at, connected, failure, Session, settings, text, type Json } from '../../helpers/client.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { proxy, silent } from '../../fakes/listeners.ts'
import { startHub, until, type Hub } from '../../helpers/hub.ts'

const PASSWORD = 'Open-Sesame-1'

/** Somebody at the management API. */
async function login (
  hub: Hub,
  username: string
): Promise<(method: string, route: string, body?: unknown) => Promise<{ status: number; body: unknown; message: string; data: Json }>> {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  const ask = async (method: string, route: string, body?: unknown) => {
    const answer = await fetch(`${hub.url}/api${route}`, {
      method,
      headers: body === undefined ? { 'x-auth-token': headers['x-auth-token'] ?? '' } : headers,
      body: body === undefined ? undefined : JSON.stringify(body)
    })
    const parsed: unknown = await answer.json()
    return { status: answer.status, body: parsed, message: String(at(parsed, 'message') ?? ''), data: (at(parsed, 'data') ?? {}) as Json }
  }
  headers['x-auth-token'] = String(at((await ask('POST', '/auth/login', { username, password: PASSWORD })).body, 'token'))
  return ask
}

const users = (): Json => {
  const password = bcrypt.hashSync(PASSWORD, 4)
  return { users: [{ username: 'admin', password, isAdmin: true }, { username: 'bob', password }] }
}

test('who stored a server last decides what it reaches', async (t) => {
  const secret = await silent(t)
  const upstream = await startUpstream(t)
  const hidden = `http://127.0.0.1:${secret.port}/mcp`
  const first = await served(t, { file: { url: upstream.url, owner: 'bob' } }, users())
  let [admin, bob] = [await login(first, 'admin'), await login(first, 'bob')]
  const onDisk = async (name: string): Promise<Json> =>
    at(JSON.parse(await readFile(first.settingsPath, 'utf8')), 'mcpServers', name) as Json
  const has = async (name: string, status: string, error = /^/): Promise<void> => {
    let record: Json = {}
    await until(
      async () => {
        record = (await admin('GET', `/servers/${name}`)).data
        return record.status === status && error.test(String(record.error))
      },
      () => `${name}: ${JSON.stringify(record)}`
    )
  }
  const refusal =
    /^127\.0\.0\.1 is a loopback address; an address that was not stored by an admin must be public\. OUTBOUND_ALLOW=127\.0\.0\.1 allows this one$/

  await t.test('a user stores what is not public: with a warning, and without a connection', async () => {
    for (const [name, url, why] of [
      ['mine', hidden, /127\.0\.0\.1 is a loopback address/],
      ['named', hidden.replace('127.0.0.1', 'localhost'), /localhost is this machine itself/],
      ['cloud', 'http://169.254.169.254/mcp', /link-local address; the gateway connects to such addresses only if/]
    ] as const) {
      const answer = await bob('POST', '/servers', { name, config: { type: 'streamable-http', url, storedByUser: false } })
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      assert.match(answer.message, why)
      assert.match(answer.message, /will not be connected/)
      assertPlain(answer.message)
      assert.equal(at(answer.data, 'config', 'storedByUser'), undefined)
      await has(name, 'disconnected', why)
    }
    await has('mine', 'disconnected', refusal)
    assert.match(String((await bob('GET', '/servers/mine')).data.error), refusal)
    for (const [who, list] of [
      ['bob', await bob('GET', '/servers')],
      ['admin', await admin('GET', '/servers')]
    ] as const) { assert.ok(!JSON.stringify(list.body).includes('storedByUser'), who) }
    assert.equal((await onDisk('mine')).storedByUser, true)
    const run = await bob('POST', '/tools/call/mine', { toolName: 'x' })
    assert.ok(run.status >= 400, JSON.stringify(run.body))
    assert.equal(secret.connections(), 0)
  })
  await t.test('many at once: each with its warning', async () => {
    const answer = await bob('POST', '/servers/batch', {
      servers: [
        { name: 'batch1', config: { url: hidden } },
        { name: 'batch2', config: { url: 'https://a.example/mcp', enabled: false } }
      ]
    })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    assert.match(String(at(answer.data, 'results', 0, 'message')), /will not be connected: 127\.0\.0\.1 is a loopback address/)
    assert.equal(at(answer.data, 'results', 1, 'message'), undefined)
    await has('batch1', 'disconnected', refusal)
    assert.equal(secret.connections(), 0)
  })
  await t.test('what is public is stored without a word', async () => {
    const answer = await bob('POST', '/servers', { name: 'public', config: { url: 'https://203.0.113.1.example/mcp', enabled: false } })
    assert.equal(answer.status, 200)
    assert.doesNotMatch(answer.message, /will not be connected/)
  })
  await t.test('another owner, another state, a reload, a restart: the mark stays', async () => {
    for (const enabled of [false, true]) assert.equal((await admin('POST', '/servers/mine/toggle', { enabled })).status, 200)
    await has('mine', 'disconnected', refusal)
    assert.equal((await admin('POST', '/servers/mine/reload')).status, 200)
    await has('mine', 'disconnected', refusal)
    assert.equal((await onDisk('mine')).storedByUser, true)
    await first.stop()
    const second = await startHub(t, { folder: first.folder })
    ;[admin, bob] = [await login(second, 'admin'), await login(second, 'bob')]
    await has('mine', 'disconnected', refusal)
    await has('file', 'connected')
    assert.equal(secret.connections(), 0)
  })
  await t.test('a user takes over what an admin stored, and an admin takes it back', async () => {
    assert.equal((await bob('POST', '/servers/file/toggle', { enabled: false })).status, 200)
    assert.equal((await bob('POST', '/servers/file/toggle', { enabled: true })).status, 200)
    await has('file', 'connected')
    const answer = await bob('PUT', '/servers/file', { config: { url: upstream.url, storedByUser: false } })
    assert.equal(answer.status, 200)
    assert.match(answer.message, /will not be connected: 127\.0\.0\.1 is a loopback/)
    await has('file', 'disconnected', refusal)
    const same = await admin('PUT', '/servers/file', { config: { url: upstream.url, storedByUser: false, description: 'an edit' } })
    assert.match(same.message, /will not be connected: 127\.0\.0\.1 is a loopback/, 'an address that is sent back as it was is not written')
    assert.deepEqual(at(await onDisk('file'), 'storedByUser'), ['/url'])
    const back = await admin('PUT', '/servers/file', { config: { url: `${upstream.url}?again`, storedByUser: true } })
    assert.doesNotMatch(back.message, /will not be connected/)
    await has('file', 'connected')
    assert.deepEqual([at(await onDisk('file'), 'storedByUser'), at(await onDisk('file'), 'owner')], [undefined, 'bob'])
  })
  await t.test('a user\'s redirect to what is hidden, and an admin\'s', async (t) => {
    let to = hidden
    let status = 307
    const lure = await startUpstream(t, {
      raw: (_request, response) => { response.writeHead(status, { location: to }).end(); return true }
    })
    for (const kind of ['streamable-http', 'sse', undefined]) {
      for (status of [302, 307]) {
        await admin('DELETE', '/servers/lure')
        assert.equal(
          (
            await admin('POST', '/servers', {
              name: 'lure',
              config: { type: kind, url: lure.url, headers: { authorization: 'Bearer canary' } }
            })
          ).status,
          200
        )
        await has('lure', 'disconnected', /redirects to another origin \(http:\/\/127\.0\.0\.1:\d+\), which is not followed/)
      }
    }
    to = '/elsewhere'
    status = 302
    assert.equal((await admin('PUT', '/servers/lure', { config: { type: 'streamable-http', url: lure.url } })).status, 200)
    await has(
      'lure',
      'disconnected',
      /redirects a POST to http:\/\/127\.0\.0\.1:\d+\/elsewhere in a way that would lose its body \(HTTP 302\): set that address/
    )
    assert.equal(secret.connections(), 0)
  })
  await t.test('OUTBOUND_ALLOW opens it to users', async (t) => {
    const hub = await startHub(t, {
      settings: settings({ theirs: { url: upstream.url, owner: 'bob', storedByUser: true } }, users()),
      env: { OUTBOUND_ALLOW: '127.0.0.0/8' }
    })
    await connected(hub, 1)
    const answer = await (await login(hub, 'bob'))('POST', '/servers', { name: 'mine', config: { url: upstream.url } })
    assert.doesNotMatch(answer.message, /will not be connected/)
    await connected(hub, 2)
  })
})

test('upstreams behind redirects, proxies and compression', async (t) => {
  const way = await proxy(t)
  const straight = await startUpstream(t)
  const moved = await startUpstream(t, {
    raw: (request, response) => {
      if (request.url !== '/mcp' && request.url !== '/first') return false
      response.writeHead(request.url === '/mcp' ? 307 : 308, { location: request.url === '/mcp' ? 'first' : '/second?x=1' }).end()
      return true
    }
  })
  const bomb = gzipSync(Buffer.concat([Buffer.from(': a comment\n\ndata: '), Buffer.alloc(64 * 1024 * 1024, ' ')]))
  const pack = (kind: unknown, answer: string): [string, Buffer] =>
    kind === 'br'
      ? ['br', brotliCompressSync(answer)]
      : kind === 'chain'
        ? ['gzip, gzip', gzipSync(gzipSync(answer))]
        : kind === 'cut' ? ['gzip', gzipSync(answer).subarray(0, -20)] : ['gzip', gzipSync(answer)]
  const packed = await startUpstream(t, {
    tools: [tool('pack'), tool('stream'), tool('bomb'), tool('echo')],
    on: ({ method, params, id, res }) => {
      if (method !== 'tools/call' || params.name === 'echo') return undefined
      const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'as it was' }] } })
      if (params.name === 'pack') {
        const [encoding, body] = pack(at(params, 'arguments', 'kind'), answer)
        res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding }).end(body)
        return 'taken'
      }
      if (params.name === 'bomb') {
        res.writeHead(200, { 'content-type': String(at(params, 'arguments', 'type')), 'content-encoding': 'gzip' }).end(bomb)
        return 'taken'
      }
      res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      const stream = createGzip({ flush: constants.Z_SYNC_FLUSH })
      stream.on('error', () => {}).pipe(res)
      stream.write(': a comment\n\n')
      setImmediate(() => { stream.write(`data: ${answer}\n\n`) })
      return 'taken'
    }
  })
  const hub = await served(t, {
    proxied: { type: 'streamable-http', url: straight.url, proxy: { url: way.url } },
    around: { type: 'streamable-http', url: straight.url, proxy: { url: 'http://127.0.0.1:9', noProxy: '127.0.0.1' } },
    moved: { type: 'streamable-http', url: moved.url },
    packed: { type: 'streamable-http', url: packed.url }
  }, users())
  const session = await Session.open(`${hub.url}/mcp`)

  await t.test('a proxy carries calls and streams', async () => {
    assert.equal(text(await session.call('proxied-echo', { message: 'through' })), 'through')
    assert.equal(text(await session.call('around-echo', { message: 'around' })), 'around')
    const asked = way.asked.length
    assert.ok(asked > 0 && way.asked.every(({ target }) => target === `127.0.0.1:${straight.port}`))
    for (let n = 0; n < 20; n++) await session.call('proxied-echo', { message: 'again' })
    assert.ok(way.asked.length - asked <= 1, 'calls travel in tunnels that stand')
  })
  await t.test('a proxy of a user is refused in words', async () => {
    const bob = await login(hub, 'bob')
    const answer = await bob('POST', '/servers', { name: 'sneaky', config: { url: straight.url, proxy: { url: way.url } } })
    assert.match(answer.message, /"proxy" works only in servers that an admin stored/)
    await until(async () => /"proxy" works only/.test(String((await bob('GET', '/servers/sneaky')).data.error)))
    assert.equal(
      (await bob('POST', '/servers', { name: 'odd', config: { url: 'https://a.example', proxy: { url: 'socks5://x' } } })).status,
      400
    )
  })
  await t.test('redirects of one origin are followed, by calls side by side too', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => text(await session.call('moved-echo', { message: `m${n}` })))
    )
    assert.deepEqual(answers, Array.from({ length: 10 }, (_, n) => `m${n}`))
  })
  await t.test('one compression is undone, more are not', async () => {
    for (const kind of ['gzip', 'br']) assert.equal(text(await session.call('packed-pack', { kind })), 'as it was', kind)
    assert.equal(text(await session.call('packed-stream')), 'as it was')
    for (const kind of ['chain', 'cut']) {
      const refused = await session.request('tools/call', { name: 'packed-pack', arguments: { kind } })
      assert.match(failure(refused), kind === 'chain' ? /content-encoding is not one of gzip, deflate and br/ : /cannot be read/)
    }
  })
  await t.test('a bomb ends as an error, and the gateway goes on', async () => {
    for (const type of ['application/json', 'text/event-stream']) {
      assert.match(failure(await session.request('tools/call', { name: 'packed-bomb', arguments: { type } })), /too large/, type)
    }
    assert.equal(text(await session.call('packed-echo', { message: 'on' })), 'on')
  })
})
