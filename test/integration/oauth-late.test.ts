// What comes too late: tokens that are stored while their user or client goes, and a provider that could not be loaded before.
import assert from 'node:assert/strict'
import type { Provider } from 'oidc-provider'
import { test } from 'tap'
import type { Tokens } from '../../db/ports.ts'
import { Providers } from '../../plugins/oauth/providers.ts'
import { limits } from '../../plugins/limits/index.ts'
import { register } from '../helpers/oauth.ts'
import { admin, alice, password, startWorld, type Answer, type World } from '../helpers/oauth-world.ts'

type Step = () => Promise<unknown>

/** A storage of tokens that is overtaken: something happens right before, or right after, tokens are written. */
class Overtaken {
  before: Step | undefined
  after: Step | undefined
  /** How often something happened. */
  times = 0

  wrap (tokens: Tokens): Tokens {
    const run = async <Result>(write: () => Promise<Result>): Promise<Result> => {
      const { before, after } = this
      this.before = this.after = undefined
      if (before ?? after) this.times++
      await before?.()
      const result = await write()
      await after?.()
      return result
    }
    return {
      put: async (authorization, issued) => { await run(async () => { await tokens.put(authorization, issued) }) },
      // Without successors, it tells of a token that is known to be used.
      swap: async (hash, issued) => {
        const swap = async (): ReturnType<Tokens['swap']> => await tokens.swap(hash, issued)
        return issued.length === 0 ? await swap() : await run(swap)
      },
      find: async (hash) => await tokens.find(hash),
      revokedWithin: async (time) => await tokens.revokedWithin(time),
      revoke: async (target) => { await tokens.revoke(target) }
    }
  }
}

/** The ways to end what a user allowed a client. */
const ends: Readonly<Record<string, (world: World, clientId: string) => Promise<Answer>>> = {
  'the client is removed': async (world, clientId) => await world.as(admin, 'DELETE', `/api/oauth/clients/${clientId}`),
  'the user is removed, and made again': async (world) => {
    await world.as(admin, 'DELETE', '/api/users/alice')
    return await world.as(admin, 'POST', '/api/users', { username: 'alice', password })
  },
  'the password is changed': async (world) => await world.as(admin, 'PUT', '/api/users/alice', { newPassword: password }),
  'the consent is withdrawn': async (world, clientId) => await world.as(alice, 'DELETE', `/api/oauth/consents/${clientId}`)
}

test('tokens that are stored while their user or client goes are of no use', async (t) => {
  const tokens = new Overtaken()
  const world = await startWorld(t, { wrap: (storage) => ({ ...storage, tokens: tokens.wrap(storage.tokens) }) })
  const browser = world.browser()
  for (const [what, end] of Object.entries(ends)) {
    for (const when of ['before', 'after'] as const) {
      for (const grant of ['code', 'refresh token'] as const) {
        // Once a refresh token was swapped, its successors are tokens like all others.
        if (when === 'after' && grant === 'refresh token') continue
        const name = `${what} right ${when} the tokens for a ${grant} are stored`
        const { client_id: clientId = '' } = await register(world.base)
        const code = await world.code(alice, {}, clientId, browser)
        const first = grant === 'code' ? undefined : await world.token(code)
        tokens.times = 0
        tokens[when] = async () => {
          const { status, body } = await end(world, clientId)
          assert.ok(status < 300, `${name}: ${JSON.stringify(body)}`)
        }
        const { status, body } = first === undefined
          ? await world.token(code)
          : await world.refresh(String(first.body.refresh_token), clientId)
        assert.equal(tokens.times, 1, name)
        assert.ok(status === 200 || status === 400, `${name}: ${status} ${JSON.stringify(body)}`)
        for (const issued of [first?.body, body]) {
          if (issued?.access_token === undefined) continue
          assert.equal(await world.isValid(String(issued.access_token)), false, name)
          assert.equal((await world.by(String(issued.access_token), 'GET', '/api/servers')).status, 401, name)
          assert.equal((await world.by(String(issued.access_token), 'GET', '/oauth/userinfo')).status, 401, name)
          const again = await world.refresh(String(issued.refresh_token), clientId)
          assert.ok(again.status >= 400 && again.body.access_token === undefined, `${name}: ${JSON.stringify(again.body)}`)
        }
      }
    }
  }
})

test('a provider that could not be loaded is loaded for the next request', async () => {
  let loads = 0
  let isBroken = true
  const providers = new Providers(async (issuer) => {
    loads++
    await Promise.resolve()
    if (isBroken) throw new Error('no memory for the library')
    return { issuer } as Provider
  })
  const [one, other] = await Promise.allSettled([providers.get('http://a'), providers.get('http://a')])
  assert.deepEqual([one.status, other.status, loads], ['rejected', 'rejected', 1])
  isBroken = false
  const provider = await providers.get('http://a')
  assert.equal(await providers.get('http://a'), provider)
  assert.equal(loads, 2)
  for (let n = 0; n < limits.oauth.issuers; n++) await providers.get(`http://${n}`)
  assert.notEqual(await providers.get('http://a'), provider, 'the oldest is forgotten')
})
