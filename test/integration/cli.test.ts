/* eslint-disable no-control-regex -- escape sequences of terminals */
// The command line against a real gateway: each command, over a settings file and over PostgreSQL (in the soak over PGlite, too), through a
// pipe and on a terminal, and with the gateway down. Commands run within this process; the last test has what only a process can show. What
// asks a running gateway is the same over any storage: over a database, all of it runs in `npm run soak` only.
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { startLoginServer } from '../fakes/login-server.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { cli, type CliOptions, type Ended } from '../helpers/cli.ts'
import { database, pglite } from '../helpers/database.ts'
import { isFull } from '../helpers/full.ts'
import { cliProgram, npmServer, path, spawnHub, until, type ProcessHub } from '../helpers/hub.ts'

type Json = Record<string, any> // eslint-disable-line @typescript-eslint/no-explicit-any
type Mode = 'a settings file' | 'PostgreSQL' | 'PGlite'

/** A gateway, and the command line of its environment. */
interface World {
  mode: Mode
  folder: string
  settings: string
  /** The credential of the command line. */
  access: string
  env: Record<string, string>
  hub: ProcessHub
  hubCli: (...args: string[]) => Promise<Ended>
  /** What a command prints that succeeds. */
  ok: (...args: string[]) => Promise<string>
  json: (...args: string[]) => Promise<Json>
}

