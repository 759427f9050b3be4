import assert from 'node:assert/strict'
import bcrypt from 'bcryptjs'
import { test } from 'tap'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'
import { loggedIn, manage, managed, type Answer } from '../../fakes/replica.ts'
import { secret, type Receiver } from '../../fakes/webhook-receiver.ts'
import { at, connected, KEY, OTHER, otherKey, type Json } from '../../helpers/client.ts'
import { base, reach, startEventsHub } from '../../helpers/events-hub.ts'
import { bearerKey, startHub, until, type Hub } from '../../helpers/hub.ts'
import { modernRequest } from '../../helpers/modern-request.ts'
import { Browser, codeFor, form, register, type Tokens } from '../../helpers/oauth.ts'
import { setLimits } from '../../helpers/patient.ts'

async function ask (hub: Hub, method: string, params: Json, { key = KEY, path = '/mcp/pager' } = {}): Promise<{ result: Json, error: Json }> {
  const { headers, body } = modernRequest(method, { params, key })
  const response = await fetch(`${hub.url}${path}`, { method: 'POST', headers, body })
  return await response.json() as { result: Json, error: Json }
}

const subscribing = (url: string, more: Json = {}): Json => ({
  name: 'incident.created', arguments: { severity: 'P1' }, delivery: { mode: 'webhook', url, secret }, ...more
})

const password = 'Same-1234'
const hash = bcrypt.hashSync(password, 4)
/** A user, and a key of hers (OTHER), beside those of the admins. */
const people = (alice: Json = {}): Json => ({
  users: [
    { username: 'admin', password: hash, isAdmin: true }, { username: 'alice', password: hash, ...alice }, { username: 'bob', password: hash }
  ],
  bearerKeys: [bearerKey(), { ...otherKey(), kind: 'user', owner: 'alice' }]
})
const local = { OUTBOUND_ALLOW: '127.0.0.1' }
const terminated = ({ got }: Receiver): Json | undefined => got.find(({ body }) => body.type === 'terminated')?.body

test('verified first, subscribed at the gateway\'s own address, delivered on under the client\'s secret', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t)
  for (const [path, name] of [['/mcp/pager', 'incident.created'], ['/mcp', 'pager-incident.created']] as const) {
    receiver.got.length = 0
    const { result } = await ask(hub, 'events/subscribe', subscribing(receiver.url, { name, ttlMs: 600_000 }), { path })
    assert.match(String(result.id), /^sub_[0-9a-f]{32}$/)
    assert.ok(Date.parse(String(result.refreshBefore)) - Date.now() <= 600_000)
    assert.equal(receiver.got[0]?.body.type, path === '/mcp/pager' ? 'verification' : undefined, 'one verification for a principal and URL')
    const own = [...world.webhooks.values()].at(-1)
    assert.ok(own?.url.startsWith(`${base}/webhooks/events/v1.`))
    assert.notEqual(own?.secret, secret, 'the server never sees the client\'s secret')
    assert.deepEqual([own?.name, own?.args, own?.ttlMs], ['incident.created', { severity: 'P1' }, 600_000])
    assert.deepEqual(await world.raise({ incidentId: 'INC-1' }), world.webhooks.size === 1 ? [202] : [202, 202])
    await until(() => receiver.events().length === world.webhooks.size)
    const delivery = receiver.got.find(({ headers, body }) => headers['x-mcp-subscription-id'] === result.id && body.type === undefined)
    const { cursor, ...event } = delivery?.body ?? {}
    assert.deepEqual(event, { ...world.happened.at(-1), name })
    assert.equal(delivery?.isSigned, true)
    assert.equal(delivery?.headers['webhook-id'], world.happened.at(-1)?.eventId)
    // The cursor of a webhook serves a poll of the same principal on the same route.
    await world.raise({ incidentId: 'INC-2' })
    const polled = await ask(hub, 'events/poll', { name, cursor }, { path })
    assert.deepEqual((polled.result.events as Json[]).map(({ data }) => data), [{ incidentId: 'INC-2' }])
  }
})

