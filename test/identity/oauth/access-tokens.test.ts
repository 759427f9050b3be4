// The cache of access tokens: how often it asks the storage, and when a token ends.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import type { StoredToken, OAuthTokens } from '../../../db/ports/tokens.ts'
import { AccessTokens } from '../../../plugins/identity/access-tokens.ts'
import { sha256 } from '../../../plugins/base/secrets/hash.ts'
import { mockTimers } from '../../helpers/clock.ts'
import type { Cleanup } from '../../helpers/hub.ts'

const text = 't'.repeat(43)
const minute = 60_000

interface Made { tokens: AccessTokens, lookUps: () => number, news: string[], revokeElsewhere: () => void }

/** One access token in a storage, and the cache before it. @param life of the token, in ms */
function start (t: Cleanup, life = 60 * minute): Made {
  mockTimers(t, 'setInterval', 'Date')
  const token: StoredToken = { hash: sha256(text), family: 'family', clientId: 'client', username: 'ann', kind: 'access', scope: 'mcp', expiresAt: Date.now() + life }
  let [lookUps, isRevoked] = [0, false]
  const storage: Pick<OAuthTokens, 'find' | 'listRevokedWithin' | 'revoke'> = {
    find: async () => {
      lookUps++
      return isRevoked || token.expiresAt <= Date.now() ? undefined : token
    },
    listRevokedWithin: async () => isRevoked ? ['family'] : [],
    revoke: async () => { isRevoked = true }
  }
  const tokens = new AccessTokens(storage as OAuthTokens, { find: async () => ({}) as never })
  t.after(() => { tokens.close() })
  const news: string[] = []
  tokens.on('ended', (family) => { news.push(`ended ${family}`) }).on('expired', (family) => { news.push(`expired ${family}`) })
  return { tokens, lookUps: () => lookUps, news, revokeElsewhere: () => { isRevoked = true } }
}

/** Lets what was begun by a timer end. */
const turns = async (): Promise<void> => { for (let n = 0; n < 10; n++) await new Promise((resolve) => { setImmediate(resolve) }) }

test('the storage is asked for a token once in 2 s, and calls wait for it only after 4 s', async (t) => {
  const { tokens, lookUps } = start(t)
  for (let n = 0; n < 1_000; n++) assert.ok(await tokens.find(text))
  assert.equal(lookUps(), 1)
  mock.timers.tick(2_001)
  for (let n = 0; n < 1_000; n++) assert.ok(!(tokens.find(text) instanceof Promise), 'a call waits for the storage')
  await turns()
  assert.equal(lookUps(), 2)
  mock.timers.tick(4_001)
  const found = tokens.find(text)
  assert.ok(found instanceof Promise && await found)
  assert.equal(tokens.find('no token'), undefined)
  assert.equal(lookUps(), 3)
})

test('a revocation on another replica counts within 4 s, one made here at once', async (t) => {
  await t.test('on another one', async (t) => {
    const { tokens, news, revokeElsewhere } = start(t)
    await tokens.find(text)
    revokeElsewhere()
    mock.timers.tick(4_000)
    await turns()
    assert.deepEqual([await tokens.find(text), news], [undefined, ['ended family']])
  })
  await t.test('here', async (t) => {
    const { tokens, news } = start(t)
    await tokens.find(text)
    await tokens.revoke({ clientId: 'client', username: 'bob' })
    assert.deepEqual(news, [])
    await tokens.revoke({ username: 'ann' })
    assert.deepEqual([await tokens.find(text), news], [undefined, ['ended family']])
  })
})

test('a flood of unknown tokens delays neither known ones nor those of other addresses', async (t) => {
  mockTimers(t, 'setInterval', 'Date')
  const own = sha256(text)
  const token: StoredToken = { hash: own, family: 'f', clientId: 'c', username: 'ann', kind: 'access', scope: 'mcp', expiresAt: Date.now() + 60 * minute }
  let open = (): void => {}
  const gate = new Promise<void>((resolve) => { open = resolve })
  const find = async (hash: string): Promise<StoredToken | undefined> => {
    // The storage is slow for all but the known token.
    if (hash !== own) await gate
    return hash === own ? token : undefined
  }
  const storage: Pick<OAuthTokens, 'find' | 'listRevokedWithin'> = { find, listRevokedWithin: async () => [] }
  const tokens = new AccessTokens(storage as OAuthTokens, { find: async () => ({}) as never })
  t.after(() => { tokens.close() })
  assert.ok(await tokens.find(text, '192.0.2.1'))
  const done: string[] = []
  const ask = async (address: string, name: string): Promise<void> => {
    await tokens.find(name.padStart(43, 'x'), address)
    done.push(address)
  }
  const flood = Array.from({ length: 500 }, async (_, n) => { await ask('192.0.2.66', `a${n}`) })
  const other = ask('192.0.2.2', 'b')
  await turns()
  for (const age of [2_001, 4_001, 60_000]) {
    mock.timers.tick(age)
    assert.ok(await tokens.find(text, '192.0.2.66'), `${age} ms later`)
  }
  open()
  await Promise.all([...flood, other])
  assert.ok(done.indexOf('192.0.2.2') < 20, String(done.indexOf('192.0.2.2')))
})

test('a token that has expired is of no use at once; its authorization ends half an hour later', async (t) => {
  const { tokens, news } = start(t, 2_000)
  assert.ok(await tokens.find(text))
  mock.timers.tick(1_999)
  assert.ok(await tokens.find(text))
  mock.timers.tick(1)
  assert.equal(await tokens.find(text), undefined)
  mock.timers.tick(minute)
  assert.deepEqual(news, ['expired family'])
  mock.timers.tick(30 * minute)
  assert.deepEqual(news, ['expired family', 'ended family'])
})
