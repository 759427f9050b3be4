// An annex is made by the first request for one of its paths, serves all of its routes, and is part of the app to whoever asks.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../helpers/app.ts'

test('every route of an annex is reached through the main app', async (t) => {
  for (const BASE_PATH of ['', '/hub']) {
    const app = await appFor(t, {}, { BASE_PATH })
    const mine = new Set(app.routeTable.map(({ method, url }) => `${method} ${url}`))
    assert.ok(![...mine].some((row) => row.includes('/api/servers')), 'made before anybody asks')
    let count = 0
    for (const annex of await app.annexes.openAll()) {
      const { routing } = annex
      annex.routing = (request, response) => {
        count++
        routing(request, response)
      }
    }
    const theirs = app.routeTable.filter(({ method, url }) => !mine.has(`${method} ${url}`))
    assert.ok(theirs.length > 100, String(theirs.length))
    for (const { method, url } of theirs) {
      if (method === 'OPTIONS') continue
      const before = count
      await app.inject({ method: method as 'GET', url: url.replace(/:[A-Za-z]+|\*/g, 'x') })
      assert.equal(count, before + 1, `${method} ${url}`)
    }
  }
})

test('simultaneous first requests make one annex, and its answers have the ids of the main app', async (t) => {
  const app = await appFor(t, {})
  const answers = await Promise.all(Array.from({ length: 5 }, async () => await app.inject('/api/auth/user')))
  assert.deepEqual(answers.map(({ statusCode }) => statusCode), [401, 401, 401, 401, 401])
  assert.equal(app.routeTable.filter(({ method, url }) => method === 'GET' && url === '/api/auth/user').length, 1)
  assert.equal((await app.inject('/docs/json')).statusCode, 200)
  assert.equal((await app.inject('/apix')).statusCode, 404)
})

test('what is read of a path does not depend on the main app: a body that is too large, a host that is not ours', async (t) => {
  const app = await appFor(t, {})
  const host = 'evil.example'
  for (const url of ['/api/servers', '/api/tools/call/x', '/docs']) {
    assert.equal((await app.inject({ method: 'POST', url, headers: { host }, payload: {} })).statusCode, 403, url)
  }
  const payload = JSON.stringify({ username: 'x'.repeat(3_000_000), password: 'x' })
  const headers = { 'content-type': 'application/json' }
  assert.equal((await app.inject({ method: 'POST', url: '/api/auth/login', headers, payload })).statusCode, 413)
})