test('the server is given one address, whatever the case of its parser', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t)
  const delivery = { mode: 'webhook', url: receiver.url, secret, Url: receiver.url, SECRET: secret, extra: 1 }
  await ask(hub, 'events/subscribe', subscribing(receiver.url, { delivery, Delivery: delivery, Name: 'email.received' }))
  const { params } = world.asked.find(({ method }) => method === 'events/subscribe') ?? {}
  assert.deepEqual(Object.keys(params ?? {}).sort(), ['arguments', 'cursor', 'delivery', 'name'])
  assert.deepEqual(Object.keys(params?.delivery as Json).sort(), ['extra', 'mode', 'secret', 'url'])
  assert.ok(String(at(params, 'delivery', 'url')).startsWith(base))
})

test('a refresh is the same subscription, with both secrets for a while; unsubscribing ends it', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t)
  const first = await ask(hub, 'events/subscribe', subscribing(receiver.url))
  const newer = `whsec_${Buffer.alloc(24, 9).toString('base64')}`
  const refresh = subscribing(receiver.url, { delivery: { mode: 'webhook', url: receiver.url, secret: newer } })
  const again = await ask(hub, 'events/subscribe', refresh)
  assert.equal(again.result.id, first.result.id)
  assert.deepEqual([first.result.deliveryStatus, again.result.deliveryStatus], [undefined, { active: true, lastError: null }])
  assert.equal(world.webhooks.size, 1)
  assert.equal(receiver.got.length, 1, 'verified once')
  await world.raise({})
  await until(() => receiver.events().length === 1)
  assert.equal(String(receiver.got[1]?.headers['webhook-signature']).split(' ').length, 2)
  assert.equal(receiver.got[1]?.isSigned, true, 'the former secret signs, too')

  const stranger = await ask(hub, 'events/unsubscribe', subscribing(receiver.url, { arguments: { severity: 'P2' } }))
  assert.deepEqual([stranger.error.code, stranger.error.data], [-32023, { kind: 'subscription' }])
  assert.deepEqual((await ask(hub, 'events/unsubscribe', subscribing(receiver.url))).error, undefined)
  await until(() => world.webhooks.size === 0, 'the server was not told')
  assert.equal((await ask(hub, 'events/unsubscribe', subscribing(receiver.url))).error.code, -32023)
})

test('a refresh after a rotation of the encryption key gives the server a valid address', async (t) => {
  const [former, newer] = ['a'.repeat(64), 'b'.repeat(64)]
  let { hub, world, receiver } = await startEventsHub(t, { env: { ENCRYPTION_KEY: former } })
  const { result } = await ask(hub, 'events/subscribe', subscribing(receiver.url))
  for (const key of [`${newer},${former}`, newer]) {
    await hub.stop()
    hub = await startHub(t, { folder: hub.folder, env: { BASE_URL: base, ENCRYPTION_KEY: key } })
    await connected(hub, 1)
    if (key !== newer) await until(() => hub.output().includes('No stored secret needs another key'))
  }
  reach(world, hub)
  assert.deepEqual(await world.raise({}), [404], 'an address of the former key')
  assert.equal((await ask(hub, 'events/subscribe', subscribing(receiver.url))).result.id, result.id)
  assert.ok((await world.raise({})).includes(202))
})

