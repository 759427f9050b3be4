// The management API from outside, on one gateway; api/ has its routes one by one, access/ who may ask them.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import bcrypt from 'bcryptjs'
import { startUpstream } from '../fakes/fault-http.ts'
import { at, Session, settings, text, type Json, type Message } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { PASSWORD, STDIO, ask, Api, fine, refused } from '../helpers/management-client.ts'

test('the management API', async (t) => {
  const fake = await startUpstream(t)
  const hub = await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD } })
  const admin = await Api.login(hub)
  const url = `${hub.url}/mcp`
  await admin.add('fake', { type: 'streamable-http', url: fake.url, description: 'the fake one' })
  await admin.has('fake', 'connected')

  await t.test('servers: names', async () => {
    const config = { url: fake.url, enabled: false }
    for (const name of [
      ' lead', 'trail ', 'a\u0000b', 'a\nb', '😀', 'a?b', 'a%b', 'a#b', 'a\\b', '<b>', {}, undefined, 'constructor', 'prototype',
      'hasOwnProperty', 'valueOf', 'isPrototypeOf', 'openapi', 'servers', 'stats', 'batch', 'group', 'groups', 'mcp', 'sse',
      'messages', 'api', 'oauth', 'tools', 'prompts', 'resources'
    ]) refused(await admin.ask('POST', '/servers', { name, config }), 400, JSON.stringify(name))
    const id = await admin.ask('POST', '/servers', { name: '33333333-3333-4333-8333-33333333333A', config })
    refused(id, 400)
    assert.equal(at(id.body, 'message'), '"name" must not look like an id')
    for (const name of ['a', '10', 'with inner space', 'Größe.1_2-3', '日本語', 'x'.repeat(128), 'é'.normalize('NFC')]) {
      assert.equal((await admin.add(name, config)).name, name)
      assert.equal((await admin.server(name)).name, name)
      const gone = await admin.ask('DELETE', `/servers/${encodeURIComponent(name)}`)
      fine(gone)
      assert.ok(!('data' in (gone.body as Json)), gone.text)
      refused(await admin.ask('GET', `/servers/${encodeURIComponent(name)}`), 404)
    }
    refused(await admin.ask('DELETE', '/servers/nope'), 404)
  })

  await t.test('servers: what is no config', async () => {
    const before = await readFile(hub.settingsPath, 'utf8')
    for (const config of [
      undefined, null, [], 'text', 7, {}, { type: 'carrier-pigeon', url: fake.url }, { type: 'stdio' },
      { type: 'stdio', url: fake.url }, { type: 'sse' }, { type: 'streamable-http', command: 'node' },
      { type: 'stdio', command: 7 }, { type: 'stdio', command: '' }, { command: 'node', args: '--version' },
      { command: 'node', args: [7] }, { command: 'node', env: { A: {} } }, { command: 'node', env: [] }, { url: 7 },
      { url: 'not a url' }, { url: '' }, { url: fake.url, headers: { a: {} } }, { url: fake.url, headers: 'a: b' },
      { url: fake.url, visibility: 'everyone' }, { url: fake.url, enabled: 'yes' },
      { url: fake.url, keepAliveInterval: 'often' }, { url: fake.url, isolation: 'none' },
      { url: fake.url, options: { timeout: 'long' } }, { url: fake.url, passthroughHeaders: 'x-a' }, { url: fake.url, passthroughHeaders: [7] },
      { url: fake.url, sharedWithUsers: 'bob' }, { url: fake.url, description: 7 }
    ]) {
      refused(await admin.ask('POST', '/servers', { name: 'bad', config }), 400, JSON.stringify(config))
      refused(await admin.put('fake', config), 400, JSON.stringify(config))
    }
    assert.equal(await readFile(hub.settingsPath, 'utf8'), before)
    refused(await admin.ask('GET', '/servers/bad'), 404)
    assert.equal((await admin.server('fake')).status, 'connected')
  })

  await t.test('servers: toggled, its tools go from an open session and come back, with news', async () => {
    const session = await Session.open(url)
    const stream = await session.listen()
    assert.ok((await session.tools()).includes('fake-echo'))
    const isNews = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'
    fine(await admin.ask('POST', '/servers/fake/toggle', { enabled: false }))
    await stream.wait(isNews)
    assert.deepEqual(await session.tools(), [])
    const seen = stream.messages.length
    fine(await admin.ask('POST', '/servers/fake/toggle', { enabled: true }))
    await admin.has('fake', 'connected')
    await until(() => stream.messages.slice(seen).some(isNews), 'no news of the connection')
    assert.equal(text(await session.call('fake-echo', { message: 'back' })), 'back')
    stream.close()
  })

  await t.test('metrics in the format of Prometheus, calls counted by server', async () => {
    const read = async (): Promise<{ text: string, samples: Map<string, number> }> => {
      const reply = await fetch(`${hub.url}/metrics`, { headers: admin.headers })
      assert.equal(reply.status, 200)
      assert.match(String(reply.headers.get('content-type')), /^text\/plain/)
      const body = await reply.text()
      const samples = new Map<string, number>()
      for (const line of body.split('\n')) {
        if (line === '' || line.startsWith('#')) continue
        const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^}]*\})?) (-?[0-9.eE+-]+|nan|[+-]Inf)(?: \d+)?$/i.exec(line)
        assert.ok(match !== null, `no sample: ${line}`)
        samples.set(match[1] ?? '', Number(match[2]))
      }
      return { text: body, samples }
    }
    const before = await read()
    const session = await Session.open(url)
    for (let n = 0; n < 3; n++) fine(await admin.run('fake', 'echo'))
    await session.call('fake-echo')
    const grown = (name: RegExp, by: number, now: Map<string, number>): string[] =>
      [...now].filter(([sample, value]) => name.test(sample) && value - (before.samples.get(sample) ?? 0) === by).map(([sample]) => sample)
    let now = await read()
    await until(
      async () => {
        now = await read()
        return grown(/call\w*(total|count)\{.*"fake"/, 4, now.samples).length > 0
      },
      () => `four calls counted nowhere: ${[...now.samples].filter(([sample]) => sample.includes('"fake"')).join('; ')}`
    )
    assert.ok(grown(/(seconds|duration|ms|latency)\w*_count\{.*"fake"/, 4, now.samples).length > 0, 'no latency')
    for (const topic of [/session/i, /link|connection/i, /upstream|state|status/i, /lag|eventloop|event_loop/i]) {
      assert.match(now.text, topic)
    }
    for (let n = 0; n < 30; n++) {
      await admin.run(`nobody-knows-${n}`, 'echo')
      await admin.run('fake', `nobody-knows-${n}`)
      await session.request('tools/call', { name: `nobody-knows-${n}` })
      await ask(hub, 'GET', `/api/nobody-knows-${n}`)
      await ask(hub, 'GET', `/nobody-knows-${n}`)
    }
    const after = await read()
    assert.ok(!after.text.includes('nobody-knows'), 'what a caller makes up is no label')
    assert.ok(after.samples.size < now.samples.size + 40, `${now.samples.size} became ${after.samples.size} samples`)
  })
})

