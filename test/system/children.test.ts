// CHILD_USER: servers that are commands, run as another user. Needs root and Linux.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'tap'
import { managed } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { settings, type Json } from '../helpers/client.ts'
import { spawnHub, until, type Hub } from '../helpers/hub.ts'

const skip = process.platform === 'linux' && process.getuid?.() === 0 ? false : 'it needs Linux and root'

const shell = (script: string, more: Json = {}): Json => ({ command: '/bin/sh', args: ['-c', script], ...more })

async function errorOf (hub: Hub, name: string, pattern: RegExp): Promise<string> {
  let error = ''
  await until(async () => {
    error = String((await managed(hub, 'GET', `/servers/${name}`)).error)
    return pattern.test(error)
  }, () => `${name}: ${error}`)
  return error
}

test('children run as CHILD_USER', { skip }, async (t) => {
  const closed = await temporaryFolder(t)
  const spy = 'echo "I am $(id -u) $(id -G) in $(pwd) with $HOME" >&2; cat /proc/$PPID/environ >&2; cat "$SETTINGS" >&2; exit 7'
  const hub = await spawnHub(t, {
    settings: settings({}),
    env: { CHILD_USER: '65534:65534', ADMIN_PASSWORD: 'Canary-Word-1', LOG_LEVEL: 'debug' }
  })
  const add = async (name: string, config: Json): Promise<Json> => await managed(hub, 'POST', '/servers', { name, config })

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
    await errorOf(hub, 'shut', /the user .* \(CHILD_USER\) cannot enter the folder ".*tool-hub-store-.*"/)
  })

  await t.test('they end with their server, also what left their group', async () => {
    await add('left', shell('setsid sh -c \'echo "I am process $$." >&2; while :; do sleep 0.2; done\' & wait'))
    await until(() => /I am process \d+\./.test(hub.output()), hub.output)
    const pid = /I am process (\d+)\./.exec(hub.output())?.[1] ?? ''
    assert.ok(existsSync(`/proc/${pid}`))
    await managed(hub, 'DELETE', '/servers/left')
    await until(() => !existsSync(`/proc/${pid}`), `process ${pid} goes on`)
  })
})

test('a CHILD_USER that does not exist stops the start', { skip }, async (t) => {
  const hub = await spawnHub(t, { env: { CHILD_USER: 'nobody-of-this-name' }, wait: false })
  await until(() => hub.child.exitCode !== null)
  assert.equal(hub.child.exitCode, 1)
  assert.match(hub.output(), /CHILD_USER: there is no user \\"nobody-of-this-name\\"/)
})
