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
    ['/audit?startDate=2026-02-30', /^"startDate": there is no day 2026-02-30$/],
    ['/audit?endDate=2025-02-29T09:00:00Z', /^"endDate": there is no day 2025-02-29$/],
    ['/audit?startDate=2026-13-01', /^"startDate" must be a date as/],
    ['/audit?endDate=2026-02-28T25:00:00Z', /^"endDate" must be a date as/],
    ['/audit?user=ada', /^The parameter "user" is not known; there are "limit", "username", /],
    ['/audit?__proto__=x', /^The parameter "__proto__" is not known/],
    ['/logs?level=error', /^The parameter "level" is not known; there is none$/]
  ] as const) {
    const [status, told] = await ask(path)
    assert.equal(status, 400, path)
    assert.match(String(told), message)
  }
  for (const path of ['/audit?startDate=2024-02-29&endDate=2024-02-29T23:59:59%2B14:00&username=ada', '/audit', '/logs']) {
    assert.equal((await ask(path))[0], 200, path)
  }
  // In file mode.
  assert.deepEqual((await ask('/activities?page=0')), [
    404, 'Calls are not recorded: that needs a database, which DB_URL names (postgres://…, or pglite://<folder> without a server)'
  ])
  // A login's token is a parameter of every route.
  const withToken = await app.inject(`/api/logs?token=${app.auth.login(ada)}`)
  assert.equal(withToken.statusCode, 200, withToken.body)
})
