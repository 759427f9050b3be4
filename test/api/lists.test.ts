// Queries of lists: what is misspelt, or a day that there is not, is refused, and not taken for another filter.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../helpers/app.ts'
import { KEY, type Json } from '../helpers/client.ts'
import { bearerKey } from '../helpers/hub.ts'

const ada = { username: 'ada', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: true }

test('queries of lists', async (t) => {
  const app = await appFor(t, { users: [ada], bearerKeys: [bearerKey()] })
  const ask = async (path: string): Promise<[status: number, message: unknown]> => {
    const answer = await app.inject({ url: `/api${path}`, headers: { authorization: `Bearer ${KEY}` } })
    return [answer.statusCode, answer.json<Json>().message]
  }
  for (const [path, message] of [
    ['/audit?startDate=2026-02-30', /^"startDate": the day 2026-02-30 does not exist$/],
    ['/audit?endDate=2025-02-29T09:00:00Z', /^"endDate": the day 2025-02-29 does not exist$/],
    ['/audit?startDate=2026-13-01', /^"startDate" must be a date such as/],
    ['/audit?endDate=2026-02-28T25:00:00Z', /^"endDate" must be a date such as/],
    ['/audit?user=ada', /^The parameter "user" is not known; there are "limit", "username", /]
  ] as const) {
    const [status, told] = await ask(path)
    assert.equal(status, 400, path)
    assert.match(String(told), message)
  }
  assert.equal((await ask('/audit?startDate=2024-02-29&endDate=2024-02-29T23:59:59%2B14:00&username=ada'))[0], 200)
  // In file mode.
  assert.deepEqual((await ask('/activities?page=0')), [
    404, 'Calls are not recorded: this requires a database: set DB_URL (postgres://…, or pglite://<folder> without a server)'
  ])
})

test('pages and fields of lists', async (t) => {
  const bob = { ...ada, username: 'bob', isAdmin: false }
  const prompt = (id: string): Json => ({ id, name: id, template: 'x' })
  const app = await appFor(t, {
    users: [ada, bob],
    bearerKeys: [bearerKey()],
    mcpServers: Object.fromEntries(['one', 'two'].map((name) => [name, { url: 'http://127.0.0.1:9/mcp', enabled: false }])),
    groups: [{ id: 'g1', name: 'one', servers: [] }, { id: 'g2', name: 'two', servers: [] }],
    prompts: [prompt('one'), prompt('two')],
    resources: [{ id: 'r1', uri: 'note://one', content: '' }, { id: 'r2', uri: 'note://two', content: '' }]
  })
  const headers = { authorization: `Bearer ${KEY}` }
  const made = await app.inject({ method: 'POST', url: '/api/auth/keys', headers, payload: { name: 'second', accessType: 'all', owner: 'ada' } })
  assert.equal(made.statusCode, 201, made.body)
  const ask = async (path: string, status = 200): Promise<Json> => {
    const answer = await app.inject({ url: `/api${path}`, headers })
    assert.equal(answer.statusCode, status, `${path}: ${answer.body}`)
    return answer.json()
  }
  for (const [path, field] of [
    ['/servers', 'name'], ['/groups', 'name'], ['/users', 'username'], ['/auth/keys', 'name'], ['/prompts', 'name'], ['/resources', 'uri']
  ] as const) {
    const all = (await ask(path)).data as Json[]
    assert.equal(all.length, 2, path)
    const few = all.map((each) => ({ [field]: each[field] }))
    assert.deepEqual((await ask(`${path}?fields=${field},%20${field},`)).data, few)
    const first = await ask(`${path}?fields=${field}&limit=1`)
    assert.deepEqual(first.data, few.slice(0, 1))
    assert.deepEqual(await ask(`${path}?fields=${field}&limit=1&cursor=${String(first.nextCursor)}`), { success: true, data: few.slice(1) })
    assert.match(String((await ask(`${path}?fields=${field},zz`, 400)).message), new RegExp(`^"fields": "zz" is not known; there are .*\\b${field}\\b`))
    assert.match(String((await ask(`${path}?cursor=zz`, 400)).message), /cursor/)
    for (const limit of ['0', '-1', 'x', '1.5', '']) await ask(`${path}?limit=${limit}`, 400)
  }
  // Where the entry went at which a page ended, the list is to be begun again.
  for (const path of ['/servers', '/groups']) {
    const { nextCursor } = await ask(`${path}?limit=1`)
    assert.equal((await app.inject({ method: 'DELETE', url: `/api${path}/one`, headers })).statusCode, 200)
    assert.match(String((await ask(`${path}?cursor=${String(nextCursor)}`, 400)).message), /start again/)
  }
})
