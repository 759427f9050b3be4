// The playground: lists with anybody's eyes that one may choose, calls as oneself, and questions of servers.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { Browser } from '../../helpers/console.ts'
import { admin, alice, key, start } from '../../helpers/doors.ts'
import { until } from '../../helpers/hub.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { startBareModern } from '../../fakes/bare-modern.ts'

const others = { ...key, id: '77777777-7777-4777-8777-777777777777', name: 'of the other server', accessType: 'servers', allowedServers: ['open'] }

void test('a list is seen with the eyes that were chosen, and calls run as the reader', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('<img src=x onerror=alert(1)>')] })
  const { app } = await start(t, {
    settings: {
      users: [admin, alice],
      bearerKeys: [key, others],
      mcpServers: { secret: { url: upstream.url }, open: { url: upstream.url, visibility: 'public' } }
    }
  })
  await until(() => app.upstreams.counts().connected === 2)
  const browser = new Browser(app)
  await browser.signIn('admin')
  const mine = await browser.get('/playground?route=&eyes=self')
  assert.match(mine.text, /secret-echo.*open-echo/s)
  assert.doesNotMatch(mine.text, /<img src=x/)
  const hers = await browser.get('/playground?route=&eyes=user:alice')
  assert.match(hers.text, /open-echo/)
  assert.doesNotMatch(hers.text, /secret-echo/)
  const nobodys = await browser.get('/playground?route=&eyes=nobody')
  assert.match(nobodys.text, /bearer key|credential/i)
  const keys = await browser.get(`/playground?route=open&eyes=key:${others.id}`)
  assert.match(keys.text, />echo</)
  const noted = (await app.audit.list({ limit: 10 })).data.filter(({ entity }) => entity === 'view').map(({ name }) => name)
  assert.deepEqual(noted.sort(), ['key of the other server', 'user alice'])

  const path = '/playground?route=&eyes=user:alice&tool=open-echo'
  const called = await browser.post(path, { mode: 'json', json: '{"message":"hi"}', do: 'call' }, path)
  assert.match(called.text, /Call it as admin/)
  assert.match(called.text, /What it answered/)
  assert.match(called.text, /tools\/call/)
  assert.doesNotMatch(called.text, /thc_/, 'the credential is not shown')

  const user = new Browser(app)
  await user.signIn('alice')
  for (const eyes of ['user:admin', 'user:none', 'other']) {
    const { status, text } = await user.get(`/playground?route=&eyes=${eyes}`)
    assert.ok(status === 404 || status === 400, eyes)
    assert.doesNotMatch(text, /secret-echo/)
  }
  assert.equal((await user.get(`/playground?route=&eyes=key:${others.id}`)).status, 403)
})

void test('a credential that is lent is good within the process alone, and until it is given back', async (t) => {
  const { app, url } = await start(t)
  const { token, end } = app.auth.lend({ username: 'admin' })
  const request = {
    method: 'POST' as const,
    headers: {
      authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream'
    }
  }
  const payload = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const within = async (path: string) => (await app.inject({ ...request, url: path, payload })).statusCode
  assert.notEqual(await within('/mcp'), 401)
  assert.equal((await fetch(`${url}/mcp`, { ...request, body: payload })).status, 401)
  assert.equal((await app.inject({ url: '/api/servers', headers: request.headers })).statusCode, 401)
  end()
  assert.equal(await within('/mcp'), 401)
})

void test('what a server asks is asked in the page, and the answer goes on with the call', async (t) => {
  const server = await startBareModern(t, [{ name: 'greet', inputSchema: { type: 'object', properties: {} } }], async ({ method, params }) => {
    if (method !== 'tools/call') return undefined
    if (params.requestState !== 'its own') {
      const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
      const inputRequests = {
        who: { method: 'elicitation/create', params: { mode: 'form', message: 'Who <b>are</b> you?', requestedSchema } },
        where: { method: 'roots/list' }
      }
      return { result: { resultType: 'input_required', inputRequests, requestState: 'its own' } }
    }
    return { result: { resultType: 'complete', content: [{ type: 'text', text: `answers: ${JSON.stringify(params.inputResponses)}` }] } }
  })
  const { app } = await start(t, { settings: { mcpServers: { s: { url: server.url } } } })
  await until(() => app.upstreams.counts().connected === 1)
  const browser = new Browser(app)
  await browser.signIn('admin')
  const path = '/playground?route=s&eyes=self&tool=greet'
  const asked = await browser.post(path, { mode: 'json', json: '{}', do: 'call' }, path)
  assert.match(asked.text, /Who &lt;b&gt;are&lt;\/b&gt; you\?/)
  const questionIn = (text: string): string => /name="question" value="([^"]+)"/.exec(text)?.[1] ?? ''
  const field = /name="(arg[^"]+)"/.exec(asked.text)?.[1] ?? ''
  const second = await browser.post(path, { question: questionIn(asked.text), answer: 'accept', [field]: 'Ada' }, path)
  assert.match(second.text, /asks for the folders/)
  const done = await browser.post(path, { question: questionIn(second.text), answer: 'accept', text: 'file:///tmp' }, path)
  assert.match(done.text, /Ada/)
  assert.match(done.text, /file:\/\/\/tmp/)
})

void test('the search lab shows what $smart finds, and why', async (t) => {
  const upstream = await startUpstream(t, { tools: [{ ...tool('weather'), description: 'Tells the weather of a city' }, tool('other')] })
  const { app } = await start(t, { settings: { mcpServers: { s: { url: upstream.url } } } })
  await until(() => app.upstreams.counts().connected === 1)
  const browser = new Browser(app)
  await browser.signIn('admin')
  const { status, text } = await browser.get('/search-lab?query=weather+tomorrow&route=')
  assert.equal(status, 200)
  assert.match(text, /s-weather/)
  assert.match(text, /name: weather/)
})