test('invalid and unwanted subscriptions are refused, and their servers hear nothing', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t, { more: { users: [], bearerKeys: [bearerKey(), otherKey()] } })
  const refused = async (delivery: Json, code: number, data?: Json, key = KEY): Promise<void> => {
    const { error } = await ask(hub, 'events/subscribe', subscribing('', { delivery: { mode: 'webhook', ...delivery } }), { key })
    assert.equal(error.code, code, JSON.stringify(delivery))
    if (data) assert.deepEqual(error.data, data)
  }
  await refused({ url: receiver.url.replace('https', 'http'), secret }, -32602)
  await refused({ url: 'hook', secret }, -32602)
  await refused({ url: 'https://user:word@a.example/', secret }, -32602)
  await refused({ url: receiver.url }, -32602)
  for (const wrong of ['', 'abc', 'whsec_', `whsec_${Buffer.alloc(23).toString('base64')}`, `whsec_${Buffer.alloc(65).toString('base64')}`, 'whsec_%%%%']) {
    await refused({ url: receiver.url, secret: wrong }, -32602)
  }
  assert.equal(receiver.got.length, 0)
  receiver.answer = (_delivery, response) => { response.end('{"challenge":"another"}') }
  await refused({ url: receiver.url, secret }, -32027, { reason: 'challenge_failed' })
  receiver.answer = (_delivery, response) => { response.writeHead(307, { location: 'https://127.0.0.1:1/' }).end() }
  await refused({ url: receiver.url, secret }, -32027, { reason: 'challenge_failed' })
  receiver.answer = (_delivery, response) => { response.end('x'.repeat(64 * 1024)) }
  await refused({ url: receiver.url, secret }, -32027)
  await refused({ url: 'https://127.0.0.1:9/', secret }, -32027, { reason: 'connection_refused' })
  receiver.answer = undefined
  assert.deepEqual(world.asked.filter(({ method }) => method === 'events/subscribe'), [])

  // Without credentials there are no webhooks.
  const open = await startEventsHub(t, { more: { systemConfig: { routing: { enableBearerAuth: false } } } })
  const { headers, body } = modernRequest('events/subscribe', { params: subscribing(receiver.url) })
  const { authorization: _, ...others } = headers
  const answer = await (await fetch(`${open.hub.url}/mcp/pager`, { method: 'POST', headers: others, body })).json() as Json
  assert.equal(at(answer, 'error', 'code'), -32024)
})

test('without an https address of its own, the gateway offers none', async (t) => {
  const { hub, receiver } = await startEventsHub(t, { env: { BASE_URL: 'http://hub.example' } })
  const { error } = await ask(hub, 'events/subscribe', subscribing(receiver.url))
  assert.deepEqual([error.code, error.data], [-32026, { feature: 'deliveryMode', value: 'webhook' }])
})

test('a private address is reached for admins only', async (t) => {
  const { hub, receiver } = await startEventsHub(t, { more: people() })
  assert.deepEqual((await ask(hub, 'events/subscribe', subscribing(receiver.url), { key: OTHER })).error.data, { reason: 'connection_refused' })
  assert.equal(receiver.got.length, 0)
  assert.equal((await ask(hub, 'events/subscribe', subscribing(receiver.url))).error, undefined)
})

test('forged, old, repeated and large messages at the gateway\'s address', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t)
  await ask(hub, 'events/subscribe', subscribing(receiver.url))
  const [own] = world.webhooks.values()
  if (!own) throw new Error('no webhook')
  const event = { eventId: 'evt_x', name: 'incident.created', timestamp: '2026-02-19T16:00:00Z', data: {} }
  const status = async (webhook: typeof own, body: Json = event, id = 'evt_x', now = Date.now()): Promise<number> =>
    (await world.send(webhook, id, body, { now })).status
  const [head, , text = ''] = own.url.split('.').slice(-3)
  assert.ok(head)
  assert.equal(await status({ ...own, url: `${base}/webhooks/events/nothing` }), 404)
  assert.equal(await status({ ...own, url: own.url.replace(text, `${text.slice(0, -4)}AAAA`) }), 404)
  assert.equal(await status({ ...own, secret }), 401, 'another secret')
  assert.equal(await status(own, event, 'evt_x', Date.now() - 360_000), 401, 'an old message')
  assert.equal(await status(own, event, 'evt_x', Date.now() + 360_000), 401, 'a message from the future')
  assert.equal(await status(own, { ...event, data: { text: 'x'.repeat(300 * 1024) } }), 413)
  const plain = await fetch(own.url.replace(base, hub.url), { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
  assert.equal(plain.status, 401)
  assert.equal(receiver.events().length, 0)
  assert.deepEqual([await status(own), await status(own), await status(own)], [202, 202, 202])
  await until(() => receiver.events().length > 0)
  assert.equal(await status(own, { ...event, eventId: 'evt_y' }, 'evt_y'), 202)
  await until(() => receiver.events().length === 2)
  assert.deepEqual(receiver.events().map(({ eventId }) => eventId), ['evt_x', 'evt_y'], 'each once')
  await ask(hub, 'events/unsubscribe', subscribing(receiver.url))
  assert.equal(await status(own), 410)
})

