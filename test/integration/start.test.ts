// How a process starts: where its files are, and where its output goes. A terminal is that of script(1), from util-linux.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { shellQuote } from '../../plugins/base/config/first-start.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { at, settings, within } from '../helpers/client.ts'
import {
  firstWordsIn, freePort, path, serverProgram, spawnHub, startHub, until, type ProcessHub, type ProcessOptions
} from '../helpers/hub.ts'
import { onTerminal, skipWithoutTerminal, type Terminal } from '../helpers/terminal.ts'

const skip = existsSync('/proc/self/stat') ? false : 'needs the file system /proc of Linux'

test('a path in which no folder can be made ends the start with a sentence', { skip }, async (t) => {
  for (const [variable, value, folder] of [
    ['DB_URL', 'pglite:///proc/none/db', '/proc/none'],
    ['DB_URL', 'pglite:///proc/db', '/proc'],
    ['SETTINGS_PATH', '/proc/none/x.json', '/proc/none']
  ] as const) {
    await t.test(`${variable}=${value}`, async (t) => {
      const sentence = new RegExp(`^The folder ${folder} cannot be used, since .* Set ${variable} to a folder`, 'm')
      await assert.rejects(startHub(t, { env: { [variable]: value } }), { message: sentence })
    })
  }

  await t.test('as a process: exit code 1', async (t) => {
    const hub = await spawnHub(t, { env: { SETTINGS_PATH: '/proc/none/x.json' }, wait: false })
    await until(() => hub.child.exitCode !== null, () => `it has not ended: ${hub.output()}`)
    assert.equal(hub.child.exitCode, 1)
    assert.match(hub.output(), /"level":60,.*"msg":"The folder \/proc\/none cannot be used/)
  })
})

test('a DATA_DIR that cannot be made is told of, and the gateway serves', { skip }, async (t) => {
  const hub = await spawnHub(t, { settings: settings({}), env: { DATA_DIR: '/proc/none' } })
  await until(() => hub.output().includes('Set DATA_DIR to a folder'), hub.output)
  assert.equal((await fetch(`${hub.url}/health`)).status, 200)
  assert.equal(await hub.stop(), 0)
})

test('a second gateway over other settings does not take the DATA_DIR of the first', { skip }, async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'data')
  const first = await spawnHub(t, { settings: settings({}), env: { DATA_DIR: dataDir } })
  // It is written once the first admin is stored; /health answers before.
  await until(() => existsSync(join(dataDir, 'command-line.json')))
  const written = await readFile(join(dataDir, 'command-line.json'), 'utf8')
  const second = await spawnHub(t, { settings: settings({}), env: { DATA_DIR: dataDir }, wait: false })
  await until(() => second.child.exitCode !== null, () => `it has not ended: ${second.output()}`)
  assert.equal(second.child.exitCode, 1)
  assert.match(second.output(), /DATA_DIR .* is used by another gateway \(process \d+\)\. Stop that process first/)
  assert.equal(await readFile(join(dataDir, 'command-line.json'), 'utf8'), written)
  assert.equal(await first.stop(), 0)
  const third = await spawnHub(t, { settings: settings({}), env: { DATA_DIR: dataDir } })
  assert.equal(await third.stop(), 0)
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
  await t.test('at a first start, which tells its password in a file', async (t) => {
    const hub = await cutShort(t, {})
    await until(() => hub.firstWords().includes(' add everything '), hub.output)
    assert.equal((await fetch(`${hub.url}/health`)).status, 200)
    assert.equal(await within('its end', hub.stop()), 0)
    assert.equal(at(JSON.parse(await readFile(hub.settingsPath, 'utf8')), 'users', 0, 'username'), 'admin')
  })

  await t.test('at a later start', async (t) => {
    const hub = await cutShort(t, { settings: settings({}, { users: [{ username: 'admin', password: 'x', isAdmin: true }] }) })
    assert.equal(await within('its end', hub.stop()), 0)
  })
})

test('a disk that is full under the log does not end the gateway', { skip: existsSync('/dev/full') ? false : 'needs /dev/full of Linux' }, async (t) => {
  for (const where of ['>/dev/full', '>/dev/full 2>&1']) {
    const folder = await temporaryFolder(t)
    const port = await freePort()
    const child = spawn('sh', ['-c', `exec "$@" ${where}`, 'sh', ...serverProgram()], {
      cwd: path(''), env: { PATH: process.env.PATH ?? '', HOME: folder, PORT: String(port), SETTINGS_PATH: join(folder, 's.json'), LOG_LEVEL: 'debug' }
    })
    t.after(() => { child.kill('SIGKILL') })
    const ended = new Promise((resolve) => { child.once('exit', resolve) })
    const health = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok
    await until(health, () => `exit code ${child.exitCode}`)
    assert.match(firstWordsIn(join(folder, '.tool-hub')), /with password/)
    assert.ok(await health())
    child.kill('SIGTERM')
    assert.equal(await within('its end', ended), 0)
  }
})

test('a terminal that is gone', { skip: skipWithoutTerminal }, async (t) => {
  /** A gateway on a terminal. @param line starts the program "$@", and leaves its pid in the file `pid` */
  const start = async (t: Test, line: string): Promise<{ terminal: Terminal, pid: number, ready: () => Promise<boolean> }> => {
    const folder = await temporaryFolder(t)
    const port = await freePort()
    const program = `set -- ${serverProgram().map(shellQuote).join(' ')}; ${line}`
    const env = { HOME: folder, PORT: String(port), SETTINGS_PATH: join(folder, 's.json'), PID_FILE: join(folder, 'pid') }
    const terminal = onTerminal(t, program, { cwd: path(''), env })
    await until(() => / call everything echo .*\n/.test(terminal.output()), terminal.output)
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'))
    t.after(() => { try { process.kill(pid, 'SIGKILL') } catch {} })
    const ready = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok
    return { terminal, pid, ready }
  }
  const isThere = (pid: number): boolean => { try { return process.kill(pid, 0) } catch { return false } }

  await t.test('ends the gateway that it started', async (t) => {
    const { terminal, pid } = await start(t, 'echo $$ >"$PID_FILE"; exec "$@"')
    terminal.hangUp()
    await until(() => !isThere(pid), () => `it is still there: ${terminal.output()}`)
  })

  await t.test('does not end one in another session, which obeys SIGTERM all the same', async (t) => {
    const { terminal, pid, ready } = await start(t, 'setsid sh -c \'echo $$ >"$PID_FILE"; exec "$@"\' sh "$@"')
    terminal.hangUp()
    await terminal.ended
    assert.ok(await ready())
    process.kill(pid, 'SIGTERM')
    await until(() => !isThere(pid), () => `it is still there: ${terminal.output()}`)
  })
})
