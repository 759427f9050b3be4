/* eslint no-template-curly-in-string: off -- configs hold them */
// The life of values that users give for servers: the page on which they give them, and what ends them.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test, type Test } from 'tap'
import { manage, managed, startReplica } from '../fakes/replica.ts'
import {
  admin, as, give, isConnected, keyOf, password, settingsOf, startValueServers, tell, type users
} from '../fakes/value-servers.ts'
import { appFor } from '../helpers/app.ts'
import { at, Session, text, type Json } from '../helpers/client.ts'
import { movingClock } from '../helpers/clock.ts'
import { database } from '../helpers/database.ts'
import { Browser } from '../helpers/oauth.ts'
import { startHub, until, type Hub, type HubOptions } from '../helpers/hub.ts'

type User = typeof users[number]
const values = (given: Json): Json => ({ values: given })
const sessionOf = async (hub: Hub, user: User, name = 'header', capabilities: Json = {}): Promise<Session> =>
  await Session.open(`${hub.url}/mcp/${name}`, { key: keyOf[user], capabilities })
const given = async (hub: Hub, name = 'header'): Promise<unknown> =>
  ((await managed(hub, 'GET', `/servers/${name}/variables`, undefined, admin)) as unknown as Json[]).map(({ username }) => username)
const configOf = async (hub: Hub, name = 'header'): Promise<Json> =>
  (await managed(hub, 'GET', `/servers/${name}`, undefined, admin)).config as Json

/** A gateway for whose server `header` ann and bob have given values, and which is connected. */
async function startGiven (t: Test, options: HubOptions = {}): Promise<{ hub: Hub, seen: string[] }> {
  const { configs: { header }, seen } = await startValueServers(t)
  const hub = await startHub(t, { ...options, settings: settingsOf({ header }) })
  await give(hub, 'ann', { TOKEN: 'canary-of-ann' })
  await give(hub, 'bob', { TOKEN: 'canary-of-bob' })
  await isConnected(hub)
  return { hub, seen }
}

