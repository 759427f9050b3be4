// Headers of the caller that go on to a server.
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'tap'
import { RpcError } from '../../protocol/errors.ts'
import {
  digestHeaders, isForwardableHeader, selectPassedHeaders, parsePassthroughHeaders, type PassedHeaders
} from '../../plugins/upstream/links/passthrough.ts'
import {
  KEY, OTHER, Session, connected, initialize, otherKey, send, settings, type Json, type Message
} from '../helpers/client.ts'
import { startUpstream, tool, type Options, type Upstream } from '../fakes/fault-http.ts'
import { loggedIn, manage, type Answer } from '../fakes/replica.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { served } from '../helpers/served.ts'
import { startSse, type SseServer } from '../helpers/wire.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

const ours =
  `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${Buffer.from('{"iss":"tool-hub","sub":"admin"}').toString('base64url')}.c` +
  '2lnbmF0dXJl'
const theirs =
  `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${Buffer.from('{"iss":"elsewhere"}').toString('base64url')}.c2lnbmF0dXJl`

test('passedOn: what of a request goes on', async (t) => {
  await t.test('what never does, whatever is configured', async () => {
    for (const name of [
      'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'proxy-authorization',
      'proxy-authenticate', 'proxy-connection', 'host', 'content-length', 'content-type', 'content-encoding', 'accept',
      'accept-encoding', 'expect', 'cookie', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'last-event-id',
      'x-auth-token', 'x-session-id', 'x-forwarded-for', 'x-forwarded-host', 'forwarded', 'x-real-ip', 'http2-settings',
      '', 'two words', 'a:b', 'ä'
    ]) { assert.ok(!isForwardableHeader(name), name) }
    for (const name of [
      'authorization', 'x-tenant', 'x-api-key', 'accept-language', 'user-agent', 'traceparent', 'x-forward',
      'my_header', 'x-mcp-thing'
    ]) { assert.ok(isForwardableHeader(name), name) }
  })
  await t.test('what is configured in vain is told', async () => {
    assert.deepEqual(
      parsePassthroughHeaders({ passthroughHeaders: ['X-A', 'x-a', 'Cookie', 'X-Set', 'Mcp-Name'], headers: { 'x-SET': '1' } }, true),
      {
        names: ['x-a'],
        warnings: [
          'passthroughHeaders: "cookie" is never forwarded',
          'passthroughHeaders: "x-set" is not forwarded, since "headers" sets it',
          'passthroughHeaders: "mcp-name" is never forwarded'
        ]
      }
    )
    assert.deepEqual(parsePassthroughHeaders({ passthroughHeaders: ['X-A'] }, false).names, [])
    assert.equal(parsePassthroughHeaders({ passthroughHeaders: ['X-A'] }, false).warnings.length, 1)
    assert.deepEqual(parsePassthroughHeaders({ passthroughHeaders: [] }, false), { names: [], warnings: [] })
  })
  await t.test('the values', async () => {
    const table: Array<[string, IncomingHttpHeaders, Record<string, string> | undefined]> = [
      ['as they came', { 'x-a': '1', 'x-b': '', 'x-c': '3' }, { 'x-a': '1', 'x-b': '' }],
      ['nothing', { 'x-c': '3' }, undefined],
      ['lists are joined', { 'x-a': ['1', '2'] }, { 'x-a': '1, 2' }],
      ['for the next hop only', { connection: 'close, X-A', 'x-a': '1', 'x-b': '2' }, { 'x-b': '2' }],
      ['Authorization of somebody else\'s', { authorization: 'Bearer secret' }, { authorization: 'Bearer secret' }],
      ['a token of somebody else\'s', { authorization: `Bearer ${theirs}` }, { authorization: `Bearer ${theirs}` }],
      ['a key of ours', { authorization: `Bearer ${KEY}`, 'x-a': '1' }, { 'x-a': '1' }],
      ['a key of ours, whatever stands around it', { authorization: 'thk_x', 'x-a': 'a, thk_b', 'x-b': 'key=thk_1' }, undefined],
      ['a login token of ours', { authorization: `Bearer ${ours}`, 'x-a': ours }, undefined],
      ['what only looks a little like one', { 'x-a': 'athk_b', 'x-b': '1.2.3' }, { 'x-a': 'athk_b', 'x-b': '1.2.3' }],
      ['Latin-1', { 'x-a': 'caf\u00e9' }, { 'x-a': 'caf\u00e9' }],
      ['as long as may be', { 'x-a': 'y'.repeat(gatewayLimits.passthroughHeader) }, { 'x-a': 'y'.repeat(gatewayLimits.passthroughHeader) }]
    ]
    for (const [says, headers, passed] of table) {
      assert.deepEqual(selectPassedHeaders('s', ['x-a', 'x-b', 'authorization', 'constructor', '__proto__'], headers), passed, says)
    }
    for (const value of ['canary\r\nx-evil: 1', 'canary\n', 'canary\0', 'canary\u0100', `canary${'y'.repeat(gatewayLimits.passthroughHeader)}`]) {
      assert.throws(() => selectPassedHeaders('s', ['x-a'], { 'x-a': value }), (error) =>
        error instanceof RpcError && error.code === -32602 && error.message.includes('"x-a"') && !error.message.includes('canary'))
    }
  })
  await t.test('a digest tells values apart, and does not tell them', async () => {
    assert.equal(digestHeaders({ a: '1' }), digestHeaders({ a: '1' }))
    const digests = [{ a: '1' }, { a: '2' }, { b: '1' }, { a: '1', b: '' }, { a: '1","b":"' }].map((passed) => digestHeaders(passed as PassedHeaders))
    assert.equal(new Set(digests).size, digests.length)
    for (const digest of digests) assert.match(digest, /^[\w-]{43}$/)
  })
})

