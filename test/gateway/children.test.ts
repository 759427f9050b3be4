// Servers that are processes, and misbehave: how they are started anew, and what is told of them.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at, connected, failed, initialize, send, Session, settings, silence, text, within } from '../helpers/client.ts'
import { managed } from '../fakes/replica.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'
import { served } from '../helpers/served.ts'
import { alive, stdioFake } from '../helpers/stdio-fake.ts'
import { call } from '../helpers/wire.ts'

const startsOf = ({ log }: ReturnType<typeof stdioFake>): number => log().filter(({ event }) => event === 'start').length
/** How the management API shows a server. */
const shown = async (hub: Hub, name: string): Promise<unknown> => await managed(hub, 'GET', `/servers/${name}`)

test('a process that closes its output but lives is disconnected, and started anew', async (t) => {
  const mute = stdioFake(t, { FAULT_EXTRA: '1' })
  const hub = await served(t, { mute: mute.config })
  const session = await Session.open(`${hub.url}/mcp/mute`)
  const pid = Number(text(await session.call('pid')))
  const before = await shown(hub, 'mute')
  const lost = session.request('tools/call', { name: 'mute', arguments: {} })
  // It may be back before it is looked at a second time: then it has another time of connecting.
  let seen: unknown
  await until(async () => {
    seen = await shown(hub, 'mute')
    return at(seen, 'status') === 'disconnected' || at(seen, 'connectedAt') !== at(before, 'connectedAt')
  }, () => `it is still said to be ${JSON.stringify(at(seen, 'status'))}`)
  if (at(seen, 'status') === 'disconnected') assert.match(String(at(seen, 'error')), /\w/)
  assert.ok(failed(await within('the end of its call', lost)))
  await until(() => startsOf(mute) === 2, 'it was never started again')
  assert.notEqual(Number(text(await within('the next call', session.call('pid')))), pid)
  await until(() => !alive(pid), 'the old process lives on')
  await until(async () => at(await shown(hub, 'mute'), 'status') === 'connected')
})

test('a process that dies of its subscription is not started again and again', async (t) => {
  const mortal = stdioFake(t, { FAULT_MORTAL: '1' }, { isolation: 'session' })
  const hub = await served(t, { mortal: mortal.config })
  const session = await Session.open(`${hub.url}/mcp/mortal`)
  await session.ask('resources/subscribe', { uri: 'r://1' })
  const before = startsOf(mortal)
  await until(() => startsOf(mortal) > before, 'it is not started again')
  // From here on each start comes later than the one before it: without that, there were ten a second. In the minute that the first one may
  // take, there are eight.
  await silence(1_500)
  assert.ok(startsOf(mortal) - before <= 9, `${startsOf(mortal) - before} starts`)
  await session.end()
})

test('no error tells a client what a process wrote to stderr; who runs it is told', async (t) => {
  const [crashing, dead] = [stdioFake(t, { FAULT_EXTRA: '1' }), stdioFake(t, { FAULT_DIE: '1' })]
  const hub = await startHub(t, { settings: settings({ crashing: crashing.config, dead: dead.config }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/crashing`)
  const seen: string[] = []
  for (const [name, args] of [['crash', { secret: 'password-hunter2' }], ['pid', {}]] as const) {
    seen.push(JSON.stringify(await session.request('tools/call', { name, arguments: args })))
  }
  assert.match(seen[0] ?? '', /"error"/)
  const route = `${hub.url}/mcp/dead`
  for (let n = 0; n < 2; n++) {
    const reply = await send(route, { body: initialize() })
    seen.push(reply.body)
    const id = reply.headers.get('mcp-session-id')
    if (id === null) continue
    const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }
    seen.push((await send(route, { headers, body: call('echo') })).body)
  }
  assert.ok(seen.slice(2).some((body) => body.includes('"error"')), seen.join('\n'))
  for (const body of seen) assert.doesNotMatch(body, /hunter2|boom|licence/)
  await until(async () => /licence/.test(String(at(await shown(hub, 'dead'), 'error'))), 'the admin is not told why it died')
})
