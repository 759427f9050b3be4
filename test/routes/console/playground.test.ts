// The playground: lists with anybody's eyes that one may choose, calls as oneself, and questions of servers.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { type Answer, decoded, openConnected, openConsole, signedIn, type Opened } from '../../helpers/console.ts'
import { admin, key, start } from '../../helpers/doors.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { startBareModern } from '../../fakes/bare-modern.ts'

const others = { ...key, id: '77777777-7777-4777-8777-777777777777', name: 'of the other server', accessType: 'servers', allowedServers: ['open'] }

void test('a list is seen with the eyes that were chosen, and calls run as the reader', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('<img src=x onerror=alert(1)>')] })
  const mcpServers = { secret: { url: upstream.url }, open: { url: upstream.url, visibility: 'public' } }
  const { app, browser } = await openConnected(t, mcpServers, { bearerKeys: [key, others] })
  const mine = await browser.get('/playground?route=&eyes=self')
  assert.match(mine.text, /secret-echo.*open-echo/s)
  assert.doesNotMatch(mine.text, /<img src=x/)
  const cost = /4 tools · ([\d,]+) tokens/.exec(mine.text)?.[1]
  assert.equal(/All 4 tools<[^\d]*<span class="numbers nowrap">([\d,]+)/.exec((await browser.get('/overview')).text)?.[1], cost)
  const hers = await browser.get('/playground?route=&eyes=user:alice')
  assert.match(hers.text, /open-echo/)
  assert.doesNotMatch(hers.text, /secret-echo/)
  const nobodys = await browser.get('/playground?route=&eyes=nobody')
  assert.match(nobodys.text, /bearer key|credential/i)
  const keys = await browser.get(`/playground?route=open&eyes=key:${others.id}`)
  assert.match(keys.text, />echo</)
  const noted = (await app.audit.list({ limit: 10 })).data.filter(({ entity }) => entity === 'view').map(({ name }) => name)
  assert.deepEqual(noted.sort(), ['key of the other server', 'user alice'])

  const path = '/playground?route=&eyes=user:alice&item=open-echo'
  const called = await browser.post(path, { mode: 'json', json: '{"message":"hi"}', do: 'call' }, path)
  assert.match(called.text, /Call as admin/)
  assert.match(called.text, />Result</)
  assert.match(called.text, /tools\/call/)
  assert.doesNotMatch(called.text, /thc_/, 'the credential is not shown')

  const user = await signedIn(app, 'alice')
  for (const eyes of ['user:admin', 'user:none', 'other']) {
    const { status, text } = await user.get(`/playground?route=&eyes=${eyes}`)
    assert.ok(status === 404 || status === 400, eyes)
    assert.doesNotMatch(text, /secret-echo/)
  }
  assert.equal((await user.get(`/playground?route=&eyes=key:${others.id}`)).status, 403)
})

void test('the pages of the global route follow each other', async (t) => {
  const upstream = await startUpstream(t, { tools: Array.from({ length: 60 }, (_, at) => tool(`tool-${at}`)) })
  const { browser } = await openConnected(t, { s: { url: upstream.url } })
  const first = await browser.get('/playground?route=&eyes=self')
  const next = decoded(/href="\/console([^"]+)" rel="next"/.exec(first.text)?.[1] ?? '')
  const second = await browser.get(next)
  assert.deepEqual(['s-tool-0', 's-tool-59'].map((name) => [first, second].map(({ text }) => text.includes(`>${name}<`))), [[true, false], [false, true]])
})

