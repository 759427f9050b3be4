// The first five minutes, with what is built here: what a first start prints, in its order, and that it works as printed; and a first start
// that fails spends nothing. nightly/first-start does it with the packed tarball, and with the clients that the snippets are for.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { shellQuote } from '../../plugins/base/config/first-start.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { cli } from '../helpers/cli.ts'
import { firstWordsIn, freePort, npmServer, path, serverProgram, spawnHub, until } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { onTerminal, skipWithoutTerminal } from '../helpers/terminal.ts'

const execute = promisify(execFile)

test('what a first start tells leads to a tool call', async (t) => {
  const hub = await spawnHub(t)
  await until(() => / add everything .*\n/.test(hub.firstWords()), hub.output)
  const output = hub.firstWords()
  const key = /^thk_[0-9a-f]{64}$/m.exec(output)?.[0] ?? ''
  /** The JSON that is printed for a client. */
  const json = (client: string): unknown =>
    JSON.parse(new RegExp(`^${client} \\([^)\\n]*\\):\\n\\n(\\{\\n.*?^\\})$`, 'ms').exec(output)?.[1] ?? 'null')

  await t.test('it has the order in which it is needed', async () => {
    const places = ['MCP endpoint', '/docs', 'The first admin', 'A key for your agents', 'Claude Code:', 'Add a first server'].map((text) => output.indexOf(text))
    assert.ok(places.every((at) => at > 0))
    assert.deepEqual(places, [...places].sort((a, b) => a - b))
    assert.doesNotMatch(output, /curl/)
  })

  await t.test('without a terminal it is in a file for its owner only, and the log is JSON without a secret, a line of which names the file', async () => {
    const file = join(hub.folder, '.tool-hub/first-start.txt')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const lines = hub.output().trim().split('\n').map((line) => JSON.parse(line) as { msg: string })
    assert.equal(lines.filter(({ msg }) => msg.includes(file)).length, 1)
    const password = /with password "([^"]+)"/.exec(output)?.[1] ?? ''
    assert.ok(password !== '' && !hub.output().includes(password) && !hub.output().includes(key))
  })

  await t.test('the link opens the console once, and lets the reader choose a password', async () => {
    const link = /^http:\/\/127\.0\.0\.1:\d+\/console\/welcome\?code=[\w-]{43}$/m.exec(output)?.[0] ?? ''
    assert.ok(!hub.output().includes(link.split('code=')[1] ?? ''), 'the log does not have it')
    const page = await fetch(link)
    assert.equal(page.status, 200)
    const hidden = (name: string, text: string): string => new RegExp(`name="${name}" value="([^"]+)"`).exec(text)?.[1] ?? ''
    const html = await page.text()
    const cookie = page.headers.getSetCookie().map((each) => each.split(';')[0]).join('; ')
    const answer = await fetch(`${hub.url}/console/welcome`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ _csrf: hidden('_csrf', html), code: hidden('code', html), password: 'My-own-1', repeated: 'My-own-1' }),
      redirect: 'manual'
    })
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/console/overview'])
    assert.equal((await fetch(link)).status, 403)
  })

  await t.test('the key opens MCP, and not the management API', async () => {
    const ask = async (where: string): Promise<number> => (await fetch(`${hub.url}${where}`, { headers: { authorization: `Bearer ${key}` } })).status
    assert.deepEqual([await ask('/api/servers'), await ask('/api/tools/none/none')], [401, 404])
  })

  await t.test('the snippets hold the address and the key', async () => {
    const server = { type: 'http', url: `${hub.url}/mcp`, headers: { Authorization: `Bearer ${key}` } }
    assert.deepEqual(json('Cursor'), { mcpServers: { 'tool-hub': server } })
    assert.deepEqual(json('VS Code'), { servers: { 'tool-hub': server } })
    const desktop = JSON.stringify(json('Claude Desktop'))
    assert.ok(desktop.includes('mcp-remote') && desktop.includes(`${hub.url}/mcp`) && desktop.includes(key), desktop)
    for (const pattern of [/^claude mcp add .*$/m, /^gemini mcp add .*$/m, /^npx @modelcontextprotocol\/inspector .*$/m]) {
      const line = pattern.exec(output)?.[0] ?? ''
      assert.ok(line.includes(`${hub.url}/mcp`) && line.includes(key), String(pattern))
    }
    assert.match(output, /^MCP Inspector \(needs Node 22\.19 or newer\):$/m)
  })

  await t.test('the line to paste adds a server and calls a tool, in any folder', async (t) => {
    const [add = '', call = ''] = /^.* add everything .*$/m.exec(output)?.[0].split(' && ') ?? []
    const program = process.env.TOOL_HUB_TEST_BUILD === undefined ? /^node --import \S+ \S+\/cli\/main\.ts / : /^node \S+\/dist\/cli\/main\.js /
    const { command, args } = npmServer('everything')
    const words = (line: string): string[] => {
      assert.match(line, program)
      assert.ok(existsSync(program.exec(line)?.[0].trim().split(' ').at(-1) ?? ''), line)
      return line.replace(program, '').replace('npx -y @modelcontextprotocol/server-everything', [command, ...args].join(' ')).split(' ')
    }
    const run = cli({ HOME: hub.folder }, { cwd: await temporaryFolder(t) })
    const added = await run(...words(add))
    assert.deepEqual([added.code, added.err], [0, ''])
    assert.deepEqual(await run(...words(call)), { code: 0, out: 'Echo: Hello\n', err: '' })
  })
})

