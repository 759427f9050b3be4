/* eslint-disable no-control-regex, no-template-curly-in-string -- escape sequences of terminals, and variables of configs */
// The command line against a real gateway: each command, over a settings file and over PostgreSQL (in the soak over PGlite, too), through a
// pipe and on a terminal, and with the gateway down. The terminal is that of script(1). What asks a running gateway is the same over any
// storage: over a database, all of it runs in `npm run soak` only.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { startLoginServer } from '../fakes/login-server.ts'
import { database, pglite } from '../helpers/database.ts'
import { isFull } from '../helpers/full.ts'
import { cliProgram, npmServer, path, spawnHub, until, type ProcessHub } from '../helpers/hub.ts'

type Json = Record<string, any> // eslint-disable-line @typescript-eslint/no-explicit-any
interface Ended { code: number | null, out: string, err: string }

async function run ([command = '', ...args]: string[], env: Record<string, string>, input = ''): Promise<Ended> {
  const child = spawn(command, args, { env: { PATH: process.env.PATH ?? '', ...env }, cwd: tmpdir(), stdio: ['pipe', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => { out += String(chunk) })
  child.stderr.on('data', (chunk) => { err += String(chunk) })
  child.stdin.end(input)
  const code = await new Promise<number | null>((resolve) => { child.once('close', resolve) })
  return { code, out, err }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const cli = (env: Record<string, string>) => async (...args: string[]): Promise<Ended> => await run([...cliProgram, ...args], env)
const onTerminal = async (env: Record<string, string>, ...args: string[]): Promise<Ended> =>
  await run(['script', '-qec', [...cliProgram, ...args].map(quoted).join(' '), '/dev/null'], env)

const { command, args: serverArgs } = npmServer('everything')

const modes: ReadonlyArray<readonly [name: string, urlOf?: (t: Test) => Promise<{ url: string }>]> = [
  ['a settings file'], ['PostgreSQL', database], ...isFull ? [['PGlite', pglite] as const] : []
]
for (const [mode, urlOf] of modes) {
  test(`each command over ${mode}`, { timeout: 600_000 }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'tool-hub-cli-'))
    t.after(async () => { await rm(folder, { recursive: true, force: true, maxRetries: 3 }) })
    const settings = join(folder, 'mcp_settings.json')
    const { url: dbUrl } = await urlOf?.(t) ?? {}
    const env: Record<string, string> = { SETTINGS_PATH: settings, HOME: folder, TERM: 'xterm', ...(dbUrl === undefined ? {} : { DB_URL: dbUrl }) }
    const hub: ProcessHub = await spawnHub(t, { folder, env })
    const access = join(folder, '.tool-hub/command-line.json')
    await until(async () => (await stat(access)).isFile(), () => hub.output())
    assert.equal((await stat(access)).mode & 0o777, 0o600)
    const hubCli = cli(env)
    const ok = async (...args: string[]): Promise<string> => {
      const { code, out, err } = await hubCli(...args)
      assert.equal(code, 0, `${args.join(' ')}: ${out} ${err}`)
      return out
    }
    const skip = urlOf !== undefined && !isFull && 'npm run soak does'
    const json = async (...args: string[]): Promise<Json> => JSON.parse(await ok(...args, '--json')) as Json

    await t.test('add, list, status, call, test, remove', async () => {
      assert.match(await ok('add', 'ev', '--wait', '--test', '--', command, ...serverArgs), /ev is connected, with \d+ tools/)
      assert.equal((await json('status')).servers[0].status, 'connected')
      assert.match(await ok('list'), /^NAME +STATUS +TARGET +MCP +TOOLS\nev +connected .* 2025-\d\d-\d\d +\d+\n/)
      assert.doesNotMatch(await ok('list'), /\u001B/, 'no colours in a pipe')
      assert.match(await ok('list', 'ev'), /tool +echo +on/)
      assert.equal(await ok('call', 'ev', 'echo', 'message=Hello'), 'Echo: Hello\n')
      assert.match((await json('call', 'ev', 'get-sum', 'a=2', 'b:=3')).content[0].text, /5/)
      assert.match(await ok('test', 'ev'), /It connects/)
      const bad = await hubCli('call', 'ev', 'no-such-tool')
      assert.ok(bad.code === 1 || bad.code === 5, bad.err)
      if (dbUrl === undefined) {
        await ok('add', 'gone', '--disabled', '--', 'x')
        assert.match((await hubCli('call', 'gone', 'echo')).err, /gone is disabled/)
        await ok('remove', 'gone')
      }
      const refused = await hubCli('add', 'bad', '--test', '--json', '--', process.execPath, '-e', 'process.exit(3)')
      assert.equal(refused.code, 1)
      assert.match(JSON.parse(refused.err).message, /was not added.*exit code 3/)
      assert.deepEqual((await json('list')).map(({ name }: Json) => name), ['ev'])
    })

    await t.test('a server that wants a login is added, with the address to open', { skip: mode !== 'a settings file' }, async (t) => {
      const { url } = await startLoginServer(t)
      const added = await hubCli('add', 'guarded', url, '--test')
      assert.equal(added.code, 0, added.err)
      assert.match(added.out, /It wants a login: the upstream wants a login \(OAuth\) at http/)
      assert.match(added.err, /Log in there, in a browser: http:\/\/127\.0\.0\.1:\d+\/oauth\/login\//)
      const tested = await hubCli('test', 'guarded')
      assert.deepEqual([tested.code, /guarded waits for a login/.test(tested.err), /Log in there/.test(tested.err)], [1, true, true], tested.err)
      const typed = await hubCli('key', 'create', 'typo', '--server', 'gaurded')
      assert.match(typed.err, /warning: There is no server "gaurded" yet/)
      await ok('key', 'revoke', 'typo')
      await ok('remove', 'guarded')
    })

    await t.test('on a terminal there are colours, unless they are not wanted', { skip }, async () => {
      assert.match((await onTerminal(env, 'list')).out, /\u001B\[32mconnected\u001B\[/)
      assert.doesNotMatch((await onTerminal({ ...env, NO_COLOR: '1' }, 'list')).out, /\u001B\[3/)
      assert.doesNotMatch((await onTerminal(env, '--no-color', 'list')).out, /\u001B\[3/)
    })

    await t.test('keys: what is created opens MCP and not the management API, and expires', async () => {
      const token = (await ok('key', 'create', 'agent', '--expires', '2d')).trim()
      assert.match(token, /^thk_[0-9a-f]{64}$/)
      const ask = async (route: string): Promise<number> => (await fetch(`${hub.url}${route}`, { headers: { authorization: `Bearer ${token}` } })).status
      assert.equal(await ask('/api/servers'), 401)
      assert.equal(await ask('/api/tools/ev/get-tiny-image'), 200)
      const [key] = (await json('key', 'list')).filter(({ name }: Json) => name === 'agent')
      assert.deepEqual([key.kind, key.owner], ['user', 'admin'])
      assert.ok(Math.abs(Date.parse(key.expiresAt) - Date.now() - 2 * 86_400_000) < 600_000)
      await ok('key', 'revoke', 'agent')
      assert.equal((await hubCli('key', 'revoke', 'agent')).code, 1)
      assert.equal((await hubCli('key', 'create', 'x', '--expires', 'soon')).code, 2)
      assert.equal((await hubCli('key', 'create', 'x', '--expires', '2020-01-01')).code, 2)
    })

    await t.test('a system key opens it from elsewhere, other keys do not', { skip }, async () => {
      const system = (await ok('key', 'create', 'operator', '--kind', 'system')).trim()
      const elsewhere = { HOME: folder, TOOL_HUB_URL: hub.url }
      assert.equal((await cli({ ...elsewhere, TOOL_HUB_KEY: system })('status')).code, 0)
      assert.equal((await cli({ ...elsewhere, TOOL_HUB_KEY: 'thk_wrong' })('list')).code, 4)
      assert.equal((await cli(elsewhere)('list')).code, 4)
      assert.equal((await cli({ ...elsewhere, TOOL_HUB_URL: 'http://127.0.0.1:9', TOOL_HUB_KEY: system })('list')).code, 3)
    })

    await t.test('user reset-password', async () => {
      const password = (await ok('user', 'reset-password', 'admin')).trim()
      const login = await fetch(`${hub.url}/api/auth/login`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ username: 'admin', password })
      })
      assert.equal(login.status, 200)
      assert.equal((await hubCli('user', 'reset-password', 'nobody')).code, 1)
    })

    await t.test('import', { skip }, async () => {
      const dry = JSON.parse(await ok('import', '--dry-run', path('test/cli/clients/cline.json'))) as Json
      assert.deepEqual(Object.keys(dry.mcpServers), ['local', 'remote'])
      const numbered = join(folder, 'numbered.json')
      await writeFile(numbered, '{"mcpServers": {"cz": {"command": "a", "disabled": true}, "77": {"url": "http://127.0.0.1:9/mcp", "disabled": true}}}')
      for (const options of [[], ['--json']]) assert.match(await ok('import', '--dry-run', numbered, ...options), /^\{\n {2}"mcpServers": \{\n {4}"cz": [^]*\n {4}"77": [^]*\n\}\n$/)
      await ok('import', numbered)
      const servers = await json('list')
      assert.deepEqual(servers.map(({ name }: Json) => name).slice(-2), ['cz', '77'], 'in the order of the file')
      for (const name of ['cz', '77']) await ok('remove', name)
      const { code, out, err } = await hubCli('import', path('test/cli/clients/windsurf.json'))
      assert.equal(code, 0, err)
      assert.match(out, /remote +added/)
      assert.equal((await hubCli('import', path('test/cli/clients/windsurf.json'))).code, 1, 'they are there already')
      const inputs = await hubCli('import', '--input', 'issues-key=k', '--only', 'issues', path('test/cli/clients/vscode.json'), '--json')
      assert.equal(inputs.code, 0, inputs.err)
      for (const name of ['local', 'remote', 'issues']) await ok('remove', name)
      const groups = [{ name: 'of admin', servers: ['grouped'], owner: 'admin' }, { name: 'of a stranger', servers: ['grouped'], owner: 'stranger' }]
      await writeFile(numbered, JSON.stringify({ mcpServers: { grouped: { url: 'http://127.0.0.1:9/mcp', disabled: true } }, groups }))
      const withGroups = await hubCli('import', numbered)
      assert.equal(withGroups.code, 0, withGroups.err)
      assert.match(withGroups.err, /of a stranger \(group\): there is no user named "stranger", so it is yours/)
      await ok('remove', 'grouped')
    })

    await t.test('logs, and logs -f', { skip }, async (t) => {
      assert.match(await ok('logs', '-n', '200'), /ev: connected/)
      const [file = '', ...args] = cliProgram
      const child = spawn(file, [...args, 'logs', '-f', '-n', '0', '--json'], { env: { PATH: process.env.PATH ?? '', ...env }, stdio: ['ignore', 'pipe', 'ignore'] })
      t.after(() => { child.kill() })
      let out = ''
      child.stdout.on('data', (chunk) => { out += String(chunk) })
      await until(async () => {
        await fetch(`${hub.url}/api/auth/keys`)
        await ok('key', 'create', 'logged')
        return out.includes('logged')
      }, () => out)
      for (const line of out.trim().split('\n')) assert.ok(typeof JSON.parse(line).message === 'string')
    })

    await t.test('check, completion, version, help', { skip }, async () => {
      await ok('check')
      assert.match(await ok('completion', 'bash'), /complete .*tool-hub/)
      assert.match(await ok('completion', 'fish'), /complete -c tool-hub/)
      assert.match(await ok('--version'), /^\d+\.\d+\.\d+\n$/)
      assert.match(await ok('add', '--help'), /--test/)
      assert.equal((await hubCli('nonsense', '--wrong')).code, 2)
      const typed = await hubCli('stauts')
      assert.deepEqual([typed.code, /There is no command "stauts": did you mean status\?/.test(typed.err)], [2, true], typed.err)
    })

    await t.test('backup', { skip: mode === 'PGlite' ? 'it has one process at a time' : false }, async () => {
      await ok('backup', join(folder, 'backup.zip'))
      assert.ok((await stat(join(folder, 'backup.zip'))).size > 100)
    })

    await t.test('with the gateway down: the settings themselves, and restore', async () => {
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
      if (dbUrl === undefined) assert.doesNotMatch(await readFile(settings, 'utf8'), new RegExp(token), 'a hash is stored')
      else assert.equal(existsSync(settings), false, 'there is no settings file')
      await ok('restore', join(folder, 'backup.zip'), '--replace')
      assert.deepEqual((await json('list')).map(({ name }: Json) => name), ['ev'])
    })
  })
}

test('a credential file that others may read is not used', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-cli-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const hub = await spawnHub(t, { folder })
  const access = join(folder, '.tool-hub/command-line.json')
  await until(async () => (await stat(access)).isFile())
  await chmod(access, 0o644)
  const { code, err } = await cli({ SETTINGS_PATH: hub.settingsPath, HOME: folder })('list')
  assert.equal(code, 4)
  assert.match(err, /open to others/)
})

test('with the gateway down, no tables are made in a database that a mistyped DB_URL names', { timeout: 120_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-cli-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const settings = join(folder, 'mcp_settings.json')
  await writeFile(settings, JSON.stringify({ mcpServers: { a: { command: 'x' } } }))
  const { url, query } = await database(t)
  for (const args of [['status'], ['key', 'list'], ['backup', join(folder, 'backup.zip')]]) {
    const { code, err } = await cli({ SETTINGS_PATH: settings, HOME: folder, DB_URL: url })(...args)
    assert.deepEqual([code, /There is no Tool-Hub database at .*, and none was made/.test(err)], [args[0] === 'backup' ? 1 : 3, true], err)
  }
  assert.deepEqual(await query('select table_schema from information_schema.tables where table_schema in (\'public\', \'drizzle\')'), [])
})

test('check names what is wrong', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-cli-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const settings = join(folder, 'mcp_settings.json')
  await writeFile(settings, JSON.stringify({ mcpServers: { a: {}, b: { command: 'x', autoApprove: ['y'], env: { T: '${NOT_SET_HERE}' } } } }))
  const { code, out } = await cli({ SETTINGS_PATH: settings, HOME: folder, JWT_SECRET: 'x'.repeat(32) })('check', '--json')
  assert.equal(code, 1)
  const { findings } = JSON.parse(out) as { findings: Array<{ level: string, message: string }> }
  assert.deepEqual(findings.map(({ level }) => level), ['error', 'warning', 'warning'])
  assert.equal((await cli({ SETTINGS_PATH: settings, HOME: folder, PORT: 'x' })('check')).code, 1)
})
