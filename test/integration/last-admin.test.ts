// The last admin stays, also where two replicas over one PostgreSQL are asked at the same time. integration/users has the rule itself.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { manage, startReplica } from '../fakes/replica.ts'
import { KEY, settings } from '../helpers/client.ts'
import { database, passwordCanary } from '../helpers/database.ts'
import { until, type Hub } from '../helpers/hub.ts'
import { tokenOf } from '../helpers/token.ts'

test('PostgreSQL: pairs of admins who demote or delete each other on two replicas leave one', async (t) => {
  const { url, query } = await database(t)
  const pairs = Array.from({ length: 10 }, (_, n) => [`a${n}`, `b${n}`] as const)
  const content = settings({}, { users: pairs.flat().map((username) => ({ username, isAdmin: true })) })
  const one = await startReplica(t, url, { settings: content })
  const two = await startReplica(t, url, { settings: content })
  const admins = async (): Promise<string[]> =>
    (await query<{ name: string }>("SELECT key AS name FROM users WHERE (data->>'isAdmin')::boolean ORDER BY position")).map(({ name }) => name)
  const system = { authorization: `Bearer ${KEY}` }
  const strike = async (hub: Hub, isDemoted: boolean, by: string, whom: string): Promise<boolean> => {
    const headers = { 'x-auth-token': tokenOf({ username: by }) }
    const { status, text } = isDemoted
      ? await manage(hub, 'PUT', `/users/${whom}`, { isAdmin: false }, headers)
      : await manage(hub, 'DELETE', `/users/${whom}`, undefined, headers)
    assert.ok([200, 400, 401, 403, 404].includes(status), `${status} ${text}`)
    return status === 200
  }
  assert.equal((await admins()).length, 20)
  let least = Infinity
  const ended = new AbortController()
  const watch = (async () => { while (!ended.signal.aborted) least = Math.min(least, (await admins()).length) })()

  await t.test('all pairs at the same time', async () => {
    const done = await Promise.all(pairs.flatMap(([a, b], n) => [strike(one, n % 2 === 0, a, b), strike(two, n % 2 === 0, b, a)]))
    const left = await admins()
    t.comment(`${left.length} of 20 left`)
    assert.ok(left.length >= 1)
    assert.equal(left.length, 20 - done.filter(Boolean).length, 'what was answered is what is stored')
  })

  await t.test('the last two, again and again', async () => {
    const [a = '', b = '', ...others] = await admins()
    for (const username of others) assert.equal((await manage(one, 'PUT', `/users/${username}`, { isAdmin: false }, system)).status, 200)
    for (let round = 0; round < 3; round++) {
      for (const username of [a, b]) assert.equal((await manage(two, 'PUT', `/users/${username}`, { isAdmin: true }, system)).status, 200)
      const counts = async (hub: Hub): Promise<string> => (await manage(hub, 'GET', '/users-stats', undefined, system)).text
      await until(async () => (await Promise.all([one, two].map(counts))).every((text) => text.includes('"adminUsers":2')), 'the replicas do not agree')
      // The last round deletes.
      const done = await Promise.all(
        Array.from({ length: 10 }, async (_, n) => await strike(n % 2 === 0 ? one : two, round < 2, n < 5 ? a : b, n < 5 ? b : a))
      )
      assert.equal((await admins()).length, 1, `round ${round}`)
      // Who is no admin any more can be demoted again; but one side only has won.
      assert.deepEqual([done.slice(0, 5), done.slice(5)].map((side) => side.includes(true)).sort(), [false, true])
    }
  })
  ended.abort()
  await watch
  assert.ok(least >= 1, 'for a moment there was no admin')
  const logs = one.output() + two.output()
  for (const secret of [passwordCanary, encodeURIComponent(passwordCanary)]) assert.ok(!logs.includes(secret), 'the password of the database')
})