/** A key as a person may write it into the file. */
const plainKey = 'canary-key-that-a-person-made-up'

const listing = new Set(['ping', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])

/** One call of a session with headers of its own. */
async function call (
  session: Session,
  name: string,
  headers: Record<string, string>,
  id: number | string = Math.random().toString(36)
): Promise<Message> {
  const reply = await session.post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } }, headers)
  const message = reply.messages.find((each) => each.id === id)
  assert.ok(message, reply.body)
  return message
}

/** Calls the tool `echo` of a server by the management API. */
const callByRest = async (hub: Hub, server: string, headers: Record<string, string>): Promise<Answer> =>
  await manage(hub, 'POST', `/tools/call/${server}`, { toolName: 'echo' }, headers)

const valuesOf = (upstream: Upstream, name: string, method = 'tools/call'): unknown[] =>
  upstream.received.filter(({ message }) => message.method === method).map(({ headers }) => headers[name])

interface World { hub: Hub, shared: Upstream, own: Upstream, none: Upstream, sse: SseServer, ann: Session, bob: Session }

async function start (t: Cleanup): Promise<World> {
  const options: Options = {
    resources: [{ uri: 'r://1', name: 'one' }],
    tools: [tool('echo'), tool('slow')],
    on: ({ method, params }) => method === 'tools/call' && params.name === 'slow' ? 'never' : undefined
  }
  const [shared, own, none] = [await startUpstream(t, options), await startUpstream(t, options), await startUpstream(t)]
  const sse = await startSse(t)
  const passthroughHeaders = ['X-Tenant', 'Authorization', 'Cookie', 'X-Set', 'X-Forwarded-For', 'Mcp-Session-Id']
  const servers = {
    shared: { url: shared.url, passthroughHeaders, headers: { 'X-Set': 'configured' }, keepAliveInterval: 1_000 },
    own: { url: own.url, passthroughHeaders, isolation: 'session' },
    none: { url: none.url },
    events: { type: 'sse', url: sse.url, passthroughHeaders }
  }
  const plainOne = bearerKey({ id: '33333333-3333-4333-8333-333333333333', name: 'plain', token: plainKey })
  const hub = await startHub(t, {
    env: { LOG_LEVEL: 'debug', ADMIN_PASSWORD: 'Adm1n-password!' },
    settings: settings(servers, { bearerKeys: [bearerKey(), otherKey(), plainOne] })
  })
  await connected(hub, 4)
  const ann = await Session.open(`${hub.url}/mcp`)
  const bob = await Session.open(`${hub.url}/mcp`, { key: OTHER })
  return { hub, shared, own, none, sse, ann, bob }
}

