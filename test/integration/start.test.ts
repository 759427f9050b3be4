// How a process starts: where its files are, and where its output goes.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { settings, within } from '../helpers/client.ts'
import { spawnHub, startHub, until, type ProcessHub, type ProcessOptions } from '../helpers/hub.ts'

const skip = existsSync('/proc/self/stat') ? false : 'needs the file system /proc of Linux'

test('a path in which no folder can be made ends the start with a sentence', { skip }, async (t) => {
  for (const [variable, value, folder] of [
    ['DB_URL', 'pglite:///proc/none/db', '/proc/none'],
    ['DB_URL', 'pglite:///proc/db', '/proc'],
    ['SETTINGS_PATH', '/proc/none/x.json', '/proc/none']
  ] as const) {
    await t.test(`${variable}=${value}`, async (t) => {
      const sentence = new RegExp(`^The folder ${folder} cannot be used, since .* Change ${variable} to a place`, 'm')
      await assert.rejects(startHub(t, { env: { [variable]: value } }), { message: sentence })
    })
  }

  await t.test('as a process: exit code 1', async (t) => {
    const hub = await spawnHub(t, { env: { SETTINGS_PATH: '/proc/none/x.json' }, wait: false })
    await until(() => hub.child.exitCode !== null, () => `it has not ended: ${hub.output()}`)
    assert.equal(hub.child.exitCode, 1)
    assert.match(hub.output(), /^The folder \/proc\/none cannot be used/m)
  })
})

test('a DATA_DIR that cannot be made is told of, and the gateway serves', { skip }, async (t) => {
  const hub = await spawnHub(t, { settings: settings({}), env: { DATA_DIR: '/proc/none' } })
  await until(() => hub.output().includes('Change DATA_DIR to a place'), hub.output)
  assert.equal((await fetch(`${hub.url}/health`)).status, 200)
  assert.equal(await hub.stop(), 0)
})

test('an ADMIN_PASSWORD that comes too late is told of, and a mistyped variable', async (t) => {
  const users = [{ username: 'ada', isAdmin: true }]
  const hub = await spawnHub(t, { settings: { ...settings({}), users }, env: { ADMIN_PASSWORD: 'canary-Password-1', ALLOW_HOSTS: 'a' } })
  await until(() => hub.output().includes('MCP endpoint'), hub.output)
  assert.equal(hub.output().match(/ADMIN_PASSWORD has no effect.*tool-hub user reset-password <username>/g)?.length, 1)
  assert.match(hub.output(), /ALLOW_HOSTS is not known and has no effect: did you mean ALLOWED_HOSTS\?/)
  assert.ok(!hub.output().includes('canary'))
  assert.equal(await hub.stop(), 0)
})

/** A gateway whose output nobody reads any more after the first line. */
async function cutShort (t: Test, options: ProcessOptions): Promise<ProcessHub> {
  const hub = await spawnHub(t, { ...options, wait: false })
  hub.child.stdout?.once('data', () => {
    hub.child.stdout?.destroy()
    hub.child.stderr?.destroy()
  })
  await until(async () => (await fetch(`${hub.url}/health`)).ok, () => `exit code ${hub.child.exitCode}: ${hub.output()}`)
  return hub
}

test('an output that is closed neither stops the gateway nor keeps it from stopping', async (t) => {
  await t.test('at a first start, which then spends no password', async (t) => {
    const hub = await cutShort(t, {})
    // Made once the first admin is done with.
    await until(() => existsSync(join(hub.folder, '.tool-hub/command-line.json')), hub.output)
    assert.equal((await fetch(`${hub.url}/health`)).status, 200)
    assert.equal(await within('its end', hub.stop()), 0)
    const stored = await readFile(hub.settingsPath, 'utf8').catch(() => '{}')
    assert.deepEqual((JSON.parse(stored) as { users?: unknown[] }).users ?? [], [])
  })

  await t.test('at a later start', async (t) => {
    const hub = await cutShort(t, { settings: settings({}, { users: [{ username: 'admin', password: 'x', isAdmin: true }] }) })
    assert.equal(await within('its end', hub.stop()), 0)
  })
})
