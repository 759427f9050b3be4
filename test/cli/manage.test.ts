// Groups, users, and servers that are changed, by the command line within this process; no gateway runs.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { appFor } from '../helpers/app.ts'
import { cli } from '../helpers/cli.ts'
import { KEY, settings as settingsOf, type Json } from '../helpers/client.ts'
import type { Cleanup } from '../helpers/hub.ts'

const headers = { Authorization: 'Bearer the-secret-of-the-server' }
const settings = {
  users: [{ username: 'admin', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: true }],
  mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', headers }, two: { command: 'node', args: ['x'], env: { A: 'b' } } }
}

/** A folder with these settings, and its command line. */
async function start (t: Cleanup) {
  const folder = await temporaryFolder(t)
  const path = join(folder, 'mcp_settings.json')
  await writeFile(path, JSON.stringify(settings))
  const env = { SETTINGS_PATH: path, HOME: folder }
  const stored = async (): Promise<{ mcpServers: Record<string, Json>, groups?: Json[], users: Json[] }> =>
    JSON.parse(await readFile(path, 'utf8')) as { mcpServers: Record<string, Json>, groups?: Json[], users: Json[] }
  return { folder, env, stored, run: cli(env) }
}

test('group: list, create, add, remove', async (t) => {
  const { run, stored } = await start(t)
  assert.match((await run('group', 'list')).out, /^There are no groups yet: tool-hub group create/)
  assert.deepEqual(await run('group', 'create', 'daily', 'one', '--description', 'What everybody needs'),
    { code: 0, out: 'The group "daily" has one\n', err: '' })
  assert.equal((await run('group', 'add', 'daily', 'two')).out, 'The group "daily" has one, two\n')
  assert.match((await run('group', 'list')).out, /^daily +one, two +\S* +What everybody needs$/m)
  const [listed] = JSON.parse((await run('group', 'list', '--json')).out) as Json[]
  assert.deepEqual([listed?.name, listed?.servers], ['daily', ['one', 'two']])
  assert.equal((await run('group', 'remove', 'daily', 'one')).out, 'The group "daily" has two\n')
  for (const [args, says] of [
    [['group', 'add', 'daily', 'none'], /none/], [['group', 'add', 'none', 'one'], /There is no such group: "none"/],
    [['group', 'create', 'daily'], /daily/], [['group', 'remove', 'none'], /There is no such group: "none"/]
  ] as const) {
    const { code, err } = await run(...args)
    assert.equal(code, 1, args.join(' '))
    assert.match(err, says)
  }
  assert.equal((await run('group', 'remove', 'daily')).out, 'The group was removed\n')
  assert.deepEqual((await stored()).groups ?? [], [])
  assert.equal((await run('group')).code, 2)
})

test('user: list, create', async (t) => {
  const { run, env, stored } = await start(t)
  const made = await run('user', 'create', 'ada')
  assert.match(made.out, /^[\w-]{20}\n$/, 'the password alone')
  assert.match(made.err, /^This is the password of "ada"\. It is shown only once\.$/m)
  const given = await cli(env, { input: 'Analytical-1\n' })('user', 'create', 'grace', '--admin', '--password-stdin')
  assert.deepEqual(given, { code: 0, out: 'The user "grace" was added\n', err: '' })
  assert.match((await run('user', 'list')).out, /^USERNAME +ROLE\nadmin +admin\nada +user\ngrace +admin\n$/)
  assert.deepEqual(JSON.parse((await run('user', 'list', '--json')).out), [
    { username: 'admin', isAdmin: true }, { username: 'ada', isAdmin: false }, { username: 'grace', isAdmin: true }
  ])
  assert.equal((await run('user', 'create', 'ada')).code, 1)
  const weak = await cli(env, { input: 'short' })('user', 'create', 'bob', '--password-stdin')
  assert.deepEqual([weak.code, /8/.test(weak.err)], [1, true], weak.err)
  assert.deepEqual((await stored()).users.map(({ username }) => username), ['admin', 'ada', 'grace'])
})

test('enable, disable', async (t) => {
  const { run, stored } = await start(t)
  assert.deepEqual(await run('disable', 'one'), { code: 0, out: 'The server was disabled\n', err: '' })
  assert.equal((await stored()).mcpServers.one?.enabled, false)
  assert.equal((JSON.parse((await run('enable', 'one', '--json')).out) as Json).enabled, true)
  const { code, err } = await run('enable', 'none')
  assert.deepEqual([code, err], [1, 'tool-hub: There is no such server: "none"\n'])
})

test('edit by options: what is not named stays, secrets too', async (t) => {
  const { run, env, stored } = await start(t)
  assert.deepEqual(await run('edit', 'one', '--description', 'Issues', '--header', 'X-A: 1', '--visibility', 'public'),
    { code: 0, out: 'The server "one" was changed\n', err: '' })
  const one = (await stored()).mcpServers.one
  assert.deepEqual([one?.description, one?.headers, one?.visibility], ['Issues', { ...headers, 'X-A': '1' }, 'public'])
  assert.equal((await run('edit', 'two', '--env', 'C=d', '--name', 'second')).out, 'The server "second" was changed\n')
  assert.deepEqual((await stored()).mcpServers.second?.env, { A: 'b', C: 'd' })
  const whole = JSON.stringify({ command: 'node', args: ['y'] })
  assert.equal((await cli(env, { input: whole })('edit', 'second', '--config-json', '-')).code, 0)
  assert.deepEqual((await stored()).mcpServers.second?.args, ['y'])
  for (const [args, exit, says] of [
    [['edit', 'one'], 2, /Specify what to change/], [['edit', 'none', '--description', 'x'], 1, /There is no such server: "none"/],
    [['edit', 'one', '--config-json', '{'], 2, /not JSON/], [['edit', 'one', '--config-json', '[]'], 2, /expected an object/],
    [['edit', 'one', '--env', 'x'], 2, /expected NAME=value/]
  ] as const) {
    const { code, err } = await run(...args)
    assert.equal(code, exit, args.join(' '))
    assert.match(err, says)
  }
})