test('a first start that cannot have its port makes no admin', async (t) => {
  const hub = await spawnHub(t, { wait: false, env: { PORT: String(await listen(t, createServer())) } })
  await until(() => hub.child.exitCode !== null, hub.output)
  assert.equal(hub.child.exitCode, 1)
  assert.match(hub.output(), /is already in use/)
  assert.doesNotMatch(hub.output(), /first admin|thk_/)
  assert.ok(!existsSync(hub.settingsPath) || !readFileSync(hub.settingsPath, 'utf8').includes('"users"'))
})

test('on a terminal it is shown as text, whatever becomes of the log', { skip: skipWithoutTerminal }, async (t) => {
  for (const where of ['', '>log']) {
    const folder = await temporaryFolder(t)
    const program = `cd ${shellQuote(path(''))}; exec ${serverProgram().map(shellQuote).join(' ')} ${where.replace('log', shellQuote(join(folder, 'log')))}`
    const terminal = onTerminal(t, program, {
      cwd: folder, env: { HOME: folder, PORT: String(await freePort()), SETTINGS_PATH: join(folder, 's.json') }
    })
    await until(() => / call everything echo .*\n/.test(terminal.output()), terminal.output)
    assert.match(terminal.output(), /^The first admin is "admin" with password "[^"]{16}"/m)
    assert.match(terminal.output(), /^thk_[0-9a-f]{64}$/m)
    assert.equal(firstWordsIn(join(folder, '.tool-hub')), '')
    if (where === '') assert.match(terminal.output(), /INFO.*Tool-Hub .* listens at/)
    else for (const line of readFileSync(join(folder, 'log'), 'utf8').trim().split('\n')) JSON.parse(line)
  }
})

test('READONLY starts with its first admin, who can look, and makes no key', async (t) => {
  for (const [env, given] of [[{}, undefined], [{ ADMIN_PASSWORD: 'Another-Word-2' }, 'Another-Word-2']] as const) {
    const hub = await spawnHub(t, { env: { READONLY: 'true', ...env } })
    await until(() => hub.output().includes('API and its documentation'), hub.output)
    const password = given ?? /with password "([^"]+)"/.exec(hub.firstWords())?.[1] ?? ''
    assert.doesNotMatch(hub.firstWords(), /thk_|Add a first server/)
    const post = async (where: string, body: object, headers = {}): Promise<Response> => await fetch(`${hub.url}${where}`, {
      method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body)
    })
    const login = await post('/api/auth/login', { username: 'admin', password })
    assert.equal(login.status, 200)
    const { token } = await login.json() as { token: string }
    const headers = { 'x-auth-token': token }
    assert.equal((await fetch(`${hub.url}/api/users`, { headers })).status, 200)
    assert.equal((await post('/api/auth/keys', { name: 'k' }, headers)).status, 403)
    assert.equal(await hub.stop(), 0)
    const { users, bearerKeys = [] } = JSON.parse(readFileSync(hub.settingsPath, 'utf8')) as { users: unknown[], bearerKeys?: unknown[] }
    assert.deepEqual([users.length, bearerKeys.length], [1, 0])
  }
})

test('an installation without the bundler builds nothing and says so, and npm start says what is missing', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'cli'))
  for (const name of ['prepare.mjs', 'built.mjs']) await writeFile(join(folder, 'cli', name), readFileSync(path(`cli/${name}`)))
  const { scripts } = JSON.parse(readFileSync(path('package.json'), 'utf8')) as { scripts: Record<string, string> }
  assert.deepEqual([scripts.prepare, scripts.prestart], ['node cli/prepare.mjs', 'node cli/built.mjs'])
  assert.match((await execute(process.execPath, ['cli/prepare.mjs'], { cwd: folder })).stderr, /Nothing was built.*npm run build/)
  await assert.rejects(execute(process.execPath, ['cli/built.mjs'], { cwd: folder }), /There is no dist/)
  const packing = { ...process.env, npm_command: 'pack' }
  await assert.rejects(execute(process.execPath, ['cli/prepare.mjs'], { cwd: folder, env: packing }), /Nothing was built/)
})
