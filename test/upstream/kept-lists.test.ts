import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import { NonMcpClient } from '../../protocol/exchange.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { appFor } from '../helpers/app.ts'
import { mockTimers } from '../helpers/clock.ts'
import { setLimits } from '../helpers/patient.ts'
import { connected, settings, type Json } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

/** The names of the files of a folder up to their first dot: a catalogue and what is kept beside it have the same. */
const serversIn = (folder: string): string[] => existsSync(folder)
  ? [...new Set(readdirSync(folder).filter((name) => name.endsWith('.json')).map((name) => name.split('.', 1)[0] ?? ''))]
  : []

test('the catalogue of a server that is removed goes with it, also where it was disabled', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const config = { url: upstream.url }
  const hub = await served(t, { one: config, two: config, three: config })
  const folder = join(hub.folder, '.tool-hub', 'catalogues')
  const kept = (): number => serversIn(folder).length
  await until(() => kept() === 3)
  await managed(hub, 'DELETE', '/servers/one')
  await until(() => kept() === 2)
  await managed(hub, 'POST', '/servers/two/toggle', { enabled: false })
  assert.equal(kept(), 2, 'a disabled one keeps it')
  await managed(hub, 'DELETE', '/servers/two')
  await until(() => kept() === 1)
})

test('the catalogue of a server that was removed while the gateway was down goes at the next start', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const config = { url: upstream.url }
  const hub = await served(t, { one: config, two: config })
  const folder = join(hub.folder, '.tool-hub', 'catalogues')
  const kept = (): string[] => serversIn(folder)
  await until(() => kept().length === 2)
  await hub.stop()
  writeFileSync(join(folder, 'notes.json'), 'not ours')
  const content = JSON.parse(readFileSync(hub.settingsPath, 'utf8')) as { mcpServers: Json }
  delete content.mcpServers.two
  writeFileSync(hub.settingsPath, JSON.stringify(content))
  const again = await startHub(t, { folder: hub.folder })
  await connected(again, 1)
  await until(() => kept().length === 2, () => kept().join())
  assert.ok(kept().includes('notes'), 'what others have put there stays')
})

test('what a silent server calls new is waited for once, and not for long', async (t) => {
  let isSilent = false
  const upstream = await startUpstream(t, { tools: [tool('echo')], on: ({ method }) => isSilent && method === 'tools/list' ? 'never' : undefined })
  const app = await appFor(t, settings({ s: { url: upstream.url } }))
  await until(() => app.upstreams.get('s')?.status === 'connected')
  const server = app.upstreams.get('s') ?? assert.fail()
  const client = new NonMcpClient('a', 'a', 'a', false)
  await until(() => server.loadLists(client, true).length === 0, 'its lists are not known')
  isSilent = true
  setLimits(t, gatewayLimits, { firstAnswerBudget: 60_000 })
  await upstream.broadcast('notifications/tools/list_changed')
  await until(() => server.loadLists(client, true).length === 1, 'it is not read again')
  const [first] = server.loadLists(client, true)
  assert.ok(first && first.maxWait > 0 && first.maxWait <= gatewayLimits.firstAnswerBudget)
  const late = Date.now() + gatewayLimits.firstAnswerBudget
  mockTimers(t, 'Date')
  mock.timers.setTime(late)
  assert.deepEqual(server.loadLists(client, true), [])
})