test('the page on which a user gives values', async (t) => {
  const { hub } = await startGiven(t)
  const addressOf = async (user: User): Promise<{ url: string, session: Session, id: unknown }> => {
    const session = await sessionOf(hub, user, 'header', { elicitation: { url: {} } })
    const { error } = await session.request('tools/call', { name: 'tell', arguments: {} })
    assert.equal(error?.code, -32042, error?.message)
    return { url: String(at(error?.data, 'elicitations', 0, 'url')), id: at(error?.data, 'elicitations', 0, 'elicitationId'), session }
  }
  const { url, session, id } = await addressOf('cleo')
  const browser = new Browser(hub.url)
  const page = await browser.get(url)

  await t.test('names the server and the user, and has a form without script', async () => {
    assert.equal(page.status, 200, page.text)
    assert.match(page.text, /header/)
    assert.match(page.text, /the user cleo/)
    assert.match(page.text, /sent to\s*<strong><bdi>http:\/\/127\.0\.0\.1:\d+<\/bdi>/)
    assert.match(page.text, /type="password"/)
    assert.doesNotMatch(page.text, /<script|canary/)
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'; style-src 'sha256-[^;]+; form-action 'self'; frame-ancestors 'none'/)
    assert.equal(page.headers.get('cache-control'), 'no-store')
  })

  await t.test('takes no form of another browser, another origin, another page, or without its token', async () => {
    const form = { ...page.forms[0]?.fields, 'value.TOKEN': 'forged' }
    const path = page.forms[0]?.action ?? ''
    for (const origin of ['https://evil.example', 'null', `${hub.url}.evil.example`]) {
      assert.equal((await browser.post(path, form, { origin })).status, 403, origin)
    }
    const other = new Browser(hub.url)
    assert.equal((await other.post(path, form)).status, 400)
    await other.get(url)
    assert.equal((await other.post(path, form)).status, 400, 'with a cookie of its own')
    for (const csrf of ['', 'x'.repeat(43)]) assert.equal((await browser.post(path, { ...form, csrf })).status, 400)
    for (const ticket of ['x'.repeat(43), 'x']) {
      assert.equal((await browser.post(`/oauth/login/${ticket}`, form)).status, 400)
      assert.equal((await browser.get(`/oauth/login/${ticket}`)).status, 400)
    }
    // A token of one page opens no other.
    const second = new Browser(hub.url)
    const [one, two] = [await second.get(url), await second.get((await (async () => {
      await managed(hub, 'DELETE', '/servers/header/my-variables', undefined, await as(hub, 'bob'))
      return (await addressOf('bob')).url
    })()))]
    assert.equal((await second.post(two.forms[0]?.action ?? '', { ...form, csrf: one.forms[0]?.fields.csrf ?? '' })).status, 400)
    assert.match(await tell(hub, 'cleo'), /set your values/)
    await give(hub, 'bob', { TOKEN: 'canary-of-bob' })
  })

  await t.test('says what is wrong with a value, without showing it', async () => {
    const wrong = await browser.submit(page, { 'value.TOKEN': 'wrong→value' })
    assert.equal(wrong.status, 400)
    assert.match(wrong.text, /contains characters that are not allowed in a header/)
    assert.doesNotMatch(wrong.text, /wrong→value/)
    const lacking = await browser.submit(page, { 'value.NOTE': 'first' })
    assert.equal(lacking.status, 400)
    assert.match(lacking.text, /Fill in TOKEN as well; nothing was stored/)
    assert.match((await browser.submit(page, {})).text, /Fill in a value; nothing was stored/)
    const shown = await managed(hub, 'GET', '/servers/header/my-variables', undefined, await as(hub, 'cleo'))
    assert.deepEqual((shown as unknown as Json[]).map(({ isSet }) => isSet), [false, false])
  })

  await t.test('stores them, ends the elicitation, and the next call works', async () => {
    const news = await session.listen()
    const done = await browser.submit(page, { 'value.TOKEN': 'canary-of-cleo', 'value.NOTE': 'first' })
    assert.equal(done.status, 200, done.text)
    assert.match(done.text, /Your values were stored/)
    const told = await news.wait(({ method }) => method === 'notifications/elicitation/complete')
    assert.equal(told.params?.elicitationId, id)
    news.close()
    assert.equal(text(await session.call('tell')), 'Bearer canary-of-cleo first')
    const audited = (await manage(hub, 'GET', '/audit?entity=values', undefined, admin)).text
    assert.match(audited, /"names":\["TOKEN","NOTE"\]/)
    assert.doesNotMatch(audited, /canary/)
  })

  await t.test('is good once: what was stored ends it', async () => {
    const again = await browser.submit(page, { 'value.TOKEN': 'canary-of-another' })
    assert.equal(again.status, 400)
    assert.match(again.text, /was already used/)
    assert.equal((await browser.get(url)).status, 400)
    assert.equal(text(await session.call('tell')), 'Bearer canary-of-cleo first')
    await managed(hub, 'DELETE', '/servers/header/my-variables', undefined, await as(hub, 'cleo'))
    assert.equal((await browser.submit(page, { 'value.TOKEN': 'canary-of-another' })).status, 400, 'also when the values are gone')
  })

  await t.test('ends with values that are given elsewhere, and of two forms at once one is stored', async () => {
    const [first, second] = [await addressOf('cleo'), await addressOf('cleo')]
    assert.equal(second.url, first.url, 'a recent page is told again')
    await give(hub, 'cleo', { NOTE: 'given at the API' })
    assert.equal((await browser.get(first.url)).status, 400)
    const next = await browser.get((await addressOf('cleo')).url)
    assert.equal(next.status, 200, next.text)
    const forms = await Promise.all(['one', 'two', 'three'].map(async (value) => await browser.submit(next, { 'value.TOKEN': value })))
    assert.deepEqual(forms.map(({ status }) => status).sort(), [200, 400, 400])
    await managed(hub, 'DELETE', '/servers/header/my-variables', undefined, await as(hub, 'cleo'))
  })

  await t.test('is gone once the server sends values elsewhere', async () => {
    const { url } = await addressOf('cleo')
    const page = await browser.get(url)
    assert.equal(page.status, 200)
    const config = await configOf(hub)
    await managed(hub, 'PUT', '/servers/header', { config: { ...config, headers: { 'X-Token': '${user.TOKEN}' } } }, admin)
    assert.equal((await browser.get(url)).status, 400)
    assert.equal((await browser.submit(page, { 'value.TOKEN': 'late' })).status, 400)
  })
})

test('the page is good for an hour', async (t) => {
  const { configs: { header } } = await startValueServers(t)
  const forward = movingClock(t)
  const hub = await startHub(t, { settings: settingsOf({ header }) })
  const { error } = await (await sessionOf(hub, 'cleo', 'header', { elicitation: { url: {} } })).request('tools/call', { name: 'tell', arguments: {} })
  const browser = new Browser(hub.url)
  const url = String(at(error?.data, 'elicitations', 0, 'url'))
  forward(3_500_000)
  const page = await browser.get(url)
  assert.equal(page.status, 200, page.text)
  forward(100_001)
  assert.equal((await browser.get(url)).status, 400)
  const late = await browser.submit(page, { 'value.TOKEN': 'late' })
  assert.equal(late.status, 400)
  assert.match(late.text, /or is too old/)
  assert.match(await tell(hub, 'cleo'), /set your values/)
})

