// Gateways on an embedded database, as processes.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'tap'
import { connected, Session, settings, text, within } from '../helpers/client.ts'
import { emptyFolder, pglite } from '../helpers/database.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { loggedIn, managed, parked, serverNames, spawnReplica } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

const timeout = 90_000

// The first one takes seconds, and no test shall pay for it.
before(emptyFolder)

void test(
  'a gateway on an embedded database: all of it is there after a restart, and a second gateway is refused',
  { timeout },
  async (t) => {
    const { url, folder } = await pglite(t)
    const upstream = await startUpstream(t)
    const hub = await spawnReplica(t, url, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
    await connected(hub, 1)
    assert.equal(text(await (await Session.open(`${hub.url}/mcp`)).call('fake-echo', { message: 'embedded' })), 'embedded')
    const headers = await loggedIn(hub)
    await managed(hub, 'POST', '/servers', { name: 'kept', config: { ...parked(), headers: { 'X-Secret': 'canary-of-a-header' } } })
    const key = await managed(hub, 'POST', '/auth/keys', { name: 'kept' })
    const second = await spawnReplica(t, url, { wait: false })
    if (second.child.exitCode === null) await within(20_000, 'the exit', once(second.child, 'exit'))
    assert.equal(second.child.exitCode, 1, second.output())
    assert.ok(second.output().includes(folder), `the folder is not named: ${second.output()}`)
    assert.doesNotMatch(second.output(), /^\s+at .+:\d+:\d+\)?$/m)
    await managed(hub, 'POST', '/servers', { name: 'later', config: parked() })
    assert.equal(await hub.stop(), 0)

    const again = await spawnReplica(t, url)
    assert.deepEqual(await serverNames(again, headers), ['fake', 'kept', 'later'])
    await Session.open(`${again.url}/mcp`, { key: String(key.token) })
    again.child.kill('SIGKILL')
    await again.stop()
    // What a killed process leaves behind keeps nobody out.
    assert.deepEqual(await serverNames(await spawnReplica(t, url), headers), ['fake', 'kept', 'later'])
  }
)

void test('a gateway on a settings file loads no database', { timeout }, async (t) => {
  const folder = await temporaryFolder(t)
  const hub = await spawnReplica(t, '', { env: { NODE_V8_COVERAGE: folder } })
  assert.equal(await hub.stop(), 0)
  const loaded = await Promise.all((await readdir(folder)).map(async (name) => await readFile(join(folder, name), 'utf8')))
  const urls = loaded.flatMap((report) => (JSON.parse(report) as { result: Array<{ url: string }> }).result.map(({ url }) => url))
  assert.ok(urls.some((url) => /\/db\/open\.(ts|js)$/.test(url)), 'no report of what was loaded')
  assert.deepEqual(urls.filter((url) => /node_modules\/(@electric-sql|postgres|drizzle-orm)\//.test(url)), [])
})