test('add joins --config-json with the target and the other options', async (t) => {
  const { run, stored } = await start(t)
  const url = 'http://127.0.0.1:9/mcp'
  const json = (config: object): [string, string] => ['--config-json', JSON.stringify(config)]
  assert.equal((await run('add', 'three', ...json({ url, headers: { a: '1' } }), '--header', 'b: 2')).code, 0)
  assert.equal((await run('add', 'four', url, ...json({ url: 'http://127.0.0.1:9/other', options: { timeout: 1000 } }))).code, 0)
  assert.equal((await run('add', 'five', ...json({ command: 'node', args: ['x'] }), '--env', 'A=b', '--disabled')).code, 0)
  for (const [target, config, conflicting] of [
    [[url], { command: 'node' }, 'command'], [[url], { args: [] }, 'args'], [['--', 'node', 'x'], { url }, 'url']
  ] as const) {
    const { code, err } = await run('add', 'six', ...json(config), ...target)
    assert.deepEqual([code, err.includes(`--config-json has "${conflicting}", but the target is a`)], [2, true], err)
  }
  const { three, four, five, six } = (await stored()).mcpServers
  assert.equal(six, undefined)
  assert.deepEqual([three?.url, three?.headers, four?.url, four?.options, five?.args, five?.env], [url, { a: '1', b: '2' }, url, { timeout: 1000 }, ['x'], { A: 'b' }])
})

test('edit in an editor', async (t) => {
  const { folder, env, stored } = await start(t)
  const editing = async (script: string, EDITOR = `node ${join(folder, 'editor.cjs')} --wait`) => {
    await writeFile(join(folder, 'editor.cjs'), `const fs = require('fs'); const file = process.argv.at(-1); ${script}`)
    return await cli({ ...env, EDITOR }, { isTerminal: true })('edit', 'one', '--no-color')
  }
  const changed = await editing(`
    const config = JSON.parse(fs.readFileSync(file)); config.description = 'edited'
    if (fs.statSync(file).mode % 512 !== 0o600 || !config.headers.Authorization.startsWith('••••')) process.exit(1)
    fs.writeFileSync(file, JSON.stringify(config))`)
  assert.deepEqual([changed.code, changed.out], [0, 'The server "one" was changed\n'], changed.err)
  const { one } = (await stored()).mcpServers
  assert.deepEqual([one?.description, one?.headers], ['edited', headers], 'a mask keeps the secret')
  assert.equal((await editing('')).out, 'Nothing was changed\n')
  const broken = await editing('fs.writeFileSync(file, "{")')
  assert.equal(broken.code, 1)
  const [, kept = ''] = /your text is in (\S+)/.exec(broken.err) ?? []
  assert.equal(await readFile(kept, 'utf8'), '{')
  assert.match((await editing('process.exit(3)')).err, /The editor .* failed, so "one" was not changed/)
  const refused = await editing('fs.writeFileSync(file, JSON.stringify({ command: 5 }))')
  assert.match(refused.err, /command.* "one" was not changed; your text is in \S+/s)
})

test('edit in an editor while somebody else changes the server: theirs stays, and the text too', async (t) => {
  const folder = await temporaryFolder(t)
  const app = await appFor(t, settingsOf({ one: { url: 'http://127.0.0.1:9/mcp', enabled: false } }))
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const env = { TOOL_HUB_URL: url, TOOL_HUB_KEY: KEY, HOME: folder, EDITOR: `node ${join(folder, 'editor.cjs')}` }
  await writeFile(join(folder, 'editor.cjs'), `
    const fs = require('fs'); const file = process.argv.at(-1); const config = JSON.parse(fs.readFileSync(file))
    fs.writeFileSync(file, JSON.stringify({ ...config, description: 'mine' }))
    const body = JSON.stringify({ config: { ...config, description: 'theirs' } })
    fetch('${url}/api/servers/one', { method: 'PUT', headers: { authorization: 'Bearer ${KEY}', 'content-type': 'application/json' }, body })
      .then(({ ok }) => { process.exit(ok ? 0 : 1) })`)
  const { code, err } = await cli(env, { isTerminal: true })('edit', 'one', '--no-color')
  assert.equal(code, 1)
  const [, kept = ''] = /changed in the meantime.*"one" was not changed; your text is in (\S+)/s.exec(err) ?? assert.fail(err)
  assert.match(await readFile(kept, 'utf8'), /mine/)
  assert.equal(app.settings.current.servers.get('one')?.config.description, 'theirs')
})

test('completions know these commands, and their options', async (t) => {
  const { run } = await start(t)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { out } = await run('completion', shell)
    for (const word of ['group', 'user', 'enable', 'disable', 'edit', 'list create add remove', 'list create reset-password', '--config-json', '--admin']) {
      assert.ok(out.includes(word), `${shell}: ${word}`)
    }
  }
})
