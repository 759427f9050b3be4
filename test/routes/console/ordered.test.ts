// The pages of guards and quotas: what they show, and what their forms do. They share their parts with the page of rules (rules.test.ts).
import assert from 'node:assert/strict'
import { test } from 'tap'
import { fieldsOf, openConsole } from '../../helpers/console.ts'
import { key } from '../../helpers/doors.ts'

const hostile = '"><script>alert(1)</script>'
const secret = 'a-secret-of-the-webhook'
const noWebhook = { 'webhook.url': '', 'webhook.secret': '', 'webhook.timeoutMs': '', 'webhook.whenAway': 'deny' }
const guard = { name: 'Cards', on: 'results', servers: '', tools: '', detect: 'card', action: 'refuse', ...noWebhook }

void test('a guard that is refused comes back at its field with what was typed and chosen', async (t) => {
  const { app, browser } = await openConsole(t)
  assert.match((await browser.get('/guards')).text, /No guards yet/)
  const typed = { ...guard, name: hostile, 'webhook.url': 'ftp://x', 'webhook.secret': secret, 'webhook.whenAway': 'allow' }
  const { status, text } = await browser.post('/guards', typed)
  assert.equal(status, 400)
  assert.match(text, /id="webhook\.url-problem"/)
  assert.match(text, /value="ftp:\/\/x"/)
  assert.match(text, /name="webhook\.secret" type="password" value="a-secret-of-the-webhook"/)
  for (const chosen of ['results', 'refuse', 'allow']) assert.match(text, new RegExp(`<option value="${chosen}" selected>`), chosen)
  assert.match(text, /name="detect" value="card" checked/)
  assert.doesNotMatch(text, /value="email" checked/)
  assert.doesNotMatch(text, /<script>alert/)
  assert.match((await browser.post('/guards', { ...guard, detect: 'blood' })).text, /id="detect-problem"[\s\S]*detect\.0: must be one of/, 'a part of a value')
  const { detect: _, ...nothing } = guard
  assert.match((await browser.post('/guards', nothing)).text, /value="secrets" autofocus[\s\S]*id="detect-problem"[\s\S]*Must name something to search for/)
  assert.match((await browser.post('/guards', { ...guard, 'webhook.secret': secret })).text, /id="webhook\.url-problem"/, 'a new secret is not dropped')
  assert.match((await browser.post('/guards', { ...guard, 'webhook.url': 'https://x.example', 'webhook.secret': secret, 'webhook.timeoutMs': '1.5' })).text, /id="webhook\.timeoutMs-problem"/)
  assert.deepEqual(app.guards.list(), [])
})

void test('names of tools with a comma stay as they are stored', async (t) => {
  const stored = { id: key.id, name: 'one', on: 'both', tools: ['a,b', 'x y'], detect: ['card'], action: 'mask' }
  const { app, browser } = await openConsole(t, { guards: [stored] })
  const path = `/guards/${key.id}`
  const shown = fieldsOf(await browser.get(path))
  assert.equal((await browser.post(path, { ...shown, detect: 'card', tools: `${shown.tools ?? ''}\nc,d` }, path)).status, 303)
  assert.deepEqual(app.guards.list()[0]?.tools, ['a,b', 'x y', 'c', 'd'])
})

void test('guards are added, changed without their secret, ordered, switched and removed', async (t) => {
  const { app, browser } = await openConsole(t)
  const asks = { ...guard, name: 'Asks', servers: 'crm\r\nmail', 'webhook.url': 'https://hooks.example/x', 'webhook.secret': secret }
  for (const sent of [guard, asks]) assert.equal((await browser.post('/guards', sent)).status, 303)
  const page = await browser.get('/guards')
  assert.match(page.text, /Cards[\s\S]*Results of all servers[\s\S]*refuses cards[\s\S]*Asks[\s\S]*Results of crm, mail[\s\S]*asks hooks\.example/)
  const stored = () => [...app.settings.current.guards.values()]
  const [cards, other] = stored()
  assert.ok(cards && other)
  const path = `/guards/${other.id}`
  const shown = await browser.get(path)
  assert.doesNotMatch(shown.text, new RegExp(secret), 'the stored secret is not shown')
  assert.equal((await browser.post(path, { ...fieldsOf(shown), detect: 'email', name: 'Renamed' }, path)).status, 303)
  assert.deepEqual(stored()[1], { ...other, detect: ['email'], name: 'Renamed', enabled: true })
  await browser.post(`${path}/toggle`, { enabled: 'false' })
  assert.deepEqual(stored()[1], { ...other, detect: ['email'], name: 'Renamed', enabled: false })
  await browser.post(`${path}/move`, { by: 'up' })
  assert.deepEqual(stored().map(({ name }) => name), ['Renamed', 'Cards'])
  await browser.post(path, { ...fieldsOf(await browser.get(path)), detect: 'email', 'webhook.url': '' }, path)
  assert.equal(stored()[0]?.webhook, undefined)
  assert.equal(stored()[0]?.enabled, false, 'a form leaves it off')
  assert.match((await browser.get(`${path}/remove`)).text, /Remove the guard Renamed\?/)
  await browser.post(`${path}/remove`, {})
  assert.deepEqual(stored().map(({ name }) => name), ['Cards'])
})

void test('a quota is about those who are chosen, and says so', async (t) => {
  const { app, browser } = await openConsole(t, { bearerKeys: [{ ...key, name: 'laptop' }], mcpServers: { up: { command: 'node', enabled: false } } })
  const any = { 'target.user': '', 'target.team': '', 'target.key': '', 'target.server': '', 'target.tool': '' }
  const quota = { name: 'Fair', per: 'minute', calls: '', resultTokens: '', ...any }
  const refused = await browser.post('/quotas', { ...quota, 'target.user': 'alice' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /id="calls-problem"[\s\S]*Is required/)
  assert.match(refused.text, /value="alice" selected/)
  assert.match(refused.text, /value="minute" selected/)
  assert.match((await browser.post('/quotas', { ...quota, calls: 'many' })).text, /value="many"[\s\S]*id="calls-problem"/)
  assert.match((await browser.post('/quotas', { ...quota, calls: '1', 'target.tool': 'echo' })).text, /id="target\.server-problem"/)
  assert.equal((await browser.post('/quotas', { ...quota, calls: '0', resultTokens: '50000', 'target.key': key.id, 'target.server': '*' })).status, 303)
  const [stored] = app.quotas.list()
  assert.ok(stored)
  const { id, ...rest } = stored
  assert.deepEqual(rest, {
    name: 'Fair', enabled: true, per: 'minute', calls: 0, resultTokens: 50_000, target: { key: key.id, server: '*' }
  })
  const quotas = (await browser.get('/quotas')).text
  assert.match(quotas, /key laptop, each server[\s\S]*0 calls a minute[\s\S]*50,000 result tokens a minute/)
  assert.doesNotMatch(quotas, />Up<|>Down</, 'their order has no effect')
  const shown = await browser.get(`/quotas/${id}`)
  assert.match(shown.text, new RegExp(`value="${key.id}" selected>laptop`))
  await browser.post(`/keys/${key.id}/remove`, {})
  assert.equal(app.settings.current.keys.size, 0)
  assert.match((await browser.get(`/quotas/${id}`)).text, new RegExp(`value="${key.id}" selected`), 'what is gone stays chosen')
})
