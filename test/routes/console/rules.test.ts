// The pages of rules and approvals: what they show, and what their forms do.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { openConsole, signedIn } from '../../helpers/console.ts'
import { admin, alice } from '../../helpers/doors.ts'
import { openSession } from '../../helpers/inject.ts'
import { at, OTHER, otherKey, text } from '../../helpers/client.ts'
import { countingProvider } from '../../helpers/policies.ts'

const hostile = '"><script>alert(1)</script>'

void test('rules are added, ordered, switched, tested and removed', async (t) => {
  const { app, browser } = await openConsole(t)
  app.gateway.addProvider(countingProvider())
  const refused = await browser.post('/rules', { name: hostile, when: 'tool.nam == "x"', then: 'deny', mode: 'enforce', approvers: '', message: '' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /id="when-problem"[\s\S]*Is not valid at character 6: No such key: nam/)
  assert.match(refused.text, /tool\.nam == &quot;x&quot;/)
  assert.doesNotMatch(refused.text, /<script>alert/)
  for (const [name, when] of [['First', 'tool.name == "delete"'], [hostile, 'has(args.n) && args.n == 7']] as const) {
    assert.equal((await browser.post('/rules', { name, when, then: 'deny', mode: 'enforce', approvers: '', message: '' })).status, 303)
  }
  const page = await browser.get('/rules')
  assert.match(page.text, /First[\s\S]*denies[\s\S]*&lt;script>|First[\s\S]*denies[\s\S]*&lt;script&gt;/)
  assert.doesNotMatch(page.text, /<script>alert/)
  const [first, second] = app.policies.entries.list()
  assert.ok(first && second)
  await browser.post(`/rules/${second.id}/move`, { by: 'up' })
  assert.deepEqual(app.policies.entries.list().map(({ id }) => id), [second.id, first.id])
  const tested = await browser.get(`/rules?username=alice&server=up&tool=delete&arguments=${encodeURIComponent('{"n": 1}')}`)
  assert.match(tested.text, /First denies\. Its condition is true\./)
  assert.match((await browser.get('/rules?username=&server=up&tool=read&arguments=')).text, /No rule matches: the call is allowed/)
  assert.match((await browser.get('/rules?username=&server=nope&tool=read&arguments=')).text, /is allowed\. But there is no server &quot;nope&quot;\./)
  assert.match((await browser.get('/rules?username=alice&server=up&tool=read&arguments=%7B')).text, /role="alert"/)
  await browser.post(`/rules/${first.id}/toggle`, { enabled: 'false' })
  assert.equal(app.policies.entries.get(first.id).enabled, false)
  await browser.post(`/rules/${first.id}`, { name: 'Renamed', when: 'true', then: 'ask', mode: 'observe', approvers: 'alice, bob', message: 'Hm' })
  const { id: _, ...stored } = app.policies.entries.get(first.id)
  assert.deepEqual(stored, { name: 'Renamed', when: 'true', then: 'ask', mode: 'observe', approvers: ['alice', 'bob'], message: 'Hm', enabled: false })
  assert.match((await browser.get(`/rules/${first.id}/remove`)).text, /Remove the rule Renamed\?/)
  await browser.post(`/rules/${first.id}/remove`, {})
  assert.deepEqual(app.policies.entries.list().map(({ id }) => id), [second.id])
})

void test('an approver sees the call with its arguments, approves it, and may change his mind', async (t) => {
  const app = await appFor(t, {
    users: [admin, alice],
    bearerKeys: [otherKey()],
    policies: [{ id: 'p', name: 'Deletions', when: 'tool.name == "delete"', then: 'ask', approvers: ['alice'] }]
  })
  const up = countingProvider()
  app.gateway.addProvider(up)
  const session = await openSession(app, '/mcp', OTHER)
  const call = async (): Promise<string> =>
    text((await session.request('tools/call', { name: 'up-delete', arguments: { path: hostile } })).result)
  assert.match(await call(), /alice must allow it/)
  const browser = await signedIn(app, 'alice')
  const page = await browser.get('/approvals')
  assert.match(page.text, /delete<\/span> of up[\s\S]*wants to run this tool\. The rule <strong>Deletions<\/strong> requires approval/)
  assert.doesNotMatch(page.text, /<script>alert/)
  const path = /action="\/console(\/approvals\/[^"]+\/approve)"/.exec(page.text)?.[1] ?? assert.fail(page.text)
  assert.equal((await browser.post(path, {})).status, 303)
  // The decision can be reversed until the call is made.
  const reversing = async (decision: 'approve' | 'deny'): Promise<void> => {
    assert.match((await browser.get('/approvals')).text, new RegExp(`Nothing is waiting[\\s\\S]*by alice[\\s\\S]*/${decision}"`))
    assert.equal((await browser.post(path.replace('approve', decision), {})).status, 303)
  }
  await reversing('deny')
  assert.match(await call(), /denied/)
  await reversing('approve')
  assert.equal(await call(), 'ran delete')
  assert.match((await browser.get('/approvals')).text, /approved, call made[\s\S]*by alice/)
  assert.doesNotMatch((await browser.get('/approvals')).text, /instead/)
  assert.equal(up.reached.length, 1)
  assert.equal(at(up.reached, 0, 'item'), 'delete')
})

