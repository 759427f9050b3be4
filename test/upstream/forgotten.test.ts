import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
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