test('what is not taken is sent again; what is refused for good is in the list of failed ones', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t)
  await ask(hub, 'events/subscribe', subscribing(receiver.url))
  let attempts = 0
  receiver.answer = (_delivery, response) => { response.writeHead(++attempts === 1 ? 503 : 204).end() }
  await world.raise({ incidentId: 'INC-1' })
  await until(() => attempts === 2, 'there was no second attempt')
  assert.equal(receiver.got.every(({ isSigned }) => isSigned), true)
  receiver.answer = (_delivery, response) => { response.writeHead(410).end() }
  await world.raise({ incidentId: 'INC-2' })
  const failed = async (): Promise<Json[]> => await managed(hub, 'GET', '/events/failed') as unknown as Json[]
  await until(async () => (await failed()).length === 1)
  // A refresh tells its client how its messages fare.
  const statusOf = async (): Promise<Json> => (await ask(hub, 'events/subscribe', subscribing(receiver.url))).result.deliveryStatus as Json
  const { lastDeliveryAt, failedSince, ...others } = await statusOf()
  assert.deepEqual(others, { active: true, lastError: 'http_4xx' })
  assert.ok(Date.parse(String(lastDeliveryAt)) <= Date.parse(String(failedSince)))
  receiver.answer = undefined
  await world.raise({ incidentId: 'INC-3' })
  await until(async () => (await statusOf()).lastError === null, 'a delivery ends what failed')
  const [one] = await failed()
  assert.deepEqual([one?.server, one?.event, one?.messageId, one?.reason, one?.attempts], ['pager', 'incident.created', 'evt_2', 'http_4xx', 1])
  assert.deepEqual(at(JSON.parse(String(one?.body)), 'data'), { incidentId: 'INC-2' })
})

test('the message by which the server ends a subscription is sent again, too', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t)
  await ask(hub, 'events/subscribe', subscribing(receiver.url))
  const [own] = world.webhooks.values()
  if (!own) throw new Error('no webhook')
  let attempts = 0
  receiver.answer = (_delivery, response) => { response.writeHead(++attempts === 1 ? 503 : 204).end() }
  assert.equal((await world.send(own, 'msg_end', { type: 'terminated', error: { code: -32023, message: 'NotFound' } })).status, 202)
  assert.deepEqual(at((await manage(hub, 'GET', '/events/subscriptions')).body, 'data'), [])
  assert.equal((await world.send(own, 'evt_late', { eventId: 'evt_late', name: 'incident.created' })).status, 410)
  await until(() => attempts === 2, 'there was no second attempt')
  assert.deepEqual(receiver.got.slice(-2).map(({ body, isSigned }) => [body.type, isSigned]), [['terminated', true], ['terminated', true]])
})

test('a subscription ends with the key that made it, with the server\'s visibility, and outlives a restart', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t, { env: local, more: people() })
  const { result } = await ask(hub, 'events/subscribe', subscribing(receiver.url), { key: OTHER })
  await hub.stop()
  const next = await startHub(t, { folder: hub.folder, env: { BASE_URL: base, ...local } })
  await connected(next, 1)
  reach(world, next)
  await world.raise({ incidentId: 'INC-1' })
  await until(() => receiver.events().length === 1, 'the subscription is lost')
  const { config } = await managed(next, 'GET', '/servers/pager') as { config: Json }
  await managed(next, 'PUT', '/servers/pager', { config: { ...config, visibility: 'private' } })
  await until(() => terminated(receiver), 'the client was not told')
  assert.deepEqual(terminated(receiver), { type: 'terminated', error: { code: -32024, message: 'Forbidden', data: { reason: 'Access revoked' } } })
  assert.equal(receiver.got.at(-1)?.headers['x-mcp-subscription-id'], result.id)
  await until(() => world.webhooks.size === 0, 'the server was not told')
  await managed(next, 'PUT', '/servers/pager', { config: { ...config, visibility: 'public' } })

  receiver.got.length = 0
  await until(async () => (await ask(next, 'events/subscribe', subscribing(receiver.url), { key: OTHER })).error === undefined)
  await managed(next, 'DELETE', `/auth/keys/${String(otherKey().id)}`)
  await until(() => terminated(receiver), 'the client was not told')
  await until(() => world.webhooks.size === 0, 'the server was not told')
})