/** What is promised, in the order in which it is tried on one gateway. */
const promises: Record<string, (world: World) => Promise<void>> = {
  'the values of one principal never meet another\'s': async ({ hub, shared, own, none, sse, ann, bob }) => {
    const from = async (session: Session, who: string): Promise<void> => {
      const headers = { 'x-tenant': `canary-${who}`, cookie: 'canary-cookie', 'x-set': 'canary-set', 'x-forwarded-for': '192.0.2.1' }
      await Promise.all(Array.from({ length: 20 }, async (_, at) => {
        for (const server of ['shared', 'own', 'events']) {
          assert.ok((await call(session, `${server}-echo`, headers, `${who}${server}${at}`)).result)
        }
      }))
    }
    await Promise.all([from(ann, 'ann'), from(bob, 'bob')])
    // What is the gateway's own, and the connection that it uses, knows nobody's.
    for (const upstream of [shared, own]) {
      const bySession = new Map<string, Set<unknown>>()
      for (const { message, headers, session } of upstream.received) {
        assert.equal(headers.authorization, undefined, 'what authenticated the caller here')
        assert.equal(headers.cookie, undefined)
        assert.equal(headers['x-forwarded-for'], undefined)
        if (listing.has(message.method ?? '')) assert.equal(headers['x-tenant'], undefined, message.method)
        if (session !== undefined) bySession.set(session, (bySession.get(session) ?? new Set()).add(headers['x-tenant']))
      }
      const kinds = [...bySession.values()].map((values) => [...values])
      assert.deepEqual(new Set(kinds.map((values) => values.map(String).sort().join())), new Set(['canary-ann', 'canary-bob', 'undefined']))
      assert.deepEqual([...new Set(valuesOf(upstream, 'x-tenant'))].sort(), ['canary-ann', 'canary-bob'])
    }
    for (const { headers } of shared.received) assert.equal(headers['x-set'], 'configured')
    const byStream = new Map<number, Set<unknown>>()
    for (const { stream, headers } of sse.received) {
      assert.deepEqual([headers.authorization, headers.cookie], [undefined, undefined])
      byStream.set(stream, (byStream.get(stream) ?? new Set()).add(headers['x-tenant']))
    }
    const ofStreams = [...byStream.values()].map((values) => [...values].map(String).join())
    assert.deepEqual(new Set(ofStreams), new Set(['canary-ann', 'canary-bob', 'undefined']))
    for (const { stream, method } of sse.received.filter(({ method }) => listing.has(method))) {
      assert.equal([...(byStream.get(stream) ?? [])].join(), '', method)
    }
    await until(() => shared.count('ping') > 0)
    assert.ok(valuesOf(shared, 'x-tenant', 'ping').every((value) => value === undefined))
    const plainSession = await Session.open(`${hub.url}/mcp`, { key: plainKey })
    for (const server of ['shared', 'own', 'events']) assert.ok((await call(plainSession, `${server}-echo`, {})).result)
    for (const { headers } of [...shared.received, ...own.received, ...sse.received]) {
      assert.equal(headers.authorization, undefined, 'a key that looks like nothing of ours')
    }
    assert.ok(none.received.every(({ headers }) => headers['x-tenant'] === undefined), 'a server that is passed none on')
  },

  'a value that changes within a session: another shared connection; on its own one, that of each request': async ({ hub, shared, own, sse, ann }) => {
    const count = (): number => shared.sessions.size
    const before = count()
    await call(ann, 'shared-echo', { 'x-tenant': 'canary-second' })
    assert.equal(count(), before + 1)
    await call(ann, 'shared-echo', { 'x-tenant': 'canary-second' })
    assert.equal(count(), before + 1)
    const again = await Session.open(`${hub.url}/mcp`)
    await call(again, 'shared-echo', { 'x-tenant': 'canary-second' })
    assert.equal(count(), before + 1, 'another session of this principal, with the same values')
    assert.equal((await again.end()).status, 200)

    const sessions = (): Set<unknown> =>
      new Set(own.received.filter(({ message }) => message.method === 'tools/call').map(({ session }) => session))
    const known = sessions().size
    for (const value of ['canary-1', 'canary-2', '']) {
      await call(ann, 'own-echo', value === '' ? {} : { 'x-tenant': value })
      assert.equal(valuesOf(own, 'x-tenant').at(-1), value === '' ? undefined : value)
    }
    assert.equal(sessions().size, known)

    // While its connection opens, each keeps its own.
    const early = await Session.open(`${hub.url}/mcp`)
    const heard = own.received.length
    await Promise.all(['canary-x', 'canary-y'].map(async (value) => { await call(early, 'own-echo', { 'x-tenant': value }) }))
    assert.deepEqual(
      own.received.slice(heard).filter(({ message }) => message.method === 'tools/call')
        .map(({ headers }) => headers['x-tenant'])
        .sort(),
      ['canary-x', 'canary-y']
    )
    await early.end()

    const streams = (): number => new Set(sse.received.map(({ stream }) => stream)).size
    const open = streams()
    await call(ann, 'events-echo', { 'x-tenant': 'canary-second' })
    assert.equal(streams(), open + 1)
    assert.deepEqual(sse.received.slice(-4).map(({ headers }) => headers['x-tenant']), Array(4).fill('canary-second'))
  },

  'cancelling and subscribing go with them, too': async ({ shared, own, ann }) => {
    const request = ann.post(
      { jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: { name: 'own-slow', arguments: {} } },
      { 'x-tenant': 'canary-slow' }
    )
    await until(() => own.received.some(({ message }) => message.params?.name === 'slow'))
    await call(ann, 'own-echo', { 'x-tenant': 'canary-meanwhile' })
    await ann.notify('notifications/cancelled', { requestId: 'slow' })
    await until(() => own.count('notifications/cancelled') > 0)
    assert.deepEqual(valuesOf(own, 'x-tenant', 'notifications/cancelled'), ['canary-slow'])
    await request
    const subscribed = await ann.post(
      { jsonrpc: '2.0', id: 'sub', method: 'resources/subscribe', params: { uri: 'r://1' } },
      { 'x-tenant': 'canary-sub' }
    )
    assert.equal(subscribed.status, 200)
    assert.ok(subscribed.messages.some(({ result }) => result), subscribed.body)
    assert.deepEqual(
      [...valuesOf(shared, 'x-tenant', 'resources/subscribe'), ...valuesOf(own, 'x-tenant', 'resources/subscribe')],
      ['canary-sub']
    )
    const unsubscribed = await ann.post(
      { jsonrpc: '2.0', id: 'unsub', method: 'resources/unsubscribe', params: { uri: 'r://1' } },
      { 'x-tenant': 'canary-other' }
    )
    assert.ok(unsubscribed.messages.some(({ result }) => result), unsubscribed.body)
    await until(() => shared.count('resources/unsubscribe') + own.count('resources/unsubscribe') === 1)
  },

  'a value that cannot be sent: a refusal that names the header': async ({ hub, ann }) => {
    const long = 'canary'.repeat(2_000)
    const { error } = await call(ann, 'shared-echo', { 'x-tenant': long })
    assert.equal(error?.code, -32602)
    assert.match(error.message, /"x-tenant".*"shared".*longer than 8192 bytes/)
    assert.ok((await call(ann, 'none-echo', { 'x-tenant': long })).result, 'it is nothing to other servers')
    const reply = await callByRest(hub, 'shared', { authorization: `Bearer ${KEY}`, 'x-tenant': long })
    assert.equal(reply.status, 400)
    assert.ok(!reply.text.includes('canary'))
    assert.ok((await ann.post({ jsonrpc: '2.0', id: 'list', method: 'tools/list' }, { 'x-tenant': long })).messages[0]?.result)
  },

  'REST calls': async ({ hub, shared }) => {
    const rest = async (headers: Record<string, string>): Promise<IncomingHttpHeaders> => {
      const before = shared.received.length
      const reply = await callByRest(hub, 'shared', headers)
      assert.equal(reply.status, 200, reply.text)
      const seen = shared.received.slice(before).find(({ message }) => message.method === 'tools/call')
      assert.ok(seen)
      return seen.headers
    }
    const { 'x-auth-token': token = '' } = await loggedIn(hub, 'admin', 'Adm1n-password!')
    const key = await rest({ authorization: `Bearer ${KEY}`, 'x-tenant': 'canary-rest' })
    assert.deepEqual([key['x-tenant'], key.authorization], ['canary-rest', undefined])
    const user = await rest({ 'x-auth-token': token, authorization: 'Bearer canary-upstream', 'x-tenant': 'canary-rest' })
    assert.deepEqual([user['x-tenant'], user.authorization, user['x-auth-token']], ['canary-rest', 'Bearer canary-upstream', undefined])
    assert.equal((await rest({ authorization: `Bearer ${plainKey}` })).authorization, undefined)
    for (const foreign of [`Bearer ${plainKey}`, `Bearer ${token}`, `Bearer ${OTHER}`, 'Bearer thk_revoked']) {
      assert.equal((await rest({ 'x-auth-token': token, authorization: foreign })).authorization, undefined)
    }
  },

  'a session\'s end closes what carried its values': async ({ hub, shared }) => {
    const session = await Session.open(`${hub.url}/mcp`)
    await call(session, 'shared-echo', { 'x-tenant': 'canary-last' })
    const upstream =
      shared.received.find(({ message, headers }) => message.method === 'tools/call' && headers['x-tenant'] === 'canary-last')?.session ??
      ''
    assert.ok(shared.sessions.has(upstream))
    await session.end()
    await until(() => !shared.sessions.has(upstream))
  },

  'what is listed is read for nobody, also for clients that can be asked, and when a list changes': async ({ hub, shared, own }) => {
    const asked = await Session.open(`${hub.url}/mcp`, { capabilities: { sampling: {} }, headers: { 'x-tenant': 'canary-asked' } })
    assert.ok((await asked.tools()).includes('shared-echo'))
    assert.ok((await call(asked, 'shared-echo', {})).result)
    const opened = shared.received.filter(
      ({ message }) => message.method === 'initialize' && (message.params?.capabilities as Json).sampling !== undefined
    )
    assert.deepEqual(opened.map(({ headers }) => headers['x-tenant']), [undefined, 'canary-asked'])
    const lists = own.count('tools/list')
    const mine =
      own.received.find(({ message, headers }) => message.method === 'tools/call' && headers['x-tenant'] === 'canary-ann')?.session ?? ''
    await own.sessions.get(mine)?.notify('notifications/tools/list_changed')
    await until(() => own.count('tools/list') > lists)
    for (const upstream of [shared, own]) {
      for (const { message, headers } of upstream.received) {
        if (listing.has(message.method ?? '')) assert.equal(headers['x-tenant'], undefined, message.method)
      }
    }
    await asked.end()
  },

  'as many values as there are, connections stay bounded': async ({ shared, ann, bob }) => {
    for (let at = 0; at < upstreamLimits.linksPerServer + 6; at++) {
      assert.ok((await call(bob, 'shared-echo', { 'x-tenant': `canary-many-${at}` })).result)
    }
    await until(() => shared.sessions.size <= upstreamLimits.linksPerServer)
    assert.ok((await call(ann, 'shared-echo', { 'x-tenant': 'canary-ann' })).result)
  },

  'what is configured in vain is told, and no value is told anywhere': async ({ hub }) => {
    for (const name of ['cookie', 'x-forwarded-for', 'mcp-session-id']) {
      assert.ok(hub.output().includes(`shared: passthroughHeaders: \\"${name}\\" is never forwarded`), name)
    }
    assert.ok(hub.output().includes('shared: passthroughHeaders: \\"x-set\\" is not forwarded, since \\"headers\\" sets it'))
    const metrics = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text()
    assert.doesNotMatch(`${hub.output()}${metrics}${(await manage(hub, 'GET', '/servers')).text}`, /canary/)
  }
}

