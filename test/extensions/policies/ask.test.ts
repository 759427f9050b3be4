// Policies that ask a person: the caller's own client, in both eras, or approvers at the management API.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { openStorage } from '../../../db/open.ts'
import { recordCollections } from '../../../db/records.ts'
import type { Storage } from '../../../db/store.ts'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { vault } from '../../fakes/replica.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'
import { admin, asks, call, callTool, idIn, told } from '../../helpers/approvals.ts'
import { at, agent, KEY, OTHER, otherKey, settings, type Json } from '../../helpers/client.ts'
import { movingClock } from '../../helpers/clock.ts'
import { bearerKey, until, type Cleanup } from '../../helpers/hub.ts'
import { openSession } from '../../helpers/inject.ts'
import { modernAgent } from '../../helpers/modern-client.ts'
import { setLimits } from '../../helpers/patient.ts'
import { addPolicy, addUser, loginTo, rule, startWithPolicies, type AskApi } from '../../helpers/policies.ts'

/** A gateway whose policy asks before a deletion, and what admins and callers need of it. */
async function startAsking (t: Cleanup, policy: object = asks, more: Json = {}) {
  const opened = await startWithPolicies(t, settings({}, more))
  return { ...opened, policy: await addPolicy(opened.api, policy), session: await openSession(opened.app, '/mcp', KEY) }
}

test('a legacy client is asked in words: it accepts, declines, and is asked each time', async (t) => {
  const { up, url } = await startAsking(t)
  const questions: Json[] = []
  let action = 'accept'
  const client = await agent(t, `${url}/mcp`, {
    capabilities: { elicitation: {} },
    prepare: (made) => {
      made.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        questions.push(params as Json)
        return { action } as { action: 'accept' }
      })
    }
  })
  assert.equal(told(await client.callTool(call, CallToolResultSchema)), 'ran delete')
  assert.equal(questions[0]?.message, 'The policy "Deletions" asks before this call.\n\nRun the tool "delete" of the server "up" ' +
    'with these arguments?\n- "id": 7\n- "note": "a\\u{202e}b\\n\\"c\\""')
  assert.deepEqual(questions[0]?.requestedSchema, { type: 'object', properties: {} })
  for (action of ['decline', 'cancel']) {
    assert.match(told(await client.callTool(call, CallToolResultSchema)), /^error: .*"Deletions" asks.*was declined; only the user of this client/)
  }
  assert.equal(questions.length, 3)
  assert.equal(up.reached.length, 1)
  assert.equal(told(await client.callTool({ name: 'up-read', arguments: {} }, CallToolResultSchema)), 'ran read')
  assert.equal(questions.length, 3)
})

test('a modern client is asked by input_required', async (t) => {
  const { up, url } = await startAsking(t, { ...asks, message: 'Deletions cannot be undone.' })
  const { client, asked } = await modernAgent(t, `${url}/mcp`)
  assert.equal(told(await client.callTool(call)), 'ran delete')
  assert.match(String(at(asked, 0, 'params', 'message')), /^Deletions cannot be undone\.\n\nRun the tool "delete"/)
  client.setRequestHandler('elicitation/create', () => ({ action: 'decline' }))
  assert.match(told(await client.callTool(call)), /^error: Deletions cannot be undone\. The policy "Deletions".*declined/)
  assert.equal(up.reached.length, 1)
})

test('what policies hide, before or since the question, does not spoil the answer of a modern client', async (t) => {
  const { api, up, url } = await startAsking(t)
  await addPolicy(api, rule('Hidden', 'tool.name == "write"', 'hide'))
  const { client } = await modernAgent(t, `${url}/mcp`)
  assert.equal(told(await client.callTool(call)), 'ran delete')
  client.setRequestHandler('elicitation/create', async () => {
    await addPolicy(api, rule('Hidden, too', 'tool.name == "read"', 'hide'))
    return { action: 'accept' }
  })
  assert.equal(told(await client.callTool(call)), 'ran delete')
  assert.equal(up.reached.length, 2)
})