test('a user sees and removes the own ones, an admin all', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t, { env: local, more: people() })
  const { result: { id } } = await ask(hub, 'events/subscribe', subscribing(receiver.url), { key: OTHER })
  const { result: { id: admins } } = await ask(hub, 'events/subscribe', subscribing(receiver.url))
  const as = async (username: string, method: string, path = ''): Promise<Answer> =>
    await manage(hub, method, `/events/subscriptions${path}`, undefined, await loggedIn(hub, username, password))
  const idsOf = async (username: string): Promise<unknown[]> => (at((await as(username, 'GET')).body, 'data') as Json[]).map((each) => each.id)
  const own = await as('alice', 'GET')
  const { expiresAt, ...shown } = (at(own.body, 'data') as Json[])[0] ?? {}
  assert.deepEqual(shown, { id, user: 'alice', server: 'pager', event: 'incident.created', route: '/mcp/pager', url: receiver.url })
  assert.ok(Date.parse(String(expiresAt)) > Date.now())
  assert.doesNotMatch(own.text, /whsec_|severity/)
  assert.deepEqual((await idsOf('admin')).sort(), [id, admins].sort())
  assert.deepEqual(await idsOf('bob'), [])

  assert.equal((await as('bob', 'DELETE', `/${String(id)}`)).status, 404)
  assert.equal((await as('alice', 'DELETE', `/${String(admins)}`)).status, 404)
  assert.equal(world.webhooks.size, 2)
  assert.equal((await as('alice', 'DELETE', `/${String(id)}`)).status, 200)
  await until(() => terminated(receiver), 'the client was not told')
  assert.equal((await as('admin', 'DELETE', `/${String(admins)}`)).status, 200)
  await until(() => world.webhooks.size === 0, 'the server was not told')
  assert.equal((await as('admin', 'DELETE', `/${String(admins)}`)).status, 404)
  assert.deepEqual(await idsOf('admin'), [])
})

test('an admin\'s webhook at a private address is told that its subscription has ended', async (t) => {
  const { hub, receiver } = await startEventsHub(t)
  const { result: { id } } = await ask(hub, 'events/subscribe', subscribing(receiver.url))
  assert.equal((await manage(hub, 'DELETE', `/events/subscriptions/${String(id)}`)).status, 200)
  await until(() => terminated(receiver), 'the client was not told')
})

test('a new user does not see the failed messages of a former one of his name', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t, { env: local, more: people() })
  await ask(hub, 'events/subscribe', subscribing(receiver.url), { key: OTHER })
  receiver.answer = (_delivery, response) => { response.writeHead(410).end() }
  await world.raise({ incidentId: 'INC-1' })
  const failed = async (headers?: Record<string, string>): Promise<Json[]> =>
    at((await manage(hub, 'GET', '/events/failed', undefined, headers)).body, 'data') as Json[]
  await until(async () => (await failed()).length === 1)
  assert.equal((await failed(await loggedIn(hub, 'alice', password))).length, 1)
  assert.equal((await manage(hub, 'DELETE', '/users/alice')).status, 200)
  const again = { username: 'alice', password: 'Open-Sesame-1' }
  assert.equal((await manage(hub, 'POST', '/users', again)).status, 201)
  assert.deepEqual(await failed(await loggedIn(hub, again.username, again.password)), [])
  assert.equal((await failed()).length, 1, 'admins see it')
})

test('a subscription ends when its user is demoted, or removed', async (t) => {
  const changes: Record<string, (hub: Hub) => Promise<Answer>> = {
    demoted: async (hub) => await manage(hub, 'PUT', '/users/alice', { isAdmin: false }),
    removed: async (hub) => await manage(hub, 'DELETE', '/users/alice')
  }
  for (const [name, change] of Object.entries(changes)) {
    // She sees the server as an admin only.
    const { hub, world, receiver } = await startEventsHub(t, { visibility: 'private', more: people({ isAdmin: true }) })
    assert.equal((await ask(hub, 'events/subscribe', subscribing(receiver.url), { key: OTHER })).error, undefined)
    assert.equal((await change(hub)).status, 200, name)
    await until(() => world.webhooks.size === 0, `${name}: the server was not told`)
    const { result: { id }, error } = await ask(hub, 'events/subscribe', subscribing(receiver.url))
    assert.equal(error, undefined, 'the same address, for another principal')
    assert.deepEqual((at((await manage(hub, 'GET', '/events/subscriptions')).body, 'data') as Json[]).map((each) => each.id), [id], name)
  }
})