test('what the API refuses', async (t) => {
  const { hub } = await startGiven(t)
  const headers = await as(hub, 'bob')
  const put = async (body: unknown, name = 'header'): Promise<number> => (await manage(hub, 'PUT', `/servers/${name}/my-variables`, body, headers)).status
  for (const body of [{}, values({ OTHER: 'x' }), values({ TOKEN: 'a\nb' }), values({ TOKEN: '' }), values({ TOKEN: 1 }), values({ TOKEN: 'a'.repeat(8193) }), values({ TOKEN: keyOf.ann })]) {
    assert.equal(await put(body), 400, JSON.stringify(body))
  }
  assert.equal(await put(values({ TOKEN: 'x' }), 'none'), 404)
  assert.equal(await tell(hub, 'bob'), 'Bearer canary-of-bob no note')
  for (const headers of [{ 'X-${user.TOKEN}': 'x' }, { A: '${user.NONE}' }]) {
    const stored = await manage(hub, 'POST', '/servers', { name: 'bad', config: { url: 'https://h.example/', userVariables: [{ name: 'TOKEN' }], headers } }, admin)
    assert.equal(stored.status, 400, stored.text)
  }
  const made = await managed(hub, 'POST', '/servers', {
    name: 'good', config: { url: 'http://127.0.0.1:9/', isolation: 'shared', userVariables: [{ name: 'TOKEN' }], headers: { A: '${user.TOKEN}' } }
  }, admin)
  assert.equal((made.config as Json).isolation, 'user')
})

test('values stay or go with their server', async (t) => {
  const { hub } = await startGiven(t)
  const change = async (more: Json, newName?: string, name = 'header'): Promise<void> => {
    await managed(hub, 'PUT', `/servers/${name}`, { config: { ...await configOf(hub, name), ...more }, newName }, admin)
  }
  await change({ description: 'other' }, 'renamed')
  assert.deepEqual(await given(hub, 'renamed'), ['ann', 'bob'])
  await isConnected(hub, 'renamed')
  assert.equal(await tell(hub, 'bob', 'renamed'), 'Bearer canary-of-bob no note')
  const stored = async (): Promise<string> => JSON.stringify(JSON.parse(await readFile(hub.settingsPath, 'utf8')).userValues)
  await until(async () => !(await stored()).includes('server:header'), 'the values of the former name stay')
  // A refused renaming leaves nothing behind.
  assert.equal((await manage(hub, 'PUT', '/servers/renamed', { config: {}, newName: 'other' }, admin)).status, 400)
  await change({ url: String((await configOf(hub, 'renamed')).url).replace('/mcp', '/mcp?path') }, undefined, 'renamed')
  assert.deepEqual(await given(hub, 'renamed'), ['ann', 'bob'], 'the origin is the same')
  await change({ headers: { 'X-Note': '${user.TOKEN}' } }, undefined, 'renamed')
  assert.deepEqual(await given(hub, 'renamed'), [])
  assert.match(await tell(hub, 'bob', 'renamed'), /set your values|requires values from its owner/)
  await give(hub, 'bob', { TOKEN: 'canary-again' }, 'renamed')
  const left = async (): Promise<string> => JSON.stringify((JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json).userValues ?? [])
  assert.match(await left(), /user:bob/)
  assert.doesNotMatch(await left(), /user:ann|other/)
  await managed(hub, 'DELETE', '/servers/renamed', undefined, admin)
  await until(async () => !/user:bob/.test(await left()), 'the values of a removed server are still there')
  const headers = { 'X-Note': '${user.TOKEN}' }
  await managed(hub, 'POST', '/servers', { name: 'renamed', config: { url: 'http://127.0.0.1:9/', headers, userVariables: [{ name: 'TOKEN' }] } }, admin)
  assert.deepEqual(await given(hub, 'renamed'), [])
})

