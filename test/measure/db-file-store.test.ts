// What a settings file of 10,000 servers costs.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { applyChanges, type SettingsDocument } from '../../db/apply.ts'
import type { Change } from '../../db/store.ts'
import { openFile } from '../fakes/store-file.ts'
import { cpuTime, median } from '../helpers/measured.ts'

const server = (key: string, description = ''): Change => ({ entity: 'mcpServers', key, value: { command: 'node', description } })
const config = {
  type: 'stdio',
  command: 'node',
  args: ['server.js'],
  env: { A: '1' },
  enabled: false,
  owner: 'admin',
  visibility: 'public',
  tools: { echo: { enabled: true } }
}
const settings = {
  users: [{ username: 'admin', isAdmin: true }],
  mcpServers: Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`server-${n}`, config])),
  groups: Array.from({ length: 1_000 }, (_, n) => ({
    id: `g${n}`,
    name: `group ${n}`,
    servers: Array.from({ length: 10 }, (_, m) => ({ name: `server-${n * 10 + m}`, tools: 'all' }))
  }))
}

test('10,000 servers and 1,000 groups: loading, a commit, and an edit', async (t) => {
  const load = await median(t, 'load, ms', async () => {
    const { store } = await openFile(t, settings)
    return await cpuTime(async () => await store.load())
  })
  const { store, elsewhere } = await openFile(t, settings)
  let { version } = await store.load()
  let round = 0
  const commit = await median(t, 'commit, ms', async () => await cpuTime(async () => {
    ({ version } = await store.commit([server(`server-${round++ * 300}`, 'new')], version))
  }))
  const edit = await median(t, 'an edit taken up, ms', async () => {
    await elsewhere([server('server-1', `edited ${round++}`)])
    return await cpuTime(async () => await store.load())
  })
  assert.ok(load < 1_500 && commit < 100 && edit < 500)
})

test('apply takes 20,000 changes in one', async (t) => {
  const changes = Array.from({ length: 10_000 }, (_, n): Change[] => [
    server(`s${n}`), { entity: 'users', key: `u${n}`, value: { username: `u${n}` } }
  ]).flat()
  const time = await median(t, 'apply, ms', async () => await cpuTime(() => {
    assert.equal(Object.keys(applyChanges({} satisfies SettingsDocument, changes).mcpServers as object).length, 10_000)
  }))
  assert.ok(time < 1_000)
})
