import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { connected, KEY, settings, type Json } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'

test('the catalogue of a server that is removed goes with it, also where it was disabled', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const config = { url: upstream.url }
  const hub = await startHub(t, { settings: settings({ one: config, two: config, three: config }) })
  await connected(hub, 3)
  const folder = join(hub.folder, '.tool-hub', 'catalogues')
  const kept = (): number => existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')).length : 0
  await until(() => kept() === 3)
  const ask = async (method: string, path: string, body?: Json): Promise<number> => {
    const headers = { authorization: `Bearer ${KEY}`, ...(body && { 'content-type': 'application/json' }) }
    return (await fetch(`${hub.url}/api/servers/${path}`, { method, headers, body: body && JSON.stringify(body) })).status
  }
  assert.equal(await ask('DELETE', 'one'), 200)
  await until(() => kept() === 2)
  assert.equal(await ask('POST', 'two/toggle', { enabled: false }), 200)
  assert.equal(kept(), 2, 'a disabled one keeps it')
  assert.equal(await ask('DELETE', 'two'), 200)
  await until(() => kept() === 1)
})

test('the catalogue of a server that was removed while the gateway was down goes at the next start', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const config = { url: upstream.url }
  const hub = await startHub(t, { settings: settings({ one: config, two: config }) })
  await connected(hub, 2)
  const folder = join(hub.folder, '.tool-hub', 'catalogues')
  const kept = (): string[] => existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  await until(() => kept().length === 2)
  await hub.stop()
  writeFileSync(join(folder, 'notes.json'), 'not ours')
  const content = JSON.parse(readFileSync(hub.settingsPath, 'utf8')) as { mcpServers: Json }
  delete content.mcpServers.two
  writeFileSync(hub.settingsPath, JSON.stringify(content))
  const again = await startHub(t, { folder: hub.folder })
  await connected(again, 1)
  await until(() => kept().length === 2, () => kept().join())
  assert.ok(kept().includes('notes.json'), 'what others have put there stays')
})