void test('a credential that is lent is good within the process alone, and until it is given back', async (t) => {
  const { app, url } = await start(t)
  const { token, revoke: end } = app.auth.issueInternalCredential({ username: 'admin' })
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

/** A gateway with a server that asks two questions, and a browser that is signed in. */
async function startAsking (t: Test): Promise<Opened> {
  const server = await startBareModern(t, [{ name: 'greet', inputSchema: { type: 'object', properties: {} } }], async ({ method, params }) => {
    if (method !== 'tools/call') return undefined
    if (params.requestState !== 'its own') {
      const requestedSchema = { type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' } }, required: ['name'] }
      const inputRequests = {
        who: { method: 'elicitation/create', params: { mode: 'form', message: 'Who <b>are</b> you?', requestedSchema } },
        where: { method: 'roots/list' }
      }
      return { result: { resultType: 'input_required', inputRequests, requestState: 'its own' } }
    }
    return { result: { resultType: 'complete', content: [{ type: 'text', text: `answers: ${JSON.stringify(params.inputResponses)}` }] } }
  })
  return await openConnected(t, { s: { url: server.url } }, { bearerKeys: [key] })
}

const questionIn = (text: string): string => /name="question" value="([^"]+)"/.exec(text)?.[1] ?? ''

void test('what a server asks is asked in the page, and the answer goes on with the call', async (t) => {
  const { browser } = await startAsking(t)
  const path = '/playground?route=s&eyes=self&item=greet'
  const asked = await browser.post(path, { mode: 'json', json: '{}', do: 'call' }, path)
  assert.match(asked.text, /Who &lt;b&gt;are&lt;\/b&gt; you\?/)
  const second = await browser.post(path, { question: questionIn(asked.text), answer: 'accept', 'arg/name': 'Ada' }, path)
  assert.match(second.text, /asks which folders/)
  const done = await browser.post(path, { question: questionIn(second.text), answer: 'accept', text: 'file:///tmp' }, path)
  assert.match(done.text, /Ada/)
  assert.match(done.text, /file:\/\/\/tmp/)
})

void test('more questions than a page holds, or larger ones, are refused, from a form and from a server', async (t) => {
  const { browser } = await startAsking(t)
  const path = '/playground?route=s&eyes=self&item=greet'
  const send = async (count: number, size: number): Promise<Answer> => {
    const open = Array.from({ length: count }, (_, at) => [`q${at}`, { method: 'roots/list', params: { message: 'x'.repeat(size) } }])
    const call = { args: '{}', name: 'none', responses: {}, open }
    return await browser.post(path, { question: Buffer.from(JSON.stringify(call)).toString('base64url'), answer: 'accept' }, path)
  }
  const shown = await send(20, 10)
  assert.deepEqual([shown.status, shown.text.match(/name="question"/g)?.length], [200, 20])
  for (const [count, size, sentence] of [[21, 10, /21 questions are open/], [20, 20_000, /too large for a page/], [1, 1_000_000, /The question is too large/]] as const) {
    const { status, text } = await send(count, size)
    assert.equal(status, 400)
    assert.match(text, sentence)
    assert.ok(text.length < 100_000)
  }
})

void test('a call whose server asks too many questions ends with the reason', async (t) => {
  const server = await startBareModern(t, [{ name: 'greet', inputSchema: { type: 'object', properties: {} } }], async ({ method }) => {
    const inputRequests = Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`q${at}`, { method: 'roots/list' }]))
    return method === 'tools/call' ? { result: { resultType: 'input_required', inputRequests, requestState: 'its own' } } : undefined
  })
  const { browser } = await openConnected(t, { s: { url: server.url } })
  const path = '/playground?route=s&eyes=self&item=greet'
  const { status, text } = await browser.post(path, { mode: 'json', json: '{}', do: 'call' }, path)
  assert.equal(status, 200)
  assert.match(text, /21 questions are open, and a page shows at most 20/)
  assert.doesNotMatch(text, /name="question"/)
})

void test('the search lab shows what $smart finds, and why', async (t) => {
  const upstream = await startUpstream(t, { tools: [{ ...tool('weather'), description: 'Tells the weather of a city' }, tool('other')] })
  const { browser } = await openConnected(t, { s: { url: upstream.url } })
  const { status, text } = await browser.get('/search-lab?query=weather+tomorrow&route=')
  assert.equal(status, 200)
  assert.match(text, /s-weather/)
  assert.match(text, /weather: \d+ %/)
  assert.match(text, /weather: 100 %[\s\S]*\d+ % of its name/)
  const meant = await browser.get('/search-lab?query=wether+of+towns&route=')
  assert.match(meant.text, /weather: \d+ %/, 'as the ranking read it')
})

void test('a call runs with a credential that is pasted, which is asked for again, and neither stored nor shown', async (t) => {
  const { app, browser } = await startAsking(t)
  const path = '/playground?route=s&eyes=self&item=greet'
  const pasted = { mode: 'json', json: '{}', do: 'call', credential: key.token }
  const asked = await browser.post(path, pasted, path)
  assert.match(asked.text, /Who &lt;b&gt;are/)
  const answer = { question: questionIn(asked.text), answer: 'decline' }
  const without = await browser.post(path, answer, path)
  assert.match(without.text, /asks which folders/)
  const second = { question: questionIn(without.text), answer: 'accept', text: 'file:///tmp' }
  // Who is not the caller of before cannot go on with the call.
  assert.doesNotMatch((await browser.post(path, second, path)).text, /answers:/)
  const done = await browser.post(path, { ...second, credential: key.token }, path)
  assert.match(done.text, /answers:/)
  for (const { text } of [asked, without, done]) assert.ok(!text.includes(key.token))
  for (const credential of [`${'thk_'}${'0'.repeat(64)}`, app.auth.createLoginToken(admin)]) {
    const refused = await browser.post(path, { ...pasted, credential }, path)
    assert.match(refused.text, />Error</)
    assert.ok(!refused.text.includes(credential))
  }
  for (const credential of ['two words', 'a\r\nX-Other: b', 'é']) {
    const refused = await browser.post(path, { ...pasted, credential }, path)
    assert.equal(refused.status, 400)
    assert.match(refused.text, /id="credential-call-problem"/)
    assert.ok(!refused.text.includes('X-Other'))
  }
})