void test('approvals and the test of a rule show characters that people do not see', async (t) => {
  const app = await appFor(t, {
    users: [admin, alice],
    bearerKeys: [otherKey()],
    policies: [{ id: 'p', name: 'Dele\u202etions', when: 'tool.name == "delete"', then: 'ask', approvers: ['alice'] }]
  })
  app.gateway.addProvider(countingProvider())
  const session = await openSession(app, '/mcp', OTHER)
  await session.request('tools/call', { name: 'up-delete', arguments: { 'na\u200bme': 'x\u202egnp.exe', in: { deep: '\u2066\u{e0041}é' } } })
  const browser = await signedIn(app, 'alice')
  const page = await browser.get('/approvals')
  assert.ok(page.text.includes('<dt>na\\u{200b}me</dt><dd class="mono lines">&quot;x\\u{202e}gnp.exe&quot;</dd>'), page.text)
  assert.ok(page.text.includes('\\u{2066}\\u{e0041}é'))
  assert.ok(page.text.includes('<strong>Dele\\u{202e}tions</strong>'))
  const tested = await (await signedIn(app)).get('/rules?username=alice&server=up&tool=delete&arguments=')
  assert.ok(tested.text.includes('Dele\\u{202e}tions asks'))
})

void test('who is named as an approver has Approvals in the navigation, and a count on the overview; nobody decides about a call of his own', async (t) => {
  const app = await appFor(t, {
    users: [admin, alice, { ...alice, username: 'bob' }],
    bearerKeys: [{ ...otherKey(), kind: 'user', owner: 'bob' }],
    policies: [{ id: 'p', name: 'Deletions', when: 'tool.name == "delete"', then: 'ask', approvers: ['alice', 'bob'] }]
  })
  app.gateway.addProvider(countingProvider())
  const pages = async (user: string): Promise<{ overview: string, approvals: string }> => {
    const browser = await signedIn(app, user)
    return { overview: (await browser.get('/overview')).text, approvals: (await browser.get('/approvals')).text }
  }
  const inNav = /<a href="\/console\/approvals">/
  const counted = /<a href="\/console\/approvals">.*Calls to approve or deny<\/span> <b>1</
  assert.match((await pages('alice')).overview, inNav)
  assert.doesNotMatch((await pages('alice')).overview, /Waiting for you/)
  const session = await openSession(app, '/mcp', OTHER)
  await session.request('tools/call', { name: 'up-delete', arguments: {} })
  for (const user of ['alice', 'admin']) {
    const { overview, approvals } = await pages(user)
    assert.match(overview, counted, user)
    assert.match(approvals, /\/approve"/)
  }
  const own = await pages('bob')
  assert.match(own.overview, inNav)
  assert.doesNotMatch(own.overview, counted)
  assert.match(own.approvals, /This is your own call/)
  assert.doesNotMatch(own.approvals, /\/approve"/)
  const [policy] = app.policies.entries.list()
  const browser = await signedIn(app)
  await browser.post(`/rules/${policy?.id ?? ''}/remove`, {})
  const other = await pages('bob')
  assert.doesNotMatch(other.overview, inNav)
  assert.doesNotMatch(other.overview, counted)
})