async function start (t: Test, mode: Mode): Promise<World> {
  const folder = await temporaryFolder(t)
  const settings = join(folder, 'mcp_settings.json')
  const { url: dbUrl } = mode === 'a settings file' ? { url: undefined } : await (mode === 'PGlite' ? pglite : database)(t)
  const env: Record<string, string> = {
    SETTINGS_PATH: settings,
    HOME: folder,
    TERM: 'xterm',
    // The authorization server of a fake has an origin of its own.
    OUTBOUND_ALLOW: '127.0.0.1',
    ...(dbUrl === undefined ? {} : { DB_URL: dbUrl })
  }
  const hub = await spawnHub(t, { folder, env })
  const access = join(folder, '.tool-hub/command-line.json')
  await until(async () => (await stat(access)).isFile(), () => hub.output())
  const hubCli = cli(env)
  const ok = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await hubCli(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${out} ${err}`)
    return out
  }
  const json = async (...args: string[]): Promise<Json> => JSON.parse(await ok(...args, '--json')) as Json
  return { mode, folder, settings, access, env, hub, hubCli, ok, json }
}

async function servers ({ mode, hubCli, ok, json }: World): Promise<void> {
  const { command, args } = npmServer('everything')
  assert.match(await ok('add', 'ev', '--wait', '--test', '--', command, ...args), /ev is connected, with \d+ tools/)
  assert.equal((await json('status')).servers[0].status, 'connected')
  const list = await ok('list')
  assert.match(list, /^NAME +STATUS +TARGET +MCP +TOOLS\nev +connected .* 2025-\d\d-\d\d +\d+\n/)
  assert.doesNotMatch(list, /\u001B/, 'no colours in a pipe')
  assert.match(await ok('list', 'ev'), /tool +echo +on/)
  assert.equal(await ok('call', 'ev', 'echo', 'message=Hello'), 'Echo: Hello\n')
  assert.match((await json('call', 'ev', 'get-sum', 'a=2', 'b:=3')).content[0].text, /5/)
  assert.match(await ok('test', 'ev'), /It connects/)
  const bad = await hubCli('call', 'ev', 'no-such-tool')
  assert.ok(bad.code === 1 || bad.code === 5, bad.err)
  if (mode === 'a settings file') {
    await ok('add', 'gone', '--disabled', '--', 'x')
    assert.match((await hubCli('call', 'gone', 'echo')).err, /gone is disabled/)
    await ok('remove', 'gone')
  }
  const refused = await hubCli('add', 'bad', '--test', '--json', '--', process.execPath, '-e', 'process.exit(3)')
  assert.equal(refused.code, 1)
  assert.match(JSON.parse(refused.err).message, /was not added.*exit code 3/)
  assert.deepEqual((await json('list')).map(({ name }: Json) => name), ['ev'])
}

async function login (t: Test, { hubCli, ok }: World): Promise<void> {
  const { url } = await startLoginServer(t)
  const added = await hubCli('add', 'guarded', url, '--test')
  assert.equal(added.code, 0, added.err)
  assert.match(added.out, /It requires a login: the upstream requires a login \(OAuth\) at http/)
  assert.match(added.err, /Log in at guarded, in a browser: http:\/\/127\.0\.0\.1:\d+\/oauth\/login\//)
  const status = await hubCli('status')
  assert.match(status.err, /Log in at guarded, in a browser: http:\/\/127\.0\.0\.1:\d+\/oauth\/login\//)
  const listed = await hubCli('list', 'guarded')
  assert.match(listed.out, /guarded lists nothing: it is oauth_required/)
  assert.match(listed.err, /warning: guarded is oauth_required: .*\nLog in at guarded, in a browser: http/)
  const tested = await hubCli('test', 'guarded')
  assert.deepEqual([tested.code, /guarded requires a login/.test(tested.err), /Log in at guarded/.test(tested.err)], [1, true, true], tested.err)
  const typed = await hubCli('key', 'create', 'typo', '--server', 'gaurded')
  assert.match(typed.err, /warning: There is no server "gaurded" yet/)
  await ok('key', 'revoke', 'typo')
  await ok('remove', 'guarded')
}

async function colours ({ env }: World): Promise<void> {
  const onTerminal = async (more: Record<string, string>, ...args: string[]): Promise<string> =>
    (await cli({ ...env, ...more }, { isTerminal: true })(...args)).out
  assert.match(await onTerminal({}, 'list'), /\u001B\[32mconnected\u001B\[/)
  for (const out of [await onTerminal({ NO_COLOR: '1' }, 'list'), await onTerminal({ TERM: 'dumb' }, 'list'), await onTerminal({}, '--no-color', 'list')]) {
    assert.doesNotMatch(out, /\u001B\[3/)
  }
}

async function keys ({ hub, hubCli, ok, json }: World): Promise<void> {
  const token = (await ok('key', 'create', 'agent', '--expires', '2d')).trim()
  assert.match(token, /^thk_[0-9a-f]{64}$/)
  const ask = async (route: string): Promise<number> =>
    (await fetch(`${hub.url}${route}`, { headers: { authorization: `Bearer ${token}` } })).status
  assert.equal(await ask('/api/servers'), 401)
  assert.equal(await ask('/api/tools/ev/get-tiny-image'), 200)
  const [key] = (await json('key', 'list')).filter(({ name }: Json) => name === 'agent')
  assert.deepEqual([key.kind, key.owner], ['user', 'admin'])
  assert.ok(Math.abs(Date.parse(key.expiresAt) - Date.now() - 2 * 86_400_000) < 600_000)
  await ok('key', 'revoke', 'agent')
  assert.equal((await hubCli('key', 'revoke', 'agent')).code, 1)
  for (const when of ['soon', '2020-01-01']) assert.equal((await hubCli('key', 'create', 'x', '--expires', when)).code, 2, when)
}

async function fromElsewhere ({ folder, hub, ok }: World): Promise<void> {
  const system = (await ok('key', 'create', 'operator', '--kind', 'system')).trim()
  const elsewhere = { HOME: folder, TOOL_HUB_URL: hub.url }
  for (const [env, command, code] of [
    [{ TOOL_HUB_KEY: system }, 'status', 0],
    [{ TOOL_HUB_KEY: 'thk_wrong' }, 'list', 4],
    [{}, 'list', 4],
    [{ TOOL_HUB_URL: 'http://127.0.0.1:9', TOOL_HUB_KEY: system }, 'list', 3]
  ] as const) assert.equal((await cli({ ...elsewhere, ...env })(command)).code, code, JSON.stringify(env))
}

async function passwords ({ env, hub, hubCli, ok }: World): Promise<void> {
  const status = async (password: string): Promise<number> => (await fetch(`${hub.url}/api/auth/login`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ username: 'admin', password })
  })).status
  assert.equal(await status((await ok('user', 'reset-password', 'admin')).trim()), 200)
  assert.equal((await hubCli('user', 'reset-password', 'nobody')).code, 1)
  const given = await cli(env, { input: 'Given-on-stdin-1\n' })('user', 'reset-password', 'admin', '--password-stdin')
  assert.deepEqual(given, { code: 0, out: 'The password was changed\n', err: '' })
  assert.equal(await status('Given-on-stdin-1'), 200)
}

async function imports ({ folder, hubCli, ok, json }: World): Promise<void> {
  const dry = JSON.parse(await ok('import', '--dry-run', path('test/cli/clients/cline.json'))) as Json
  assert.deepEqual(Object.keys(dry.mcpServers), ['local', 'remote'])
  const file = join(folder, 'imported.json')
  await writeFile(file, '{"mcpServers": {"cz": {"command": "a", "disabled": true}, "77": {"url": "http://127.0.0.1:9/mcp", "disabled": true}}}')
  for (const options of [[], ['--json']]) {
    assert.match(await ok('import', '--dry-run', file, ...options), /^\{\n {2}"mcpServers": \{\n {4}"cz": [^]*\n {4}"77": [^]*\n\}\n$/)
  }
  await ok('import', file)
  assert.deepEqual((await json('list')).map(({ name }: Json) => name).slice(-2), ['cz', '77'], 'in the order of the file')
  const { code, out, err } = await hubCli('import', path('test/cli/clients/windsurf.json'))
  assert.equal(code, 0, err)
  assert.match(out, /remote +added/)
  const again = await hubCli('import', path('test/cli/clients/windsurf.json'))
  assert.equal(again.code, 0, again.err)
  assert.match(again.out, /remote +unchanged\s+local +unchanged/)
  const other = join(folder, 'changed.json')
  await writeFile(other, '{"mcpServers": {"cz": {"command": "b", "disabled": true}, "77": {"url": "http://127.0.0.1:9/mcp", "disabled": true}}}')
  const refusal = await hubCli('import', other)
  assert.equal(refusal.code, 1)
  assert.match(refusal.out, /cz +refused +.* differs: use --replace to replace it\s+77 +unchanged/)
  assert.match(await ok('import', '--replace', other), /cz +replaced\s+77 +unchanged/)
  assert.equal((await json('list')).find(({ name }: Json) => name === 'cz').config.command, 'b')
  await ok('import', '--input', 'issues-key=k', '--only', 'issues', path('test/cli/clients/vscode.json'), '--json')
  const groups = ['admin', 'stranger'].map((owner) => ({ name: `of ${owner}`, servers: ['grouped'], owner }))
  await writeFile(file, JSON.stringify({ mcpServers: { grouped: { url: 'http://127.0.0.1:9/mcp', disabled: true } }, groups }))
  const withGroups = await hubCli('import', file)
  assert.equal(withGroups.code, 0, withGroups.err)
  assert.match(withGroups.err, /of stranger \(group\): there is no user named "stranger", so you are its owner/)
  assert.match(await ok('import', file), /grouped +unchanged[^]*of admin \(group\) +unchanged/)
  await writeFile(file, JSON.stringify({ mcpServers: {}, groups: [{ name: 'of admin', servers: [] }], servers: { grouped: { url: 'http://127.0.0.1:9/mcp', disabled: true } } }))
  assert.equal((await hubCli('import', file)).code, 1)
  assert.match(await ok('import', '--replace', file), /of admin \(group\) +replaced/)
  for (const name of ['cz', '77', 'local', 'remote', 'issues', 'grouped']) await ok('remove', name)
}

/** Follows the log until a line holds the name of a key that is made meanwhile. */
async function logs ({ env, ok }: World): Promise<void> {
  assert.match(await ok('logs', '-n', '200'), /ev: connected/)
  const end = new AbortController()
  let out = ''
  const following = cli(env, { signal: end.signal, onOut: (text) => { out += text } })('logs', '-f', '-n', '0', '--json')
  await until(async () => {
    await ok('key', 'create', 'logged')
    return out.includes('logged')
  }, () => out)
  end.abort()
  assert.deepEqual(await following, { code: 0, out, err: '' })
  for (const line of out.trim().split('\n')) assert.ok(typeof JSON.parse(line).message === 'string')
}

async function texts ({ env, hubCli, ok }: World): Promise<void> {
  await ok('check')
  assert.match(await ok('completion', 'bash'), /complete .*tool-hub/)
  assert.match(await ok('completion', 'fish'), /complete -c tool-hub/)
  assert.match(await ok('--version'), /^\d+\.\d+\.\d+\n$/)
  assert.match(await ok('add', '--help'), /--test/)
  assert.equal((await hubCli('nonsense', '--wrong')).code, 2)
  const typed = await hubCli('stauts')
  assert.deepEqual([typed.code, /There is no command "stauts": did you mean status\?/.test(typed.err)], [2, true], typed.err)
  const served: CliOptions['serve'] = async ({ SETTINGS_PATH, PORT, HOST }) => { assert.deepEqual([SETTINGS_PATH, PORT, HOST], ['/x.json', '1', '::1']) }
  assert.deepEqual((await cli(env, { serve: served })('--config', '/x.json', 'serve', '--port', '1', '--host', '::1')), { code: 0, out: '', err: '' })
}

async function whileDown ({ mode, folder, settings, access, hub, hubCli, ok, json }: World): Promise<void> {
  assert.equal(await hub.stop(), 0)
  await assert.rejects(stat(access), 'the credential is gone with the process')
  assert.equal((await hubCli('status')).code, 3)
  assert.match(await ok('list'), /ev +not running/)
  assert.equal((await hubCli('call', 'ev', 'echo', 'message=x')).code, 3)
  await ok('add', 'later', 'http://127.0.0.1:9/mcp')
  assert.deepEqual((await json('list')).map(({ name }: Json) => name), ['ev', 'later'])
  if (mode === 'PGlite') return
  await ok('remove', 'ev')
  const token = (await ok('key', 'create', 'offline')).trim()
  assert.match(token, /^thk_/)
  await ok('user', 'reset-password', 'admin')
  assert.deepEqual((await json('list')).map(({ name }: Json) => name), ['later'])
  if (mode === 'a settings file') assert.doesNotMatch(await readFile(settings, 'utf8'), new RegExp(token), 'a hash is stored')
  else assert.equal(existsSync(settings), false, 'there is no settings file')
  await ok('restore', join(folder, 'backup.zip'), '--replace')
  assert.deepEqual((await json('list')).map(({ name }: Json) => name), ['ev'])
}

for (const mode of ['a settings file', 'PostgreSQL', ...isFull ? ['PGlite' as const] : []] as const) {
  test(`each command over ${mode}`, async (t) => {
    const world = await start(t, mode)
    const skip = mode !== 'a settings file' && !isFull && 'npm run soak does'
    const isFile = mode === 'a settings file'
    assert.equal((await stat(world.access)).mode & 0o777, 0o600)
    await t.test('add, list, status, call, test, remove', async () => { await servers(world) })
    await t.test('a server that wants a login is added, with the address to open', { skip: !isFile }, async (t) => { await login(t, world) })
    await t.test('on a terminal there are colours, unless they are not wanted', { skip }, async () => { await colours(world) })
    await t.test('keys: what is created opens MCP and not the management API, and expires', async () => { await keys(world) })
    await t.test('a system key opens it from elsewhere, other keys do not', { skip }, async () => { await fromElsewhere(world) })
    await t.test('user reset-password', async () => { await passwords(world) })
    await t.test('import', { skip }, async () => { await imports(world) })
    await t.test('logs, and logs -f', { skip }, async () => { await logs(world) })
    await t.test('check, completion, version, help, options of serve', { skip }, async () => { await texts(world) })
    await t.test('backup', { skip: mode === 'PGlite' ? 'it has one process at a time' : false }, async () => {
      await world.ok('backup', join(world.folder, 'backup.zip'))
      assert.ok((await stat(join(world.folder, 'backup.zip'))).size > 100)
    })
    await t.test('a credential file that others may read is not used', { skip: !isFile }, async () => {
      await chmod(world.access, 0o644)
      const { code, err } = await world.hubCli('list')
      await chmod(world.access, 0o600)
      assert.deepEqual([code, /accessible to users other/.test(err)], [4, true], err)
    })
    await t.test('with the gateway down: the settings themselves, and restore', async () => { await whileDown(world) })
  })
}

/** A folder with this settings file, and the environment that names it. */
async function settingsFor (t: Test, content: object): Promise<{ folder: string, env: Record<string, string> }> {
  const folder = await temporaryFolder(t)
  const env = { SETTINGS_PATH: join(folder, 'mcp_settings.json'), HOME: folder }
  await writeFile(env.SETTINGS_PATH, JSON.stringify(content))
  return { folder, env }
}

test('with the gateway down, no tables are made in a database that a mistyped DB_URL names', async (t) => {
  const { folder, env } = await settingsFor(t, { mcpServers: { a: { command: 'x' } } })
  const { url, query } = await database(t, undefined, { tables: false })
  for (const args of [['status'], ['key', 'list'], ['backup', join(folder, 'backup.zip')]]) {
    const { code, err } = await cli({ ...env, DB_URL: url })(...args)
    assert.deepEqual([code, /There is no Tool-Hub database at .*, and none was created/.test(err)], [args[0] === 'backup' ? 1 : 3, true], err)
  }
  assert.deepEqual(await query('select table_schema from information_schema.tables where table_schema in (\'public\', \'drizzle\')'), [])
})

interface Process { child: ChildProcess, said: () => string, ended: Promise<Ended> }

/** A command as a process of its own. @param isClosed nobody reads its output */
function spawned (env: Record<string, string>, [command = '', ...args]: string[], { input = '', isClosed = false } = {}): Process {
  const child = spawn(command, args, { env: { PATH: process.env.PATH ?? '', ...env }, cwd: tmpdir(), stdio: 'pipe' })
  let [out, err] = ['', '']
  if (isClosed) child.stdout.destroy()
  else child.stdout.on('data', (chunk) => { out += String(chunk) })
  child.stderr.on('data', (chunk) => { err += String(chunk) })
  child.stdin.end(input)
  return { child, said: () => out + err, ended: once(child, 'close').then(([code]) => ({ code: code as number, out, err })) }
}

test('as a process: terminal, pipes, exit codes, serve and its end', async (t) => {
  const { folder, env } = await settingsFor(t, { mcpServers: { a: { command: 'x', enabled: false } } })
  const bin = (...args: string[]): string[] => [...cliProgram, ...args]
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

  await t.test('its exit code is that of the command, and its answer takes a pipe that nobody reads', async () => {
    const { code, err } = await spawned(env, bin('status', '--json'), { isClosed: true }).ended
    assert.deepEqual([code, err], [3, ''])
  })

  await t.test('it reads a pipe', async () => {
    const { code, out } = await spawned(env, bin('import', '--dry-run', '-'), { input: '{"mcpServers": {"piped": {"command": "x"}}}' }).ended
    assert.deepEqual([code, out.includes('"piped"')], [0, true], out)
  })

  await t.test('it knows a terminal', async () => {
    const { out } = await spawned({ ...env, TERM: 'xterm' }, ['script', '-qec', bin('list').map(quoted).join(' '), '/dev/null']).ended
    assert.match(out, /\u001B\[2mdisabled\u001B\[/)
  })

  await t.test('serve starts the gateway of its options, a follower of the log ends with its reader, and SIGTERM ends the gateway', async (t) => {
    const options = ['--config', env.SETTINGS_PATH ?? '', 'serve', '--port', '0', '--host', '127.0.0.1']
    const gateway = spawned({ HOME: folder }, bin(...options))
    t.after(() => { gateway.child.kill('SIGKILL') })
    await until(() => existsSync(join(folder, '.tool-hub/command-line.json')), gateway.said)
    assert.equal((await cli(env)('status')).code, 0)
    assert.deepEqual(await spawned(env, bin('logs', '-f'), { isClosed: true }).ended, { code: 0, out: '', err: '' })
    gateway.child.kill('SIGTERM')
    assert.equal((await gateway.ended).code, 0, gateway.said())
  })
})