test('passthroughHeaders: from the caller to the server, and to nobody else', async (t) => {
  const world = await start(t)
  for (const [says, check] of Object.entries(promises)) await t.test(says, async () => { await check(world) })
})

test('passthroughHeaders: Authorization', async (t) => {
  const upstream = await startUpstream(t)
  const server = { type: 'streamable-http', url: upstream.url, passthroughHeaders: ['Authorization', 'X-Hub-Key', 'X-Other'] }
  const start = async (routing: Json): Promise<Hub> =>
    await served(t, { up: { ...server, visibility: 'public' } }, { systemConfig: { routing } })
  const seen = async (url: string, headers: Record<string, string>): Promise<IncomingHttpHeaders> => {
    const init = await send(url, { key: null, headers, body: initialize() })
    assert.equal(init.status, 200, init.body)
    const reply = await send(url, {
      key: null,
      headers: { ...headers, 'mcp-session-id': init.headers.get('mcp-session-id') ?? '' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'up-echo' } }
    })
    assert.equal(reply.status, 200, reply.body)
    return upstream.received.filter(({ message }) => message.method === 'tools/call').at(-1)?.headers ?? {}
  }

  await t.test('goes on where keys come in another header, which does not', async () => {
    const hub = await start({ bearerAuthHeaderName: 'X-Hub-Key' })
    const {
      authorization,
      'x-hub-key': key,
      'x-other': other
    } = await seen(`${hub.url}/mcp`, { 'x-hub-key': KEY, authorization: 'Bearer upstream', 'x-other': '1' })
    assert.deepEqual([authorization, key, other], ['Bearer upstream', undefined, '1'])
    for (const value of [`Bearer ${KEY}`, `Bearer ${OTHER}`, ours]) {
      assert.equal((await seen(`${hub.url}/mcp`, { 'x-hub-key': KEY, authorization: value })).authorization, undefined, value)
    }
    assert.equal((await callByRest(hub, 'up', { 'x-hub-key': KEY, authorization: 'Bearer upstream-2' })).status, 200)
    const last = upstream.received.filter(({ message }) => message.method === 'tools/call').at(-1)?.headers
    assert.deepEqual([last?.authorization, last?.['x-hub-key']], ['Bearer upstream-2', undefined])
    await hub.stop()
  })

  await t.test('of somebody whom nothing authenticates goes on, unless it looks like ours', async () => {
    const hub = await start({ enableBearerAuth: false })
    assert.equal((await seen(`${hub.url}/mcp`, { authorization: 'Bearer upstream' })).authorization, 'Bearer upstream')
    assert.equal((await seen(`${hub.url}/mcp`, { authorization: 'Bearer thk_old' })).authorization, undefined)
    assert.equal((await seen(`${hub.url}/mcp`, { authorization: `Bearer ${KEY}` })).authorization, undefined, 'a key counts all the same')
    // Nobody is somebody else than nobody: their values do not meet either.
    const bySession = new Map<string, Set<unknown>>()
    await Promise.all(['a', 'b', 'c'].map(async (who) => { await seen(`${hub.url}/mcp`, { authorization: `Bearer ${who}` }) }))
    for (const { headers, session, message } of upstream.received) {
      if (session !== undefined && message.method === 'tools/call') {
        bySession.set(session, (bySession.get(session) ?? new Set()).add(headers.authorization))
      }
    }
    assert.ok([...bySession.values()].every((values) => values.size === 1))
  })
})
