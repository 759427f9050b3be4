// What rules name and does not exist is stored, and the answer says so.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { toy } from '../fakes/toy.ts'
import { appFor } from '../helpers/app.ts'
import { settings, type Json } from '../helpers/client.ts'
import { apiOf } from '../helpers/policies.ts'

const users = [{ username: 'ada', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: false }]

interface World { warnings: (path: string, body: Json) => Promise<unknown>, reason: (body: Json) => Promise<unknown> }

async function start (t: Test): Promise<World> {
  const away = { url: 'http://127.0.0.1:9/mcp', enabled: false }
  const app = await appFor(t, settings({ away }, { users, teams: [{ name: 'web', members: ['ada'] }] }))
  app.gateway.addProvider(toy)
  const api = apiOf(app)
  return {
    warnings: async (path, sent) => {
      const { status, body } = await api('POST', path, sent)
      assert.equal(status, 201, JSON.stringify(body))
      const { warnings } = body as { warnings?: string[] }
      for (const each of warnings ?? []) assert.ok(String(body.message).includes(each))
      return warnings
    },
    reason: async (sent) => (await api('POST', '/policies/test', sent)).body.data.reason
  }
}

test('a guard tells the servers and tools that do not exist', async (t) => {
  const { warnings } = await start(t)
  const guard = (more: Json): Json => ({ name: 'g', on: 'both', detect: ['email'], action: 'mask', ...more })
  for (const [about, told] of [
    [{}, undefined],
    [{ servers: ['toy', 'away'], tools: ['add', 'unlisted'] }, undefined],
    [{ servers: ['toy'], tools: ['ad'] }, ['"tools": no server lists a tool "ad" now']],
    [{ servers: ['toi', 'none'], tools: ['ad'] }, ['"servers": there is no server "toi", "none"']]
  ] as const) assert.deepEqual(await warnings('/guards', guard(about)), told, JSON.stringify(about))
})

test('a quota tells what its target names and does not exist, and that it stops everything', async (t) => {
  const { warnings } = await start(t)
  const quota = (target: Json, more: Json = {}): Json => ({ name: 'q', target, per: 'day', calls: 1, ...more })
  for (const [target, told] of [
    [{}, undefined],
    [{ user: '*', team: '*', key: '*', server: '*', tool: '*' }, undefined],
    [{ user: 'ada', team: 'web', server: 'toy', tool: 'add' }, undefined],
    [{ user: '@web', server: 'away', tool: 'unlisted' }, undefined],
    [{ user: 'system' }, undefined],
    [{ user: 'eda', team: 'wob', key: 'k', server: 'toi', tool: 'add' }, [
      '"target.user": there is no user "eda"', '"target.team": there is no team "wob"', '"target.key": there is no key "k"',
      '"target.server": there is no server "toi"'
    ]],
    [{ user: '@wob', server: 'toy', tool: 'ad' }, [
      '"target.user": there is no user "@wob"', '"target.tool": the server "toy" does not list a tool "ad" now'
    ]]
  ] as const) assert.deepEqual(await warnings('/quotas', quota(target)), told, JSON.stringify(target))
  const stopped = ['Nobody can call anything while this quota is on']
  assert.deepEqual(await warnings('/quotas', quota({}, { calls: 0, enabled: false })), undefined)
  assert.deepEqual(await warnings('/quotas', quota({ server: 'toy' }, { calls: 0 })), undefined)
  assert.deepEqual(await warnings('/quotas', quota({}, { calls: 0 })), stopped)
  assert.deepEqual(await warnings('/quotas', quota({}, { calls: undefined, resultTokens: 0 })), stopped)
})

test('a test of a policy says that there is no such server or item', async (t) => {
  const { reason } = await start(t)
  assert.equal(await reason({ server: 'toy', tool: 'add' }), 'No policy matches')
  assert.equal(await reason({ server: 'away', tool: 'unlisted' }), 'No policy matches')
  assert.equal(await reason({ server: 'toy', tool: 'greet' }), 'No policy matches. But the server "toy" does not list a tool "greet" now')
  assert.equal(await reason({ server: 'toy', tool: 'greet', kind: 'prompt' }), 'No policy matches')
  assert.equal(await reason({ server: 'toi', tool: 'add' }), 'No policy matches. But there is no server "toi"')
})
