// What a gateway withstands (docs/limits.md, SECURITY.md), except memory and time: those are in test/measure.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { nameServer } from '../fakes/name-server.ts'
import { connected, Session, settings, type Json } from '../helpers/client.ts'
import { spawnHub, startHub, until, type Hub } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { alive, stdioFake } from '../helpers/stdio-fake.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

test('clients that declare what nobody declared before', async (t) => {
  setLimits(t, upstreamLimits, { allChildrenPerOwner: 4, childrenPerOwner: 2 })
  const fakes = [stdioFake(t), stdioFake(t), stdioFake(t)]
  const hub = await startHub(t, { settings: settings(Object.fromEntries(fakes.map(({ config }, n) => [`s${n}`, config]))) })
  await connected(hub, fakes.length)
  /** Processes that were started, and those that run. */
  const started = (): number[] => fakes.flatMap(({ log }) => log().filter(({ event }) => event === 'start').map(({ pid }) => pid))
  const running = (): number => started().filter(alive).length
  assert.equal(started().length, fakes.length)

  await t.test('are answered a list without a start of a process', async () => {
    const session = await Session.open(`${hub.url}/mcp`, { capabilities: { elicitation: {}, roots: { listChanged: true } } })
    assert.equal((await session.tools()).length, 11 * fakes.length)
    assert.equal(started().length, fakes.length)
    await session.call('s0-echo', { message: 'hi' })
    assert.equal(started().length, fakes.length + 1, 'a call starts the one that it needs')
  })

  await t.test('start no more processes than one principal may have', async (t) => {
    for (let set = 0; set < 6; set++) {
      const session = await Session.open(`${hub.url}/mcp`, { capabilities: { sampling: { tools: { set } }, elicitation: { form: { set } } } })
      for (let n = 0; n < fakes.length; n++) await session.call(`s${n}-echo`, { message: 'hi' }).catch(() => {})
    }
    t.comment(`${started().length} starts`)
    await until(() => running() <= fakes.length + 4, () => `${running()} processes`)
    const other = await Session.open(`${hub.url}/mcp`, {})
    assert.match(JSON.stringify(await other.call('s0-echo', { message: 'hi' })), /hi/)
  })
})

const users = ['admin', 'ann', 'ben'].map((username) => ({ username, isAdmin: username === 'admin', password: 'none' }))
/** Servers that ann stored, who is no admin. */
const anns = (count: number, urlOf: (n: number) => string, more: Json = {}): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`anns-${n}`, { url: urlOf(n), owner: 'ann', storedByUser: true, ...more }]))
/** Waits until these servers are connected. */
async function isConnected ({ output }: Hub, ...names: string[]): Promise<void> {
  await until(() => names.every((name) => output().includes(`"msg":"${name}: connected, speaks MCP `)), () => output().slice(-4_000))
}

test('60 names of one user that are not answered delay no server of others', async (t) => {
  const upstream = await startUpstream(t)
  const { asked, env } = await nameServer(t)
  const servers = {
    ...anns(60, (n) => `http://n${n}.slow.test:9/mcp`),
    bens: { url: `http://ben.quick.test:${upstream.port}/mcp`, owner: 'ben', storedByUser: true },
    admins: { url: `http://localhost:${upstream.port}/mcp` }
  }
  const hub = await spawnHub(t, { settings: settings(servers, { users }), env: { OUTBOUND_ALLOW: '127.0.0.0/8', ...env } })
  await isConnected(hub, 'bens', 'admins')
  assert.ok(asked.includes('ben.quick.test'))
  // They are looked up one after another, and given up after 10 s: in the two minutes that a test waits at most, there are twelve.
  const slow = new Set(asked.filter((name) => name.endsWith('.slow.test')))
  assert.ok(slow.size > 0 && slow.size <= 12, `${[...slow].join()} are looked up at the same time`)
})