test('a policy that is stored while a person is asked counts', async (t) => {
  const { api, up, url } = await startAsking(t)
  const forbid = async (): Promise<{ action: 'accept' }> => {
    const denying = await addPolicy(api, { ...rule('Closed', 'tool.name == "delete"', 'deny'), message: 'Closed now.' })
    const all = (await api('GET', '/policies')).body.data as unknown as Json[]
    const others = all.filter(({ id }) => id !== denying).map(({ id }) => id)
    await api('PUT', '/policies/order', { ids: [denying, ...others] })
    return { action: 'accept' }
  }
  const { client } = await modernAgent(t, `${url}/mcp`)
  client.setRequestHandler('elicitation/create', forbid)
  assert.match(told(await client.callTool(call)), /^error: Closed now/)
  assert.equal(up.reached.length, 0)
})

/** The states of the approvals that an admin sees, newest first. */
const states = async (api: AskApi): Promise<unknown[]> => ((await api('GET', '/approvals')).body.data as unknown as Json[]).map(({ state }) => state)

test('a client that cannot be asked gets an approval of admins: good once, for these arguments and this caller', async (t) => {
  const { app, api, up, session } = await startAsking(t)
  const eve = await admin({ app, api })
  const first = await callTool(session)
  assert.match(first, /^error: The policy "Deletions" asks before this call: an admin must allow it within 10 minutes/)
  const id = idIn(first)
  assert.equal(idIn(await callTool(session)), id, 'asking again does not ask for another one')
  const { body } = await api('GET', '/approvals?state=pending', undefined, eve)
  const [shown] = body.data as unknown as Json[]
  const { createdAt, expiresAt, policy, ...rest } = shown as Record<string, string>
  assert.deepEqual(rest, {
    id, state: 'pending', username: 'system', server: 'up', tool: 'delete', kind: 'tool', arguments: call.arguments
  })
  assert.equal(at(policy, 'name'), 'Deletions')
  assert.equal(Date.parse(String(expiresAt)) - Date.parse(String(createdAt)), 600_000)

  assert.equal((await api('POST', `/approvals/${id}/approve`)).status, 403, 'nobody approves a call of his own')
  const approved = await api('POST', `/approvals/${id}/approve`, undefined, eve)
  assert.deepEqual([approved.status, approved.body.data.state, approved.body.data.decidedBy], [200, 'approved', 'eve'])
  const [audited] = (await api('GET', '/audit?entity=approval')).body.data as unknown as Json[]
  assert.deepEqual([audited?.username, at(audited, 'before', 'state'), at(audited, 'after', 'state')], ['eve', 'pending', 'approved'])
  assert.equal((await api('POST', `/approvals/${id}/approve`, undefined, eve)).status, 409)
  assert.equal((await api('POST', '/approvals/unknown/deny', undefined, eve)).status, 404)

  assert.match(await callTool(session, { ...call, arguments: { id: 8 } }), /must allow it/, 'other arguments')
  const rest403 = await api('POST', '/tools/call/up', { toolName: 'delete', arguments: { id: 9 } })
  assert.equal(rest403.status, 403)
  idIn(String(rest403.body.message))
  assert.equal(up.reached.length, 0)
  // The order of members does not matter.
  assert.equal(await callTool(session, { ...call, arguments: { note: call.arguments.note, id: 7 } }), 'ran delete')
  const again = await callTool(session)
  assert.notEqual(idIn(again), id, 'it was used')
  assert.equal((await api('POST', `/approvals/${id}/deny`, undefined, eve)).status, 409)
  assert.equal(up.reached.length, 1)
  await api('POST', `/approvals/${idIn(again)}/deny`, undefined, eve)
  assert.match(await callTool(session), /^error: .* and it was denied \(approval .*an admin can allow a later call/)
  assert.deepEqual(await states(api), ['denied', 'pending', 'pending', 'approved'])
})

test('another caller cannot use an approval; one that nobody decides or uses expires', async (t) => {
  const forward = movingClock(t)
  const { app, api, up, session } = await startAsking(t, asks, { bearerKeys: [bearerKey(), otherKey()] })
  const eve = await admin({ app, api })
  const [one, two] = [session, await openSession(app, '/mcp', OTHER)]
  const id = idIn(await callTool(one))
  assert.notEqual(idIn(await callTool(two)), id)
  assert.equal((await api('POST', `/approvals/${id}/approve`, undefined, eve)).status, 200)
  assert.match(await callTool(two), /must allow it/)
  forward(600_001)
  const later = await callTool(one)
  assert.notEqual(idIn(later), id)
  assert.deepEqual(await states(api), ['pending', 'expired', 'expired'])
  assert.equal((await api('GET', '/approvals?state=expired')).body.data.length, 2)
  forward(600_001)
  assert.equal((await api('POST', `/approvals/${idIn(later)}/approve`, undefined, eve)).status, 409)
  assert.equal(up.reached.length, 0)
})

test('the last decision counts, until the call is made or the approval expires', async (t) => {
  const forward = movingClock(t)
  const { app, api, up, session } = await startAsking(t)
  const eve = await admin({ app, api })
  const decide = async (id: string, decision: string): Promise<number> =>
    (await api('POST', `/approvals/${id}/${decision}`, undefined, eve)).status
  const id = idIn(await callTool(session))
  assert.equal((await api('POST', `/approvals/${id}/approve`)).status, 403, 'his own')
  assert.deepEqual([await decide(id, 'approve'), await decide(id, 'deny')], [200, 200])
  assert.match(await callTool(session), /it was denied/)
  assert.deepEqual([await decide(id, 'deny'), await decide(id, 'approve')], [409, 200])
  const audited = (await api('GET', '/audit?entity=approval')).body.data as unknown as Json[]
  assert.deepEqual(audited.map((each) => [at(each, 'before', 'state'), at(each, 'after', 'state')]),
    [['denied', 'approved'], ['approved', 'denied'], ['pending', 'approved']])
  assert.equal(await callTool(session), 'ran delete')
  assert.deepEqual([await decide(id, 'deny'), await decide(id, 'approve')], [409, 409], 'it was used')
  const next = idIn(await callTool(session))
  assert.equal(await decide(next, 'deny'), 200)
  forward(600_001)
  assert.equal(await decide(next, 'approve'), 409, 'it has expired')
  assert.deepEqual(await states(api), ['denied', 'approved'])
  // Then the caller may ask again.
  assert.notEqual(idIn(await callTool(session)), next)
  assert.equal(up.reached.length, 1)
})

test('approvers are those whom the policy names; the client is not asked, and the webhook is told', async (t) => {
  const { app, api, up, url } = await startAsking(t, { ...asks, approvers: ['ada', 'bob'] })
  const [ada, , cy] = await Promise.all(['ada', 'bob', 'cy'].map(async (username) => await addUser({ app, api }, username)))
  const sent: object[] = []
  app.notifications.send = (event, data) => { sent.push({ event, ...data }) }
  const { client, asked } = await modernAgent(t, `${url}/mcp`)
  const sentence = told(await client.callTool(call))
  assert.match(sentence, /^error: .*: ada or bob must allow it/)
  assert.equal(asked.length, 0)
  assert.deepEqual(sent.map((each) => [at(each, 'event'), at(each, 'id'), at(each, 'state')]), [['approval', idIn(sentence), 'pending']])
  assert.equal((await api('GET', '/approvals', undefined, cy)).status, 403)
  assert.equal((await api('POST', `/approvals/${idIn(sentence)}/approve`, undefined, cy)).status, 403)
  assert.equal((await api('GET', '/approvals', undefined, ada)).body.data.length, 1)
  assert.equal((await api('POST', `/approvals/${idIn(sentence)}/approve`, undefined, ada)).status, 200)
  assert.equal(told(await client.callTool(call)), 'ran delete')
  assert.equal(up.reached.length, 1)
})

test('an approver whom the policy no longer names decides about nothing that waits', async (t) => {
  const { app, api, up, url, policy } = await startAsking(t, { ...asks, approvers: ['ada'] })
  const [ada, bob] = [await addUser({ app, api }, 'ada'), await addUser({ app, api }, 'bob')]
  // Both are approvers of something.
  await addPolicy(api, rule('other', 'tool.name == "write"', 'ask', { approvers: ['ada', 'bob'] }))
  const { client } = await modernAgent(t, `${url}/mcp`)
  const id = idIn(told(await client.callTool(call)))
  await api('PUT', `/policies/${policy}`, { ...asks, approvers: ['bob'] })
  const decide = async (headers: Record<string, string>): Promise<number> => (await api('POST', `/approvals/${id}/approve`, undefined, headers)).status
  assert.deepEqual([await decide(ada), await decide(bob)], [404, 200])
  assert.equal(told(await client.callTool(call)), 'ran delete')
  assert.equal(up.reached.length, 1)
})

test('an approval does not count after its approver is removed, demoted or no longer named', async (t) => {
  const { app, api, up, url, policy } = await startAsking(t, { ...asks, approvers: ['ada'] })
  const { client } = await modernAgent(t, `${url}/mcp`)
  const approvedBy = async (username: string, user: object): Promise<string> => {
    const headers = await addUser({ app, api }, username, user)
    const id = idIn(told(await client.callTool(call)))
    assert.equal((await api('POST', `/approvals/${id}/approve`, undefined, headers)).status, 200)
    return id
  }
  const mustWaitAgain = async (former: string): Promise<void> => assert.notEqual(idIn(told(await client.callTool(call))), former)
  const ofAda = await approvedBy('ada', {})
  await api('PUT', `/policies/${policy}`, { ...asks, approvers: ['eve'] })
  await mustWaitAgain(ofAda)
  await api('POST', '/users', { username: 'root', password: 'Open-Sesame-1', isAdmin: true })
  const ofBob = await approvedBy('bob', { isAdmin: true })
  const demoted = await api('PUT', '/users/bob', { isAdmin: false })
  assert.equal(demoted.status, 200, JSON.stringify(demoted.body))
  await mustWaitAgain(ofBob)
  const ofCy = await approvedBy('cy', { isAdmin: true })
  assert.equal((await api('DELETE', '/users/cy')).status, 200)
  await mustWaitAgain(ofCy)
  assert.equal(up.reached.length, 0)
})

test('a new user with the name of a removed approver decides about nothing, and the caller not either', async (t) => {
  const { app, api, up, url } = await startWithPolicies(t, settings({}))
  for (const username of ['bob', 'cy']) await addUser({ app, api }, username)
  const alone = await addPolicy(api, { ...asks, approvers: ['bob'] })
  const { body: made } = await api('POST', '/policies', { ...asks, name: 'Later', approvers: ['bob', 'cy', 'dan'] })
  assert.match(String(made.message), /"approvers": there is no user "dan"; an account that is created with such a name later/)
  const { client, asked } = await modernAgent(t, `${url}/mcp`)
  const id = idIn(told(await client.callTool(call)))
  assert.equal((await api('DELETE', '/users/bob')).status, 200)
  const bob = await addUser({ app, api }, 'bob')
  const approversOf = async (policy: string): Promise<unknown> => (await api('GET', `/policies/${policy}`)).body.data.approvers
  assert.deepEqual(await approversOf(alone), ['admin'], 'without approvers, the client would be asked')
  assert.deepEqual(await approversOf(String(made.data.id)), ['cy', 'dan'])
  // Even if a policy names the new one, what waited before is not for him.
  await api('PUT', `/policies/${alone}`, { ...asks, approvers: ['bob'] })
  assert.deepEqual((await api('GET', '/approvals', undefined, bob)).body.data, [])
  assert.equal((await api('POST', `/approvals/${id}/approve`, undefined, bob)).status, 404)
  const later = idIn(told(await client.callTool({ ...call, arguments: { id: 8 } })))
  assert.equal((await api('POST', `/approvals/${later}/approve`, undefined, bob)).status, 200)
  assert.deepEqual([asked.length, up.reached.length], [0, 0])
})

test('a client that leaves calls nothing', async (t) => {
  const { up, url } = await startAsking(t)
  const left = new AbortController()
  const client = await agent(t, `${url}/mcp`, {
    capabilities: { elicitation: {} },
    prepare: (made) => {
      made.setRequestHandler(ElicitRequestSchema, async () => {
        left.abort()
        return await new Promise<never>(() => {})
      })
    }
  })
  await assert.rejects(client.callTool(call, CallToolResultSchema, { signal: left.signal }))
  assert.equal(up.reached.length, 0)
})

test('nobody approves a call of his own by another credential of his', async (t) => {
  const { app, api } = await startAsking(t)
  const eve = await admin({ app, api })
  const bob = await addUser({ app, api }, 'bob', { isAdmin: true })
  assert.equal((await api('POST', '/teams', { name: 'ops', members: ['bob'] })).status, 201)
  const keyOf = async (by: Record<string, string>, body: object): Promise<string> => {
    const made = await api('POST', '/auth/keys', { name: 'k', ...body }, by)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    return String(made.body.data.token)
  }
  const system = { kind: 'system', accessType: 'all' }
  const byKey = { authorization: `Bearer ${await keyOf(bob, system)}` }
  const operator = { authorization: `Bearer ${KEY}` }
  for (const [what, key, own, other, username] of [
    ['a key that he made', await keyOf(bob, system), [bob, byKey], eve, 'system'],
    ['a key that he owns', await keyOf(operator, { ...system, owner: 'bob' }), [bob, byKey], eve, 'bob'],
    ['a key that he made for another user', await keyOf(eve, { kind: 'user', owner: 'bob' }), [bob, byKey, eve], operator, 'bob'],
    ['a key of his team', await keyOf(operator, { kind: 'user', owner: '@ops' }), [bob, byKey], eve, '@ops']
  ] as const) {
    const path = `/approvals/${idIn(await callTool(await openSession(app, '/mcp', key)))}/approve`
    const shown = at((await api('GET', '/approvals?state=pending')).body.data, 0, 'username')
    assert.equal(shown, username, what)
    for (const headers of own) {
      const { status, body } = await api('POST', path, undefined, headers)
      assert.equal(status, 403, what)
      assert.match(String(body.message), /your own call, or about a call with a key that you created or that your team owns/)
    }
    assert.equal((await api('POST', path, undefined, other)).status, 200, what)
  }
})

test('one user cannot push out the approvals of others, however many keys he makes', async (t) => {
  setLimits(t, recordCollections.approvals, { maxEntries: 6, maxInFile: 6, maxPerOwner: 4 })
  const { app, api, session } = await startAsking(t)
  const bob = await addUser({ app, api }, 'bob')
  const first = idIn(await callTool(session))
  for (const name of ['a', 'b', 'c']) {
    const { body } = await api('POST', '/auth/keys', { name }, bob)
    const his = await openSession(app, '/mcp', String(body.data.token))
    for (const id of [1, 2, 3, 4]) idIn(await callTool(his, { ...call, arguments: { id } }))
  }
  const listed = async (query: string): Promise<Json[]> => (await api('GET', `/approvals${query}`)).body.data as unknown as Json[]
  const all = await listed('')
  assert.deepEqual(all.map(({ username }) => username), ['bob', 'bob', 'bob', 'bob', 'system'])
  assert.equal(all.at(-1)?.id, first)
  assert.deepEqual(await listed('?state=pending&limit=2'), all.slice(0, 2))
  assert.equal((await api('GET', '/approvals?limit=1001')).status, 400)
})

test('an approval does not pass to another server of the same name, and does not count as waiting without its server or policy', async (t) => {
  setLimits(t, extensionsLimits.approvals, { pending: 2 })
  const upstream = await startUpstream(t, { tools: [tool('delete')] })
  const { app, api } = await startWithPolicies(t, settings({ real: { url: upstream.url } }))
  const connected = async (): Promise<void> => { await until(() => app.upstreams.get('real')?.status === 'connected') }
  await connected()
  const policy = await addPolicy(api, { ...asks, message: 'Really?' })
  const eve = await admin({ app, api })
  const session = await openSession(app, '/mcp', KEY)
  const onReal = { name: 'real-delete', arguments: { id: 1 } }
  const first = await callTool(session, onReal)
  assert.match(first, /^error: Really\? The policy "Deletions" asks/)
  assert.equal((await api('POST', `/approvals/${idIn(first)}/approve`, undefined, eve)).status, 200)
  assert.equal((await api('DELETE', '/servers/real')).status, 200)
  assert.equal((await api('POST', '/servers', { name: 'real', config: { type: 'streamable-http', url: upstream.url } })).status, 200)
  await connected()
  assert.notEqual(idIn(await callTool(session, onReal)), idIn(first))
  assert.equal(upstream.received.filter(({ message }) => message.method === 'tools/call').length, 0)

  idIn(await callTool(session))
  const [eighth, ninth] = [8, 9].map((id) => ({ ...call, arguments: { id } }))
  assert.match(await callTool(session, eighth), /2 of your calls are already waiting/)
  assert.equal((await api('DELETE', '/servers/real')).status, 200)
  idIn(await callTool(session, eighth))
  assert.match(await callTool(session, ninth), /2 of your calls are already waiting/)
  assert.equal((await api('DELETE', `/policies/${String(policy)}`)).status, 200)
  await addPolicy(api, asks)
  idIn(await callTool(session, ninth))
})

test('only some calls of a caller wait at a time, also of calls at once; those of others do too', async (t) => {
  setLimits(t, extensionsLimits.approvals, { pending: 3 })
  const { app, api, session } = await startAsking(t, asks, { bearerKeys: [bearerKey(), otherKey()] })
  const eve = await admin({ app, api })
  const asked = await Promise.all([1, 2, 3, 4, 5].map(async (id) => await callTool(session, { ...call, arguments: { id } })))
  const refused = asked.filter((sentence) => sentence.endsWith('and 3 of your calls are already waiting for a decision'))
  assert.equal(refused.length, 2)
  idIn(await callTool(await openSession(app, '/mcp', OTHER)))
  const first = asked.find((sentence) => !refused.includes(sentence)) ?? ''
  assert.equal((await api('POST', `/approvals/${idIn(first)}/deny`, undefined, eve)).status, 200)
  idIn(await callTool(session, { ...call, arguments: { id: 6 } }))
})

test('equal calls at once wait for one approval, which one of them uses', async (t) => {
  const { app, api, up, session } = await startAsking(t)
  const eve = await admin({ app, api })
  const ids = await Promise.all([1, 2, 3, 4].map(async () => idIn(await callTool(session))))
  assert.equal(new Set(ids).size, 1, ids.join())
  assert.equal((await api('POST', `/approvals/${ids[0]}/approve`, undefined, eve)).status, 200)
  assert.equal(await callTool(session), 'ran delete')
  assert.notEqual(idIn(await callTool(session)), ids[0])
  assert.equal(up.reached.length, 1)
})

test('a key that is limited to some servers is no admin to a policy', async (t) => {
  const limited: Json = { ...otherKey(), accessType: 'servers', allowedServers: ['up'] }
  const { api } = await startWithPolicies(t, settings({}, { bearerKeys: [bearerKey(), limited] }))
  await addPolicy(api, rule('Admins', '!principal.isAdmin', 'deny'))
  const decisionFor = async (keyId: unknown): Promise<unknown> =>
    (await api('POST', '/policies/test', { principal: { keyId }, server: 'up', tool: 'delete' })).body.data.decision
  assert.deepEqual([await decisionFor(limited.id), await decisionFor(bearerKey().id)], ['deny', 'allow'])
})

test('names of policies, guards and quotas are short and have no control characters', async (t) => {
  const { api } = await startWithPolicies(t, settings({}))
  for (const [path, entry] of [
    ['/policies', asks], ['/guards', { on: 'both', detect: ['card'], action: 'mask' }], ['/quotas', { target: {}, per: 'day', calls: 1 }]
  ] as const) {
    for (const name of ['x'.repeat(201), 'a\nb', 'a\u202eb']) assert.equal((await api('POST', path, { ...entry, name })).status, 400, path)
    assert.equal((await api('POST', path, { ...entry, name: 'x'.repeat(200) })).status, 201, path)
  }
})

test('approvers see the beginning of long texts, and an approval is good for the whole', async (t) => {
  const { app, api, session } = await startAsking(t)
  const eve = await admin({ app, api })
  const long = { id: 7, list: [{ note: 'n'.repeat(5_000) }] }
  const id = idIn(await callTool(session, { ...call, arguments: long }))
  const approved = await api('POST', `/approvals/${id}/approve`, undefined, eve)
  assert.deepEqual(approved.body.data.arguments, { id: 7, list: [{ note: `${'n'.repeat(1_000)}… (4000 more characters)` }] })
  const other = { id: 7, list: [{ note: `${'n'.repeat(4_999)}m` }] }
  assert.match(await callTool(session, { ...call, arguments: other }), /must allow it/)
  assert.equal(await callTool(session, { ...call, arguments: long }), 'ran delete')
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`n${n}`, 'n'.repeat(1_000)]))
  assert.match(await callTool(session, { ...call, arguments: many }), /^error: .*"Deletions" asks.*too large to be shown for approval/)
  assert.equal((await states(api)).length, 2)
})

