// CHILD_USER: servers that are commands, run as another user. Needs root and Linux.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { at, KEY, settings, type Json } from '../helpers/client.ts'
import { spawnHub, until, type Hub } from '../helpers/hub.ts'

const skip = process.platform === 'linux' && process.getuid?.() === 0 ? false : 'it needs Linux and root'

const shell = (script: string, more: Json = {}): Json => ({ command: '/bin/sh', args: ['-c', script], ...more })

async function errorOf (hub: Hub, name: string, pattern: RegExp): Promise<string> {
  let error = ''
  await until(async () => {
    const answer = await fetch(`${hub.url}/api/servers/${name}`, { headers: { authorization: `Bearer ${KEY}` } })
    error = String(at(await answer.json(), 'data', 'error'))
    return pattern.test(error)
  }, () => `${name}: ${error}`)
  return error
}

test('children run as CHILD_USER', { skip, timeout: 60_000 }, async (t) => {
  const closed = await mkdtemp(join(tmpdir(), 'tool-hub-closed-'))
  t.after(async () => { await rm(closed, { recursive: true }) })
  const spy = 'echo "I am $(id -u) $(id -G) in $(pwd) with $HOME" >&2; cat /proc/$PPID/environ >&2; cat "$SETTINGS" >&2; exit 7'
  const hub = await spawnHub(t, {
    settings: settings({}),
    env: { CHILD_USER: '65534:65534', ADMIN_PASSWORD: 'Canary-Word-1', LOG_LEVEL: 'debug' }
  })
  const add = async (name: string, config: Json): Promise<void> => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const answer = await fetch(`${hub.url}/api/servers`, { method: 'POST', headers, body: JSON.stringify({ name, config }) })
    assert.equal(answer.status, 200, await answer.text())
  }

  await t.test('they read neither the environment nor the settings of the gateway', async () => {
    await add('spy', shell(spy, { env: { SETTINGS: hub.settingsPath } }))
    const error = await errorOf(hub, 'spy', /exit code 7/)
    assert.match(error, /I am 65534 65534 in \//)
    assert.match(error, /environ: Permission denied/)
    assert.match(error, /json: Permission denied/)
    assert.doesNotMatch(error + hub.output(), /Canary-Word-1/)
  })

  await t.test('a folder that is closed to them is told of', async () => {
    await add('shut', shell('exit 7', { cwd: closed }))
    await errorOf(hub, 'shut', /the folder ".*tool-hub-closed-.*" is closed to the user .* \(CHILD_USER\)/)
  })

  await t.test('they end with their server, also what left their group', async () => {
    await add('left', shell('setsid sh -c \'while :; do echo still here >&2; sleep 0.2; done\' & wait'))
    await until(() => /still here/.test(hub.output()))
    await fetch(`${hub.url}/api/servers/left`, { method: 'DELETE', headers: { authorization: `Bearer ${KEY}` } })
    const before = hub.output().length
    await new Promise((resolve) => { setTimeout(resolve, 1_000) })
    assert.doesNotMatch(hub.output().slice(before), /still here/)
  })
})

test('a CHILD_USER that does not exist stops the start', { skip, timeout: 30_000 }, async (t) => {
  const hub = await spawnHub(t, { env: { CHILD_USER: 'nobody-of-this-name' }, wait: false })
  await until(() => hub.child.exitCode !== null)
  assert.equal(hub.child.exitCode, 1)
  assert.match(hub.output(), /CHILD_USER: there is no user "nobody-of-this-name"/)
})