test('the subscription of an OAuth client ends with its consent, and with the scope for MCP', async (t) => {
  const changes: Record<string, (hub: Hub, clientId: string, alice: Record<string, string>) => Promise<Answer>> = {
    withdrawn: async (hub, clientId, alice) => await manage(hub, 'DELETE', `/oauth/consents/${clientId}`, undefined, alice),
    'no scope': async (hub) => await manage(hub, 'PUT', '/system-config', { oauthServer: { allowedScopes: ['profile'] } })
  }
  for (const [name, change] of Object.entries(changes)) {
    const more = { ...people(), systemConfig: { oauthServer: { enabled: true } } }
    const { hub, world, receiver } = await startEventsHub(t, { env: local, more })
    const browser = new Browser(base, (address) => new URL(`${address.pathname}${address.search}`, hub.url))
    const { client_id: clientId = '' } = await register(hub.url)
    const code = await codeFor(base, { username: 'alice', password }, clientId, {}, browser)
    const { access_token: key } = await (await form(`${hub.url}/oauth/token`, code)).json() as Tokens
    assert.equal((await ask(hub, 'events/subscribe', subscribing(receiver.url), { key })).error, undefined)
    const alice = await loggedIn(hub, 'alice', password)
    const listed = at((await manage(hub, 'GET', '/events/subscriptions', undefined, alice)).body, 'data') as Json[]
    assert.deepEqual(listed.map(({ user }) => user), ['alice'])
    assert.equal((await change(hub, clientId, alice)).status, 200, name)
    await until(() => world.webhooks.size === 0, `${name}: the server was not told`)
    await until(() => terminated(receiver), `${name}: the client was not told`)
  }
})

test('how many a principal has, and how many of its messages wait', async (t) => {
  setLimits(t, extensionsLimits.eventWebhooks, { perPrincipal: 2, waiting: 2 })
  const { hub, world, receiver } = await startEventsHub(t, { env: local, more: people() })
  const subscribe = async (n: number, key = KEY): Promise<Json | undefined> =>
    (await ask(hub, 'events/subscribe', subscribing(`${receiver.url}?${n}`), { key })).error
  assert.deepEqual([await subscribe(1), await subscribe(2)], [undefined, undefined])
  const refused = await subscribe(3)
  assert.deepEqual([refused?.code, refused?.data], [-32025, { limit: 'subscriptions', max: 2 }])
  assert.equal(await subscribe(2), undefined, 'a refresh needs no place')
  assert.equal(await subscribe(3, OTHER), undefined, 'nor has another principal less')
  assert.equal((await ask(hub, 'events/subscribe', subscribing(`${receiver.url}?${'x'.repeat(2_048)}`))).error.code, -32602)
  assert.equal(world.webhooks.size, 3)

  await ask(hub, 'events/unsubscribe', subscribing(`${receiver.url}?2`))
  await until(() => world.webhooks.size === 2)
  const answers: Array<() => void> = []
  receiver.answer = ({ headers }, response) => {
    const answer = (): void => { response.writeHead(204).end() }
    if (headers['x-mcp-subscription-id'] === admins?.id) answers.push(answer)
    else answer()
  }
  const { result: admins } = await ask(hub, 'events/subscribe', subscribing(`${receiver.url}?1`))
  for (let n = 0; n < 2; n++) assert.deepEqual(await world.raise({ n }), [202, 202])
  await until(() => answers.length === 2)
  assert.deepEqual((await world.raise({ n: 2 })).sort(), [202, 503], 'a slow webhook fills its own places only')
  for (const answer of answers.splice(0)) answer()
  await until(async () => (await world.raise({ n: 3 })).every((status) => status === 202), 'places are free again')
  for (const answer of answers.splice(0)) answer()
  receiver.answer = undefined
})
