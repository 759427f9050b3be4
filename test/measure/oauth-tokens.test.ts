// What many access tokens in the database cost a gateway. It needs PostgreSQL.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { cpuTime } from '../../bench/processes.ts'
import { spawnReplica } from '../fakes/replica.ts'
import { Session, sleep } from '../helpers/client.ts'
import { median } from '../helpers/measured.ts'
import { redeem, startReplicas, Visitor } from '../helpers/oauth-replicas.ts'
import { register } from '../helpers/oauth.ts'

test('100,000 tokens in the database cost a call and a refresh nothing', async (t) => {
  const { url, hubs: [a, b], db } = await startReplicas(t, spawnReplica)
  const visitor = new Visitor(url, (await register(url)).client_id ?? '')
  const tokens = (await redeem(a, await visitor.code())).body
  const session = await Session.open(`${a.url}/mcp`, { key: tokens.access_token })
  let last = (await redeem(b, await visitor.code())).body
  /** CPU of the gateway for a call, in ms. */
  const ofCall = async (): Promise<number> => {
    const before = cpuTime(a.pid)
    for (let n = 0; n < 40; n++) {
      await Promise.all(Array.from({ length: 10 }, async () => await session.call('fake-echo', { message: 'hi' })))
    }
    return (cpuTime(a.pid) - before) / 400
  }
  /** Time of a refresh, in ms. A sequential scan would slow down every one. */
  const ofRefresh = async (): Promise<number> => {
    const times: number[] = []
    for (let n = 0; n < 11; n++) {
      const since = performance.now()
      last = (await redeem(a, visitor.refresh(last))).body
      times.push(performance.now() - since)
    }
    return Math.min(...times)
  }
  const measure = async (when: string): Promise<[call: number, refresh: number]> =>
    [await median(t, `ms of CPU of a call ${when}`, ofCall), await median(t, `ms of a refresh ${when}`, ofRefresh)]

  await ofCall()
  const [call, refresh] = await measure('before')
  await db.query(`INSERT INTO records (id, collection, version, value, owner, labels, at, changed, expires)
    SELECT 'oauthTokens/' || hash, 'oauthTokens', 'v' || n || kind,
      json_build_object('hash', hash, 'kind', kind, 'family', 'family ' || n, 'clientId', 'client ' || n % 100, 'username', 'user ' || n % 1000,
        'mark', 'mark', 'scope', 'mcp profile', 'expiresAt', (extract(epoch from now()) + 864000)::bigint * 1000)::text,
      'family ' || n, array['family:family ' || n, 'client:client ' || n % 100, 'user:user ' || n % 1000, 'mark:mark'],
      now(), now(), now() + interval '10 days'
    FROM (SELECT n, kind, encode(sha256((kind || n)::bytea), 'hex') AS hash
      FROM generate_series(1, 50000) n, unnest(array['access', 'refresh']) kind) made`)
  // Until the cache of tokens asks the database again, and the database has written what was added.
  await sleep(6_000)
  const [callAfter, refreshAfter] = await measure('after')
  assert.ok(callAfter < 1.5 * call + 0.05, `${callAfter} after ${call}`)
  assert.ok(refreshAfter < 3 * refresh + 5, `${refreshAfter} after ${refresh}`)
})