test('values go with their user, and a later one of the name inherits none', async (t) => {
  const { hub } = await startGiven(t)
  assert.equal(await tell(hub, 'bob'), 'Bearer canary-of-bob no note')
  await managed(hub, 'POST', '/users', { username: 'root', password: 'Other-12345', isAdmin: true }, admin)
  assert.equal((await manage(hub, 'DELETE', '/users/bob', undefined, admin)).status, 200)
  const stored = async (): Promise<string> => await readFile(hub.settingsPath, 'utf8')
  await until(async () => !/user:bob/.test(await stored()), 'the values of a removed user are still there')
  await managed(hub, 'POST', '/users', { username: 'bob', password }, admin)
  assert.deepEqual(await given(hub), ['ann'])
  const { token: key } = await managed(hub, 'POST', '/auth/keys', { name: 'of the later bob' }, await as(hub, 'bob'))
  const later = await Session.open(`${hub.url}/mcp/header`, { key: String(key) })
  assert.match((await later.request('tools/call', { name: 'tell', arguments: {} })).error?.message ?? '', /set your values/)
  // With its owner gone, the gateway's own connection ends as well.
  assert.equal((await manage(hub, 'DELETE', '/users/ann', undefined, admin)).status, 200)
  await until(async () => (await managed(hub, 'GET', '/servers/header', undefined, admin)).status === 'disconnected', hub.output)
})

test('values given on one replica count on the other', async (t) => {
  const { configs: { header } } = await startValueServers(t)
  const { url, query } = await database(t)
  const one = await startReplica(t, url, { settings: settingsOf({ header }) })
  const other = await startReplica(t, url)
  await managed(one, 'PUT', '/servers/header', { config: { ...await configOf(one), visibility: 'public' } }, admin)
  const answers = async (hub: Hub, user: User, answer: RegExp): Promise<void> => {
    await until(async () => answer.test(await tell(hub, user)), hub.output)
  }
  await answers(other, 'bob', /values/)
  await give(one, 'ann', { TOKEN: 'canary-of-ann' })
  await give(one, 'bob', { TOKEN: 'canary-of-bob' })
  await isConnected(one)
  await isConnected(other)
  await answers(other, 'bob', /canary-of-bob/)
  await give(one, 'bob', { TOKEN: 'canary-changed' })
  await answers(other, 'bob', /canary-changed/)
  assert.doesNotMatch(JSON.stringify([await query('select * from records'), one.output(), other.output()]), /canary-/)
  await managed(other, 'DELETE', '/servers/header/my-variables', undefined, await as(other, 'bob'))
  await answers(one, 'bob', /set your values/)
  await give(other, 'bob', { TOKEN: 'canary-again' })
  await managed(other, 'PUT', '/servers/header', { config: await configOf(other), newName: 'renamed' }, admin)
  assert.equal(await tell(other, 'bob', 'renamed'), 'Bearer canary-again no note')
  await until(async () => /canary-again/.test(await tell(one, 'bob', 'renamed').catch(() => '')), one.output)
  await manage(one, 'DELETE', '/servers/renamed', undefined, admin)
  await until(async () => {
    const left: unknown = await query("select 1 from records where collection = 'userValues' and not sealed is null")
    return Array.isArray(left) && left.length === 0
  }, 'records are left')
})

test('the page of a user shows and stores nothing for another user who is signed in in the browser', async (t) => {
  const { configs: { header } } = await startValueServers(t)
  let log = ''
  const logger = { level: 'warn', stream: { write: (line: string) => { log += line } } }
  const app = await appFor(t, settingsOf({ header }), {}, { logger })
  const hub = { url: await app.listen({ host: '127.0.0.1', port: 0 }), output: () => log } as Hub
  await give(hub, 'ann', { TOKEN: 'canary-of-ann' })
  await isConnected(hub)
  const session = await sessionOf(hub, 'cleo', 'header', { elicitation: { url: {} } })
  const { error } = await session.request('tools/call', { name: 'tell', arguments: {} })
  const url = String(at(error?.data, 'elicitations', 0, 'url'))
  const browser = new Browser(hub.url)
  const page = await browser.get(url)
  assert.match(page.text, /the user cleo/)
  const identify = app.social.identify.bind(app.social)
  app.social.identify = async () => ({ key: 'user:bob', kind: 'user', user: 'bob', username: 'bob', isAdmin: false })
  for (const refused of [await browser.get(url), await browser.submit(page, { 'value.TOKEN': 'canary-of-bob' })]) {
    assert.equal(refused.status, 400)
    assert.match(refused.text, /You are signed in here as bob, and this address is for the user cleo\. Nothing was changed\./)
    assert.equal(refused.forms.length, 0)
  }
  assert.deepEqual(await given(hub), ['ann'])
  app.social.identify = identify
  assert.equal((await browser.submit(page, { 'value.TOKEN': 'canary-of-cleo' })).status, 200)
  assert.deepEqual(await given(hub), ['ann', 'cleo'])
  assert.doesNotMatch(log, /FST_ERR/, 'a page that was sent is not sent again')
})
