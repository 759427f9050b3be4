// Tools, prompts, resources and templates on their pages: tried as oneself, shown as what they are, overridden and reset.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { Refusal, startUpstream, tool, type Options, type Upstream } from '../../fakes/fault-http.ts'
import { openConnected, type Opened } from '../../helpers/console.ts'
import { until } from '../../helpers/hub.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const hostile = '<script>alert(1)</script>'

async function start (t: Test, options: Options): Promise<Opened & { upstream: Upstream }> {
  const upstream = await startUpstream(t, options)
  return { ...await openConnected(t, { fake: { url: upstream.url } }, {}, { REQUEST_TIMEOUT: '10m' }), upstream }
}
const address = (kind: string, key: string): string => `/servers/fake/${kind}/${encodeURIComponent(key)}`

void test('a prompt is got with its arguments, and each message shows who says it', async (t) => {
  const prompt = { name: 'review', description: hostile, arguments: [{ name: 'code', description: 'What to review', required: true }, { name: 'style' }] }
  const { browser, upstream } = await start(t, {
    prompts: [prompt],
    on: ({ method, params }) => method === 'prompts/get'
      ? { messages: [{ role: 'user', content: { type: 'text', text: `Review ${JSON.stringify(params.arguments)} ${hostile}` } }, { role: 'assistant', content: { type: 'image', data: png, mimeType: 'image/png' } }] }
      : undefined
  })
  assert.match((await browser.get('/servers/fake?view=prompts')).text, /href="\/console\/servers\/fake\/prompts\/review"/)
  const page = await browser.get(address('prompts', 'review'))
  assert.match(page.text, /What to review[\s\S]*name="arg\/code"[\s\S]*style \(optional\)/)
  const got = await browser.post(address('prompts', 'review'), { do: 'call', mode: 'form', 'arg/code': 'x = 1', 'arg/style': '' })
  assert.match(got.text, /user[\s\S]*Review \{&quot;code&quot;:&quot;x = 1&quot;\}[\s\S]*assistant[\s\S]*src="data:image\/png;base64,/)
  assert.ok(!got.text.includes(hostile))
  assert.equal(upstream.count('prompts/get'), 1)
  assert.equal((await browser.get(address('prompts', 'none'))).status, 404)
})

void test('a resource is read and shown as what it is', async (t) => {
  const contents: Record<string, object> = {
    'note://text': { text: `# Title ${hostile}`, mimeType: 'text/markdown' },
    'note://json': { text: '{"a":1}', mimeType: 'application/json' },
    'note://sound': { blob: 'AAAA', mimeType: 'audio/wav' },
    'note://file': { blob: 'AAAAAAAA', mimeType: 'application/pdf' }
  }
  const { browser } = await start(t, {
    resources: [...Object.keys(contents), 'note://gone'].map((uri) => ({ uri, name: uri })),
    on: ({ method, params: { uri } }) => method !== 'resources/read'
      ? undefined
      : uri === 'note://gone' ? new Refusal(-32002, 'It is gone') : { contents: [{ uri, ...contents[String(uri)] }] }
  })
  const read = async (uri: string): Promise<string> => (await browser.post(address('resources', uri), { do: 'call', mode: 'form' })).text
  assert.match(await read('note://text'), /<code># Title &lt;script&gt;/)
  assert.match(await read('note://json'), /&quot;a&quot;: 1/)
  assert.match(await read('note://sound'), /<audio controls src="data:audio\/wav;base64,AAAA"/)
  const file = await read('note://file')
  assert.match(file, /6 bytes of application\/pdf/)
  assert.match(file, /<a href="data:application\/octet-stream;base64,AAAAAAAA" download="file">/)
  assert.match(await read('note://gone'), /banner error[\s\S]*It is gone/)
})

void test('a template is listed, filled in, and read', async (t) => {
  const uriTemplate = 'file:///{folder}/{name}{?line}'
  const { browser, upstream } = await start(t, {
    resources: [],
    resourceTemplates: [{ uriTemplate, name: 'file', title: 'Files', description: hostile }],
    on: ({ method, params: { uri } }) => method === 'resources/read' ? { contents: [{ uri, text: 'of the template' }] } : undefined
  })
  const list = await browser.get('/servers/fake?view=resources')
  assert.ok(list.text.includes(`href="/console${address('templates', uriTemplate)}"`))
  assert.ok(!list.text.includes(hostile))
  assert.match((await browser.get(address('templates', uriTemplate))).text, /for="arg\/folder"[\s\S]*line \(optional\)/)
  const got = await browser.post(address('templates', uriTemplate), { do: 'call', mode: 'form', 'arg/folder': 'a b', 'arg/name': 'c' })
  assert.match(got.text, /of the template/)
  assert.deepEqual(upstream.received.filter(({ message }) => message.method === 'resources/read').map(({ message }) => message.params?.uri), ['file:///a%20b/c'])
  assert.equal((await browser.get(address('templates', 'file:///{other}'))).status, 404)
})

void test('a template with too many variables has no page, and those of a query are optional', async (t) => {
  const many = (count: number): string => `x:${Array.from({ length: count }, (_, at) => `{v${at}}`).join('')}`
  const query = 'x:{a}{?b,c*}{&d}{+e}'
  const { browser } = await start(t, { resources: [], resourceTemplates: [many(100), many(101), query].map((uriTemplate) => ({ uriTemplate, name: 'many' })) })
  const list = await browser.get('/servers/fake?view=resources')
  const isListed = [100, 101].map((count) => list.text.includes(`href="/console${address('templates', many(count))}"`))
  assert.deepEqual(isListed, [true, false])
  const statuses = [(await browser.get(address('templates', many(100)))).status, (await browser.get(address('templates', many(101)))).status]
  assert.deepEqual(statuses, [200, 404])
  const { text } = await browser.get(address('templates', query))
  assert.deepEqual([...text.matchAll(/([a-e]) \(optional\)/g)].map(([, name]) => name), ['b', 'c', 'd'])
  for (const name of ['a', 'e']) assert.ok(text.includes(`for="arg/${name}"`), name)
})

void test('an override stands beside what the server says, and is reset', async (t) => {
  const { app, browser } = await start(t, { prompts: [{ name: 'review', description: 'Of the server' }] })
  const path = address('prompts', 'review')
  assert.match((await browser.get(path)).text, /As the server wrote it/)
  assert.doesNotMatch((await browser.get(path)).text, /Original description/)
  await browser.post(`${path}/override`, { description: 'Of mine' })
  assert.match((await browser.get(path)).text, /Changed here[\s\S]*Of mine<\/textarea>[\s\S]*Original description[\s\S]*Of the server/)
  await browser.post(`${path}/override`, { do: 'off' })
  assert.match((await browser.get(path)).text, /is off: agents do not get it/)
  assert.deepEqual(app.settings.current.servers.get('fake')?.config.prompts, { review: { description: 'Of mine', enabled: false } })
  await browser.post(`${path}/override`, { do: 'on' })
  await browser.post(`${path}/override`, { do: 'reset', description: 'x' })
  assert.doesNotMatch((await browser.get(path)).text, /Original description|is off/)
  assert.equal(app.settings.current.servers.get('fake')?.config.prompts, undefined)
})

void test('a call tells its progress to the script, and then the page', async (t) => {
  const { browser } = await start(t, {
    tools: [tool('slow')],
    on: ({ method, params, notify }) => {
      if (method !== 'tools/call') return undefined
      const { progressToken } = (params._meta ?? {}) as { progressToken?: unknown }
      notify('notifications/progress', { progressToken, progress: 1, total: 2, message: hostile })
      return { content: [{ type: 'text', text: 'done' }] }
    }
  })
  const stream = await browser.post(address('tools', 'slow'), { do: 'call', mode: 'form' }, undefined, { headers: { accept: 'text/event-stream' } })
  assert.match(String(stream.headers['content-type']), /^text\/event-stream/)
  const events = stream.text.trim().split('\n\n').map((event) => /^event: (.*)\ndata: (.*)$/.exec(event)?.slice(1) ?? [])
  assert.deepEqual(events.map(([event]) => event), ['progress', 'page'])
  assert.deepEqual(JSON.parse(events[0]?.[1] ?? ''), { progress: 1, total: 2, message: hostile })
  assert.match((JSON.parse(events[1]?.[1] ?? '') as { html: string }).html, /id="result"[\s\S]*done/)
})

void test('a call whose browser is gone is cancelled at the server', async (t) => {
  const { app, browser, upstream } = await start(t, { tools: [tool('slow')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const body = new URLSearchParams({ _csrf: await browser.csrf('/servers'), do: 'call', mode: 'form' })
  for (const accept of ['text/event-stream', 'text/html']) {
    const controller = new AbortController()
    const { length } = upstream.cancelled
    const calls = upstream.count('tools/call')
    const call = fetch(`${url}/console${address('tools', 'slow')}`, {
      method: 'POST', body, headers: { cookie: browser.cookie, accept }, signal: controller.signal
    }).then(async (answer) => await answer.text())
    await until(() => upstream.count('tools/call') > calls, 'it was never called')
    controller.abort()
    await assert.rejects(call, /abort/)
    await until(() => upstream.cancelled.length > length, 'it was never cancelled')
  }
})