test('a question that nobody answers in time ends the call', async (t) => {
  setLimits(t, extensionsLimits.approvals, { time: 300 })
  const { up, url } = await startAsking(t)
  const client = await agent(t, `${url}/mcp`, {
    capabilities: { elicitation: {} },
    prepare: (made) => { made.setRequestHandler(ElicitRequestSchema, async () => await new Promise<never>(() => {})) }
  })
  assert.match(told(await client.callTool(call, CallToolResultSchema)), /^error: .*nobody answered in time; the user of this client/)
  assert.equal(up.reached.length, 0)
})

test('approvals hold over a restart', async (t) => {
  const settingsPath = join(await temporaryFolder(t), 'settings.json')
  await writeFile(settingsPath, JSON.stringify(settings({})), { mode: 0o600 })
  const opened = async (): Promise<Storage> => await openStorage({
    settingsPath, startupTimeout: 30_000, vault: await vault(), warn: () => {}, info: () => {}
  })
  const first = await startWithPolicies(t, {}, { storage: await opened() })
  await addPolicy(first.api, asks)
  await admin(first)
  const id = idIn(await callTool(await openSession(first.app, '/mcp', KEY)))
  await first.app.close()
  assert.doesNotMatch(await readFile(settingsPath, 'utf8'), /note/, 'arguments are sealed')

  const second = await startWithPolicies(t, {}, { storage: await opened() })
  const eve = await loginTo(second.app, 'eve', 'Open-Sesame-1')
  assert.equal((await second.api('POST', `/approvals/${id}/approve`, undefined, eve)).status, 200)
  await second.app.close()

  const third = await startWithPolicies(t, {}, { storage: await opened() })
  assert.equal(await callTool(await openSession(third.app, '/mcp', KEY)), 'ran delete')
  assert.match(await callTool(await openSession(third.app, '/mcp', KEY)), /must allow it/)
})