test('a user who is no admin', async (t) => {
  const mcpServers = {
    shared: { url: 'https://mcp.example.com/mcp', enabled: false, visibility: 'public', owner: 'admin' },
    own: { url: 'https://mcp.example.com/mcp', enabled: false, owner: 'bob' }
  }
  const users = [['admin', PASSWORD], ['bob', 'Bobs-Word-1']].map(([username = '', password = '']) =>
    ({ username, password: bcrypt.hashSync(password, 4), isAdmin: username === 'admin' }))
  const hub = await startHub(t, { settings: settings(mcpServers, { users }) })
  const bob = await Api.login(hub, 'bob', 'Bobs-Word-1')
  const admin = await Api.login(hub)

  await t.test('takes no name that is another\'s but for its case, or an id', async () => {
    const config = { url: 'https://mcp.example.com/mcp', enabled: false }
    for (const name of ['SHARED', 'Own']) {
      for (const answer of [
        await bob.ask('POST', '/servers', { name, config }),
        await bob.ask('POST', '/servers/test', { name, config })
      ]) {
        refused(answer, 400, name)
        assert.match(answer.text, /differs from .* only by case; only an admin/)
      }
    }
    refused(await bob.ask('PUT', '/servers/own', { config, newName: 'Shared' }), 400)
    refused(await bob.ask('POST', '/servers', { name: '33333333-3333-4333-8333-333333333333', config }), 400)
    // Its own name may be written anew, and an admin may do what a user may not.
    await admin.add('bobs', { ...config, owner: 'bob' })
    fine(await bob.ask('PUT', '/servers/bobs', { config, newName: 'BOBS' }))
    fine(await bob.ask('DELETE', '/servers/BOBS'))
    await admin.add('SHARED', config)
    fine(await admin.ask('DELETE', '/servers/SHARED'))
  })

  await t.test('stores nothing that runs a command', async () => {
    for (const config of [STDIO, { type: 'stdio', command: 'id' }]) {
      refused(await bob.ask('POST', '/servers', { name: 'mine', config }), 403, JSON.stringify(config))
      refused(await bob.put('own', config), 403, JSON.stringify(config))
    }
    refused(await admin.ask('GET', '/servers/mine'), 404)
    const stored = await bob.ask('POST', '/servers', { name: 'remote', config: { url: 'https://mcp.example.com/mcp', enabled: false } })
    assert.equal(at(fine(stored), 'config', 'owner'), 'bob')
  })

  await t.test('nor anything of type openapi', async () => {
    refused(
      await bob.ask('POST', '/servers', { name: 'mine', config: { type: 'openapi', url: 'https://api.example.com/openapi.json' } }),
      403
    )
  })

  await t.test('makes keys of its own only', async () => {
    const grab = await bob.ask('POST', '/auth/keys', { name: 'more', kind: 'system', accessType: 'all', owner: 'admin' })
    assert.ok(
      grab.status === 403 || grab.status === 400 || (at(grab.body, 'data', 'kind') === 'user' && at(grab.body, 'data', 'owner') === 'bob'),
      grab.text
    )
  })
})