void test('arguments that a server wants in headers are sent there', async (t) => {
  const inputSchema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'integer' } } }
  const server = await startBareModern(t, [{ name: 'where', inputSchema }])
  const { browser } = await openConnected(t, { s: { url: server.url } })
  const path = '/playground?route=s&eyes=self&item=where'
  const called = await browser.post(path, { mode: 'form', 'arg/region': 'Köln', 'arg/n': '3', do: 'call' }, path)
  assert.match(called.text, />Result</)
  const call = server.seen.find(({ method }) => method === 'tools/call')
  assert.equal(call?.headers['mcp-param-region'], `=?base64?${Buffer.from('Köln').toString('base64')}?=`)
})

void test('prompts and resources of a route are listed and got', async (t) => {
  const { browser } = await openConsole(t, {
    prompts: [{ id: key.id, name: 'review', description: 'Reviews', template: 'Review {{code}}', arguments: [{ name: 'code', required: true }] }],
    resources: [{ id: key.id, uri: 'note://house/rules', name: 'rules', content: 'Be <b>kind</b>' }]
  })
  const prompts = await browser.get('/playground?route=&eyes=self&kind=prompts')
  const prompt = /href="\/console(\/playground\?[^"]*item=[^"]*)"/.exec(prompts.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  assert.match((await browser.get(prompt)).text, /name="arg\/code"/)
  const got = await browser.post(prompt, { mode: 'form', 'arg/code': 'mine', do: 'call' }, prompt)
  assert.match(got.text, /user[\s\S]*Review mine/)
  const path = '/playground?route=&eyes=self&kind=resources&item=note%3A%2F%2Fhouse%2Frules'
  const read = await browser.post(path, { mode: 'form', do: 'call' }, path)
  assert.match(read.text, /Be &lt;b&gt;kind/)
})

void test('an answer that is refused says why at its field, and keeps what was typed', async (t) => {
  const { browser } = await startAsking(t)
  const path = '/playground?route=s&eyes=self&item=greet'
  const asked = await browser.post(path, { mode: 'json', json: '{}', do: 'call' }, path)
  const refused = await browser.post(path, { question: questionIn(asked.text), answer: 'accept', 'arg/name': 'Ada', 'arg/age': 'old' }, path)
  assert.equal(refused.status, 400)
  assert.match(refused.text, /id="arg\/age-problem"[\s\S]*not a number/)
  assert.match(refused.text, /value="Ada"/)
  const empty = await browser.post(path, { question: questionIn(asked.text), answer: 'accept', 'arg/name': ' ' }, path)
  assert.equal(empty.status, 400)
  assert.match(empty.text, /id="arg\/name-problem"[\s\S]*Enter a text/)
})

void test('a question that no page has made is refused (400)', async (t) => {
  const { browser } = await startAsking(t)
  const path = '/playground?route=s&eyes=self&item=greet'
  const call = { args: '{}', name: 'q', responses: {}, open: [] as unknown[] }
  const forged = [
    'nonsense', 7, { ...call, open: [null] }, { ...call, open: [['q']] }, { ...call, open: [['q', null]] },
    { ...call, open: [['q', { params: {} }]] }, { ...call, args: 'null' }, { ...call, args: '{' }, { ...call, responses: 7 },
    { ...call, open: [['q', { method: 'sampling/createMessage', params: { messages: 7 } }]] },
    { ...call, open: [['q', { method: 'sampling/createMessage', params: { messages: [null] } }]] },
    { ...call, open: [['q', { method: 'elicitation/create', params: { message: {} } }]] }
  ]
  for (const value of forged) {
    const question = Buffer.from(JSON.stringify(value)).toString('base64url')
    const { status, text } = await browser.post(path, { question, answer: 'accept' }, path)
    assert.equal(status, 400, JSON.stringify(value))
    assert.match(text, /does not belong to this page/)
  }
})

void test('the progress of a call is told as it comes, and then its page', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('slow')],
    on: ({ method, params, notify }) => {
      if (method !== 'tools/call') return undefined
      const { progressToken } = params._meta as { progressToken?: string }
      notify('notifications/progress', { progressToken, progress: 1, total: 2, message: 'half <b>done</b>' })
      return { content: [{ type: 'text', text: 'all of it' }] }
    }
  })
  const { browser } = await openConnected(t, { s: { url: upstream.url } })
  const path = '/playground?route=s&eyes=self&item=slow'
  const { text } = await browser.post(path, { mode: 'json', json: '{}', do: 'call' }, path, { headers: { accept: 'text/event-stream' } })
  const [progress = '', page = ''] = text.split('\n\n')
  assert.match(progress, /^event: progress\ndata: .*"progress":1,"total":2,"message":"half <b>done<\/b>"/)
  assert.match(page, /^event: page\n.*all of it/s)
  assert.match(page, /notifications\/progress/, 'and among the messages')
})