test('a caller without credentials is asked at its own client only: nobody else can allow its calls', async (t) => {
  const routing = { enableBearerAuth: false, skipAuth: true }
  const { app, api, up, url } = await startAsking(t, asks, { systemConfig: { routing } })
  const anonymous = await openSession(app, '/mcp')
  const refusal = /^error: The policy "Deletions" asks before this call, but it cannot ask about a caller without credentials; use a key or log in$/
  assert.match(await callTool(anonymous), refusal)
  const open = await app.inject({ method: 'POST', url: '/api/tools/up/delete', payload: {} })
  assert.equal(open.statusCode, 403, open.body)
  // Whoever comes to the management API is the same guest.
  const guest = await api('POST', '/tools/call/up', { toolName: 'delete', arguments: { id: 9 } }, {})
  assert.equal(guest.status, 403)
  assert.match(String(guest.body.message), /without credentials/)
  assert.deepEqual(await states(api), [])
  const questions: unknown[] = []
  const client = await agent(t, `${url}/mcp`, {
    key: null,
    capabilities: { elicitation: {} },
    prepare: (made) => {
      made.setRequestHandler(ElicitRequestSchema, ({ params }) => { questions.push(params); return { action: 'accept' } })
    }
  })
  assert.equal(told(await client.callTool(call, CallToolResultSchema)), 'ran delete')
  assert.match(await callTool(anonymous), refusal, 'what one allowed is not allowed to another')
  assert.equal(up.reached.length, 1)
  assert.equal(questions.length, 1)
})
