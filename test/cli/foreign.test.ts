/* eslint-disable no-template-curly-in-string -- what clients write */
// Configuration files of other programs become what their clients would run, and what has no effect is named. Then the same by the ways in:
// the settings file, POST /api/servers/batch, POST /api/servers/test; and overrides under MCPHub's names.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import type { FastifyInstance } from 'fastify'
import { parseJsonc, readClientConfigFile } from '../../cli/client-file.ts'
import { parseSnapshot } from '../../db/document.ts'
import { overrideOf, unmatchedOverrideWarnings, withOverride } from '../../plugins/settings/access/overrides.ts'
import { translateConfig } from '../../schemas/foreign-config.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { appFor } from '../helpers/app.ts'
import { bearerKey, path, until, type Cleanup } from '../helpers/hub.ts'

const sample = (name: string): string => path(`test/cli/clients/${name}.json`)
const answers: Record<string, string> = { 'issues-key': 'k-123' }

interface Imported { configs: Record<string, unknown>, warnings: string[] }

/** What a file of a client becomes: configs by name, and all warnings. */
async function imported (file: string, project?: string): Promise<Imported> {
  const { servers, warnings } = await readClientConfigFile(file, async ({ id }) => answers[id], project)
  return {
    configs: Object.fromEntries(servers.map(({ name, config }) => [name, config])),
    warnings: [...warnings, ...servers.flatMap((server) => server.warnings.map((sentence) => `${server.name}: ${sentence}`))]
  }
}

/** Imports text, or JSON of an object, as a file of its own. */
async function importedText (t: Cleanup, content: unknown, name = 'mcp.json'): Promise<Imported> {
  const file = join(await temporaryFolder(t), name)
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return await imported(file)
}

/** Checks that each pattern matches a warning of its own, and that there are no others. */
function assertWarnings (warnings: readonly string[], patterns: readonly RegExp[]): void {
  const left = [...warnings]
  for (const pattern of patterns) {
    const at = left.findIndex((warning) => pattern.test(warning))
    assert.ok(at >= 0, `${String(pattern)} is not among ${JSON.stringify(left)}`)
    left.splice(at, 1)
  }
  assert.deepEqual(left, [])
}

test('the files of clients become what their clients would run', async (t) => {
  const folder = path('test/cli/clients')
  const cases: Array<[name: string, configs: Record<string, unknown>, warnings: RegExp[]]> = [
    ['claude-desktop', {
      files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/files'] },
      notes: { command: 'uvx', args: ['notes-server', '--depth', '3'], env: { NOTES_TOKEN: 'abc', NOTES_LIMIT: '20' } }
    }, []],
    ['claude-code', {
      issues: {
        type: 'streamable-http',
        url: '${ISSUES_URL:-https://issues.example.com}/mcp',
        headers: { Authorization: 'Bearer ${ISSUES_TOKEN}' },
        options: { timeout: 120_000 }
      },
      feed: { type: 'sse', url: 'https://feed.example.com/sse' },
      local: { type: 'stdio', command: 'node', args: ['server.js'], env: {} }
    }, []],
    ['cursor', {
      db: { command: `${folder}/bin/db-server`, args: ['--home', homedir()], env: { DB_PASSWORD: '${DB_PASSWORD}' } },
      remote: {
        url: 'https://remote.example.com/mcp',
        headers: { 'X-Key': '${REMOTE_KEY}' },
        oauth: { clientId: 'cursor-client', clientSecret: 'shh', scopes: ['read'] }
      }
    }, [/db: "envFile" cannot be read/]],
    ['vscode', {
      issues: { type: 'streamable-http', url: 'https://issues.example.com/mcp', headers: { Authorization: 'Bearer k-123' } },
      build: { type: 'stdio', command: 'node', args: [`${folder}/build.js`], dev: { watch: 'src/**' }, env: { CI: '${CI}' } }
    }, [/build: "dev" has no effect/, /build: "env.CI" is null/]],
    ['cline', {
      local: { command: 'node', args: ['server.js'], enabled: true, autoApprove: ['read'], options: { timeout: 90_000 } },
      remote: { type: 'streamable-http', url: 'https://remote.example.com/mcp', enabled: false, alwaysAllow: [] }
    }, [/local: "autoApprove" has no effect/, /local: "timeout" is treated as 90 seconds/]],
    ['windsurf', {
      remote: { url: 'https://remote.example.com/mcp', headers: { API_KEY: '${REMOTE_KEY}' }, tools: { drop_table: { enabled: false } } },
      local: { command: 'npx', args: ['-y', 'local-server'], enabled: false }
    }, []],
    ['gemini', {
      remote: {
        type: 'streamable-http', url: 'https://remote.example.com/mcp', options: { timeout: 5_000 }, trust: true, tools: { wipe: { enabled: false } }
      },
      local: { command: 'node', args: ['server.js'], cwd: '/srv', tools: { '*': { enabled: false }, read: { enabled: true } } }
    }, [/remote: "trust" has no effect/]],
    ['mcp-hub', {
      files: {
        command: 'npx',
        args: ['-y', 'files-server', '${ROOT}'],
        env: { TOKEN: '${TOKEN}', KEY: '${cmd: pass show key}' },
        tools: { remove: { enabled: false } },
        custom_instructions: { text: 'Be careful' },
        dev: { enabled: true, watch: ['src/**'], cwd: '/srv/files' }
      },
      remote: { url: 'https://remote.example.com/mcp', autoApprove: true, enabled: false, description: 'The remote one' }
    }, [
      /files: "env.TOKEN" is null/,
      /files: "env.KEY" has a variable of kind "cmd"/,
      /files: "custom_instructions" has no effect/,
      /files: "dev" has no effect/,
      /remote: "autoApprove" has no effect/
    ]],
    ['mcphub', {
      everything: {
        command: 'npx',
        args: ['-y', '@modelcontextprotocol/server-everything'],
        tools: {
          'everything-echo': { enabled: true, description: 'Says it again' },
          'everything-get-env': { enabled: false },
          'everything-gone': { enabled: false }
        },
        isolation: 'session'
      },
      remote: { type: 'streamable-http', url: 'https://remote.example.com/mcp', enabled: false, owner: 'admin', options: { timeout: 90_000 } }
    }, [/Not imported: users, bearerKeys, systemConfig/]]
  ]
  for (const [name, configs, warnings] of cases) {
    await t.test(name, async () => {
      const found = await imported(sample(name))
      assert.deepEqual(found.configs, configs)
      assertWarnings(found.warnings, warnings)
      for (const config of Object.values(found.configs)) {
        const { snapshot } = parseSnapshot({ mcpServers: { it: config } }, 1)
        assert.equal(snapshot.servers.get('it')?.problem, undefined)
        assert.equal(snapshot.servers.get('it')?.config, config, 'what is adopted is adopted once')
      }
    })
  }
  await t.test('Claude Code: servers of a project are read where it is named', async () => {
    const one = await imported(sample('claude-code-user'))
    assert.deepEqual(Object.keys(one.configs), ['everywhere'])
    assertWarnings(one.warnings, [/project \/home\/ada\/shop were skipped/])
    assert.deepEqual(Object.keys((await imported(sample('claude-code-user'), '/home/ada/shop')).configs), ['everywhere', 'shop'])
  })
  await t.test('a project that is not in the file is told, and an input that nobody answers takes its default', async (t) => {
    await assert.rejects(imported(sample('claude-code-user'), '/nope'), /has no project \/nope: its projects are .*\/home\/ada\/shop/)
    const inputs = [{ id: 'pick', type: 'pickString', options: ['a', 'b'], default: 'b' }]
    const { configs, warnings } = await importedText(t, { servers: { x: { command: 'node', args: ['${input:pick}'] } }, inputs })
    assert.deepEqual(configs, { x: { command: 'node', args: ['b'] } })
    assertWarnings(warnings, [/The input "pick" has its default value: --input pick=…/])
  })
  await t.test('envFile: its variables, and those of env before them', async (t) => {
    const temp = await temporaryFolder(t)
    await writeFile(join(temp, '.env'), '# a comment\nexport A=1\nB="two words"\r\nC=it # a comment\nD="two\nlines"\n')
    await writeFile(join(temp, 'mcp.json'), '{"mcpServers": {"x": {"command": "node", "envFile": ".env", "env": {"A": "own"}}}}')
    assert.deepEqual((await imported(join(temp, 'mcp.json'))).configs, { x: { command: 'node', env: { A: 'own', B: 'two words', C: 'it', D: 'two\nlines' } } })
  })
})

test('servers of a file are in the order of its text, also those with numbers as names', async (t) => {
  const file = join(await temporaryFolder(t), 'mcp.json')
  for (const [text, project] of [
    ['{"mcpServers": {"cz": {"command": "a"}, "77": {"command": "b"}, "33": {"command": "c"}}}'],
    ['{"servers": {"cz": {"command": "a"}, // "1": {}\n"77": {"command": "b"}, "33": {"command": "c"},}, }'],
    ['{"mcp": {"servers": {"cz": {"command": "a"}, "77": {"command": "b"}, "33": {"command": "c"}}}}'],
    ['{"context_servers": {"cz": {"command": "a"}}, "projects": {"/p": {"mcpServers": {"77": {"command": "b"}, "33": {"command": "c"}}}}}', '/p']
  ] as const) {
    await writeFile(file, text)
    const { servers } = await readClientConfigFile(file, async () => undefined, project)
    assert.deepEqual(servers.map(({ name, config }) => [name, config.command]), [['cz', 'a'], ['77', 'b'], ['33', 'c']], text)
  }
})

test('sections of the gateway\'s own settings that are not imported are told', async (t) => {
  const sections = ['teams', 'policies', 'guards', 'quotas', 'skills', 'oauthClients', 'userValues']
  const { warnings } = await importedText(t, {
    mcpServers: { x: { command: 'x' } }, groups: [{ name: 'g', servers: [] }], ...Object.fromEntries(sections.map((name) => [name, [{}]]))
  })
  assertWarnings(warnings, [new RegExp(`Not imported: ${sections.join(', ')}\\.`)])
})

test('long numbers, of which digits may be lost, are told', async (t) => {
  const text = '{"mcpServers":{"x":{"command":"x","args":["-n",112233445566778899],"env":{"ID":112233445566778899,"PORT":80}}}}'
  assertWarnings((await importedText(t, text)).warnings, [/x: "args" has a long number/, /x: "env.ID" has a long number/])
})

test('names that no server can have here, as VS Code writes them, become ones that it can have', async (t) => {
  const names = ['io.github.ada/weather', '@scope/files', 'mine (dev)', '天气/b', 'fine name', 'tools', '//', 'mine -dev']
  const { configs, warnings } = await importedText(t, { servers: Object.fromEntries(names.map((name) => [name, { command: 'x' }])) })
  assert.deepEqual(Object.keys(configs), ['io.github.ada-weather', 'scope-files', 'mine -dev-2', '天气-b', 'fine name', 'tools', '//', 'mine -dev'])
  assertWarnings(warnings, [/^io.github.ada-weather: it was renamed, since "io.github.ada\/weather"/, /^scope-files:/, /^mine -dev-2:/, /^天气-b:/])
})

test('single members', async (t) => {
  const cases: Array<[given: Record<string, unknown>, config: Record<string, unknown>, warnings: RegExp[]]> = [
    ...['http', 'HTTP', 'streamableHttp', 'streamable_http', 'streamable-http'].map((type): [Record<string, unknown>, Record<string, unknown>, RegExp[]] =>
      [{ type, url: 'https://x.example' }, { type: 'streamable-http', url: 'https://x.example' }, []]),
    [{ transport: 'sse', url: 'https://x.example' }, { type: 'sse', url: 'https://x.example' }, []],
    [{ type: 'ws', url: 'https://x.example' }, { type: 'ws', url: 'https://x.example' }, []],
    [{ command: 'x', enabled: true, disabled: true }, { command: 'x', enabled: false }, [/contradict/]],
    [{ command: ['npx', '-y', 'x'], environment: { A: 'b' } }, { command: 'npx', args: ['-y', 'x'], env: { A: 'b' } }, []],
    [{ command: 'x', wonder: 1, '//': 'a comment' }, { command: 'x', wonder: 1, '//': 'a comment' }, [/"wonder" is not known/]],
    [{ command: 'x', options: { timeout: 5, retries: 3 } }, { command: 'x', options: { timeout: 5, retries: 3 } }, [/"options.retries" is not known/]],
    [{ url: 'https://x.example', httpUrl: 'https://y.example' }, { url: 'https://x.example', httpUrl: 'https://y.example' }, [/"httpUrl" has no effect/]],
    [{ command: 'x', env: { A: '${input:my-key}' } }, { command: 'x', env: { A: '${MY_KEY}' } }, [/uses the input "my-key".*MY_KEY/]],
    ...([
      [{ url: 'https://x.example', env: { A: 'b' }, args: ['c'], cwd: '/' }, [/"args".* is remote/, /"env"/, /"cwd"/]],
      [{ type: 'sse', url: 'https://x.example', command: 'x', env: {}, args: [], cwd: '', headers: { A: 'b' } }, [/"command"/]],
      [{ command: 'x', url: 'https://x.example', headers: { A: 'b' } }, [/"url" has no effect: the server is a command/, /"headers"/]],
      [{ command: 'x', proxy: { url: 'http://p' }, oauth: { clientId: 'a' }, headers: {} }, [/"oauth"/, /"proxy"/]],
      [{ type: 'openapi', openapi: { url: 'https://x.example' }, headers: { A: 'b' }, env: { A: 'b' } }, [/"env".* OpenAPI/]]
    ] as Array<[Record<string, unknown>, RegExp[]]>).map(([same, warnings]): typeof cases[number] => [same, same, warnings]),
    ...([
      // GitHub Copilot.
      [{ type: 'local', command: 'x', tools: ['*'] }, { type: 'stdio', command: 'x' }, []],
      [{ command: 'x', tools: ['a', 'b'] }, { command: 'x', tools: { '*': { enabled: false }, a: { enabled: true }, b: { enabled: true } } }, []],
      [{ command: 'x', tools: [] }, { command: 'x', tools: { '*': { enabled: false } } }, [/"tools" is an empty list/]],
      [{ command: 'x', tools: { a: { enabled: false } } }, { command: 'x', tools: { a: { enabled: false } } }, []],
      [{ command: 'x', tools: [1] }, { command: 'x', tools: [1] }, []],
      // Gemini CLI, Codex: what is excluded stays off.
      [
        { command: 'x', includeTools: ['a', 'b'], excludeTools: ['b'] },
        { command: 'x', tools: { '*': { enabled: false }, a: { enabled: true }, b: { enabled: false } } }, []
      ],
      // opencode.
      [{ type: 'remote', url: 'https://x.example', enabled: false }, { url: 'https://x.example', enabled: false }, []],
      [
        { type: 'local', command: ['npx', '-y', 'x'], environment: { A: '{env:A_KEY}' }, timeout: 5_000 },
        { type: 'stdio', command: 'npx', args: ['-y', 'x'], env: { A: '${A_KEY}' }, options: { timeout: 5_000 } }, []
      ],
      [{ url: 'https://x.example', oauth: false }, { url: 'https://x.example' }, []],
      [
        { url: 'https://x.example', headers: { A: '{file:~/key}' } }, { url: 'https://x.example', headers: { A: '{file:~/key}' } },
        [/"headers.A" has the content of a file/]
      ],
      // Continue.
      [{ command: 'x', env: { A: '${{ secrets.A_KEY }}' } }, { command: 'x', env: { A: '${A_KEY}' } }, []],
      // Claude Code and opencode.
      [
        { url: 'https://x.example', oauth: { clientId: 'a', scopes: 'read write' } },
        { url: 'https://x.example', oauth: { clientId: 'a', scopes: ['read', 'write'] } }, []
      ],
      // Zed, now and formerly.
      [{ source: 'custom', command: 'x', args: ['y'] }, { command: 'x', args: ['y'] }, []],
      [{ command: { path: 'x', args: ['y'], env: { A: 'b' } } }, { command: 'x', args: ['y'], env: { A: 'b' } }, []],
      // Warp, and writers that fill in null.
      [{ command: 'x', working_directory: '/srv' }, { command: 'x', cwd: '/srv' }, []],
      [{ command: 'x', args: null, env: null, url: null }, { command: 'x' }, []]
    ] as typeof cases),
    [{ command: 'x', disabled: 'true' }, { command: 'x', enabled: false }, [/"disabled" is neither true nor false: the server is disabled/]],
    [{ url: ' https://x.example/mcp\n', headers: { A: null, B: 1 } }, { url: 'https://x.example/mcp', headers: { B: '1' } }, []],
    [{ command: 'x', env: { A: 2 ** 60, B: 7 } }, { command: 'x', env: { A: String(2 ** 60), B: '7' } }, [/"env.A" has a long number.*as a string/]],
    [
      { command: '${PY:-python}', args: ['${env:A:-b}', '${A:-b}'] }, { command: 'python', args: ['${A:-b}', '${A:-b}'] },
      [/"command" uses the default of PY: variables are not expanded there/]
    ],
    [{ command: '${workspaceFolder}/x' }, { command: '${workspaceFolder}/x' }, [/only an editor can expand/]]
  ]
  for (const [given, config, warnings] of cases) {
    await t.test(JSON.stringify(given), async () => {
      const adopted = translateConfig(given)
      assert.deepEqual(adopted.config, config)
      assertWarnings(adopted.warnings, warnings)
    })
  }
  await t.test('a config of our own is the same object', async () => {
    const own = { type: 'stdio', command: 'x', env: { A: '${A}' }, tools: { a: { enabled: false } }, isolation: 'session' }
    const { config, warnings } = translateConfig(own)
    assert.equal(config, own)
    assert.deepEqual(warnings, [])
  })
})

test('servers are found where other programs have them', async (t) => {
  const servers = { a: { type: 'remote', url: 'https://x.example/mcp' } }
  for (const document of [
    { $schema: 'https://opencode.ai/config.json', mcp: servers },
    { mcp: { servers } },
    { 'amp.mcpServers': servers },
    { context_servers: servers },
    { mcpServers: [{ name: 'a', ...servers.a }] }
  ]) {
    assert.deepEqual(await importedText(t, document), { configs: { a: { url: 'https://x.example/mcp' } }, warnings: [] }, JSON.stringify(document))
    const { snapshot } = parseSnapshot(document, 1)
    const [name = ''] = Object.keys(document).filter((each) => each !== '$schema' && each !== 'mcpServers')
    const warning = snapshot.warnings?.find((each) => each.includes(`"${name}"`))
    if (name !== '') assert.match(warning ?? '', /tool-hub import <file> adds them/, name)
  }
})

test('an override of all tools counts where a tool has none of its own', async () => {
  const server = { config: { tools: { '*': { enabled: false }, a: { enabled: true }, b: { description: 'Ours' } } } }
  const isOff = (key: string): boolean => overrideOf(server, 'tools', key)?.enabled === false
  assert.deepEqual(['a', 'b', 'c'].map(isOff), [false, true, true])
  assert.deepEqual(overrideOf(server, 'tools', 'b'), { description: 'Ours', enabled: false })
  assert.equal(overrideOf({ config: { prompts: { '*': { enabled: true } } } }, 'prompts', 'x'), undefined)
  const on = { config: withOverride(server, 'tools', 'c', { enabled: true }) }
  assert.equal(overrideOf(on, 'tools', 'c')?.enabled, true)
  const described = { config: withOverride(server, 'tools', 'd', { description: 'D' }) }
  assert.deepEqual(overrideOf(described, 'tools', 'd'), { description: 'D', enabled: false })
  assert.deepEqual(unmatchedOverrideWarnings(server, { lists: { tools: [{ key: 'a', text: '{}' }, { key: 'b', text: '{}' }], prompts: [], resources: [], resourceTemplates: [], skills: [], events: [] } }), [])
})

test('JSON with comments', async () => {
  assert.deepEqual(parseJsonc('\uFEFF{ // one\n "a": "// no, /* no", /* two\n */ "b": [1, 2, ], }'), { a: '// no, /* no', b: [1, 2] })
  assert.throws(() => parseJsonc('{"a": }'), SyntaxError)
})

test('overrides under the names of merged routes count', async () => {
  const config = { command: 'x', tools: { 'get-env': { enabled: false }, 'get-get': { description: 'Own' }, sum: { enabled: false } } }
  const { snapshot } = parseSnapshot({ mcpServers: { get: config } }, 1)
  const server = snapshot.servers.get('get')
  assert.ok(server)
  assert.equal(overrideOf(server, 'tools', 'env')?.enabled, false)
  assert.equal(overrideOf(server, 'tools', 'get-env')?.enabled, false, 'a tool may have this name itself')
  assert.equal(overrideOf(server, 'tools', 'get')?.description, 'Own')
  const on = { ...server, config: withOverride(server, 'tools', 'env', { enabled: true }) }
  assert.equal(overrideOf(on, 'tools', 'env')?.enabled, true)
  assert.equal(overrideOf(on, 'tools', 'get-env')?.enabled, false, 'what may be for another tool stays')
  assert.deepEqual(withOverride({ config: { tools: { a: { enabled: false } } } }, 'tools', 'a', { enabled: true }), {})
  const item = (key: string): { key: string, text: string } => ({ key, text: '{}' })
  const lists = { tools: [item('env'), item('get')], prompts: [], resources: [], resourceTemplates: [], skills: [], events: [] }
  assert.deepEqual(unmatchedOverrideWarnings(server, { lists }), ['The overrides of tools "sum" match none of its items'])
  const apart = parseSnapshot({ mcpServers: { get: { command: 'x', tools: { get__env: { enabled: false } } } }, systemConfig: { nameSeparator: '__' } }, 1)
  assert.equal(overrideOf(apart.snapshot.servers.get('get') ?? { config: {} }, 'tools', 'env')?.enabled, false, 'by the separator in force')
})

const admin = { authorization: `Bearer ${bearerKey().token}` }
type Json = Record<string, any> // eslint-disable-line @typescript-eslint/no-explicit-any
const ask = async (app: FastifyInstance, method: 'GET' | 'POST', url: string, body?: object, headers: Record<string, string> = admin): Promise<{ status: number, body: Json }> => {
  const { statusCode, payload } = await app.inject({ method, url, headers, payload: body })
  return { status: statusCode, body: JSON.parse(payload) as Json }
}

test('the settings file takes such configs, and keeps their text', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('other')] })
  const app = await appFor(t, {
    mcpServers: {
      it: { type: 'http', url: upstream.url, timeout: 5, autoApprove: ['echo'], tools: { 'it-echo': { enabled: false }, nothing: { enabled: false } } },
      off: { command: 'x', disabled: true }
    },
    bearerKeys: [bearerKey()]
  }, {}, { environment: {} })
  await until(async () => (await ask(app, 'GET', '/api/servers/it')).body.data.status === 'connected')
  const { data } = (await ask(app, 'GET', '/api/servers/it')).body
  assert.deepEqual(data.tools.map(({ name, enabled }: Json) => [name, enabled]), [['echo', false], ['other', true]])
  assert.equal(data.config.options.timeout, 5_000)
  assertWarnings(data.warnings, [/"timeout" is treated as 5 seconds/, /"autoApprove" has no effect/, /overrides of tools "nothing" match none of its items/])
  assert.equal((await ask(app, 'GET', '/api/servers/off')).body.data.status, 'disabled')
})

test('the settings file of MCPHub: overrides under prefixed names, keys, groups', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('get-env'), tool('other')] })
  const file = JSON.parse(readFileSync(sample('mcphub'), 'utf8')) as Json
  const { command: _, args: __, ...everything } = file.mcpServers.everything as Json
  const app = await appFor(t, { ...file, mcpServers: { ...file.mcpServers, everything: { ...everything, url: upstream.url } } })
  const key = { authorization: 'Bearer a-token-of-mcphub' }
  const server = async (): Promise<Json> => (await ask(app, 'GET', '/api/servers/everything', undefined, key)).body.data
  await until(async () => (await server()).status === 'connected')
  const { tools, warnings, config } = await server()
  assert.deepEqual(tools.map(({ name, enabled, description }: Json) => [name, enabled, description]),
    [['echo', true, 'Says it again'], ['get-env', false, 'The tool get-env'], ['other', true, 'The tool other']])
  assertWarnings(warnings, [/overrides of tools "everything-gone" match none of its items/])
  assert.equal(config.isolation, 'session')
  const call = async (toolName: string): Promise<number> =>
    (await ask(app, 'POST', '/api/tools/call/everything', { toolName, arguments: {} }, key)).status
  assert.deepEqual([await call('echo'), await call('get-env')], [200, 404])
  await ask(app, 'POST', '/api/servers/everything/tools/get-env/toggle', { enabled: true }, key)
  assert.equal(await call('get-env'), 200)
  assert.equal((await ask(app, 'GET', '/api/groups/daily', undefined, key)).status, 200)
})

test('POST /api/servers/batch takes the file of a client as it is', async (t) => {
  const app = await appFor(t, { bearerKeys: [bearerKey()] })
  const a = { url: 'https://127.0.0.1:1/mcp', type: 'streamableHttp', disabled: true, autoApprove: ['x'], env: { A: 'b' } }
  const { status, body } = await ask(app, 'POST', '/api/servers/batch', {
    mcpServers: { a, 'no/name': { command: 'x' } },
    globalShortcut: 'Ctrl+Space'
  })
  assert.equal(status, 207)
  assert.deepEqual(body.data.results.map(({ name, success }: Json) => [name, success]), [['a', true], ['no/name', false]])
  assertWarnings(body.data.results[0].warnings, [/autoApprove/, /"env" has no effect/])
  assertWarnings(body.warnings, [/globalShortcut/])
  const { data: { config, status: state } } = (await ask(app, 'GET', '/api/servers/a')).body
  assert.deepEqual([config.type, config.enabled, state], ['streamable-http', false, 'disabled'])
  const servers = { b: { type: 'http', url: 'https://127.0.0.1:1/mcp', disabled: true } }
  assert.equal((await ask(app, 'POST', '/api/servers/batch', { servers, inputs: [] })).status, 200, 'VS Code')
  const [expected, none] = [/^"servers": expected a list/, /^The body contains no servers$/]
  for (const [wrong, said] of [
    [{}, expected], [{ servers: {} }, none], [{ mcpServers: {} }, none], [{ servers: 'x' }, /must be array or object/], [{ servers: [] }, none]
  ] as const) {
    const { status, body } = await ask(app, 'POST', '/api/servers/batch', wrong)
    assert.equal(status, 400, JSON.stringify(wrong))
    assert.match(body.message, said)
  }
})

test('POST /api/servers/batch stores servers in the order of the text, also those with numbers as names', async (t) => {
  const config = (description = ''): string => JSON.stringify({ url: 'https://127.0.0.1:1/mcp', enabled: false, description })
  const named = (names: readonly string[], description?: string): string => `{${names.map((name) => `"${name}": ${config(description)}`).join()}}`
  for (const body of [
    `{"servers": ${named(['yed', '2', '1'])}}`,
    `{"mcpServers": ${named(['yed', '2', '1'])}}`,
    `{"1": 1, "mcp": {"servers": ${named(['yed', '2', '1'])}}}`,
    `{"servers": ${named(['yed'])}, "context_servers": ${named(['2', '1'])}}`,
    // One that is parsed in steps.
    `{"mcpServers": ${named(['yed', '2', '1'], 'x'.repeat(100_000))}}`
  ]) {
    const app = await appFor(t, { bearerKeys: [bearerKey()] })
    const answer = await app.inject({ method: 'POST', url: '/api/servers/batch', headers: { ...admin, 'content-type': 'application/json' }, payload: body })
    assert.equal(answer.statusCode, 200, answer.body)
    const { data } = answer.json<Json>()
    assert.deepEqual(data.results.map(({ name }: Json) => name), ['yed', '2', '1'])
    assert.deepEqual([...app.settings.current.servers.keys()], ['yed', '2', '1'], body.slice(0, 100))
  }
})

test('POST /api/servers/test connects once and stores nothing', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const app = await appFor(t, {
    mcpServers: { kept: { url: upstream.url, headers: { 'X-Secret': 'of-the-server' }, enabled: false } },
    bearerKeys: [bearerKey()]
  })
  const connected = await ask(app, 'POST', '/api/servers/test', { config: { url: upstream.url, type: 'http', autoApprove: ['x'] } })
  assert.deepEqual([connected.body.data.protocolVersion, connected.body.data.era], ['2025-11-25', 'legacy'])
  assert.equal(connected.status, 200)
  assert.deepEqual(connected.body.data.tools.map(({ name }: Json) => name), ['echo'])
  assert.equal(connected.body.data.connected, true)
  assertWarnings(connected.body.data.warnings, [/autoApprove/])
  const failed = await ask(app, 'POST', '/api/servers/test', { config: { command: process.execPath, args: ['-e', 'process.exit(3)'] } })
  assert.deepEqual([failed.status, failed.body.data.connected, failed.body.data.status], [200, false, 'disconnected'])
  assert.match(failed.body.data.error, /exit code 3/)
  const masked = (await ask(app, 'GET', '/api/servers/kept')).body.data.config
  assert.notEqual(masked.headers['X-Secret'], 'of-the-server')
  assert.equal((await ask(app, 'POST', '/api/servers/test', { name: 'kept', config: masked })).body.data.connected, true)
  assert.equal((await ask(app, 'POST', '/api/servers/test', { config: masked })).status, 400, 'a mask of nothing')
  assert.equal((await ask(app, 'POST', '/api/servers/test', { config: {} })).status, 400)
  assert.deepEqual((await ask(app, 'GET', '/api/servers')).body.data.map(({ name }: Json) => name), ['kept'])
})

test('the rules for storing a server hold for testing one', async (t) => {
  const upstream = await startUpstream(t, { tools: [] })
  const app = await appFor(t, { users: [{ username: 'ada', password: 'x', createdAt: '2026-01-01T00:00:00.000Z' }], bearerKeys: [bearerKey()] })
  const user = app.users.get('ada')
  assert.ok(user)
  const login = { 'x-auth-token': app.auth.createLoginToken(user) }
  assert.equal((await ask(app, 'POST', '/api/servers/test', { config: { command: 'true' } }, login)).status, 403, 'commands')
  assert.equal((await ask(app, 'POST', '/api/servers/test', { config: { type: 'Local', command: ['true'] } }, login)).status, 403, 'in any spelling')
  const private_ = await ask(app, 'POST', '/api/servers/test', { config: { url: upstream.url } }, login)
  assert.equal(private_.body.data.connected, false, 'users reach public addresses only')
})

test('the credential of the command line is good from this machine only', async (t) => {
  const localToken = `thl_${'b'.repeat(64)}`
  const app = await appFor(t, {}, { ALLOWED_HOSTS: 'hub.example.com' }, { localToken })
  const status = async (headers: Record<string, string>, url = '/api/servers', remoteAddress = '127.0.0.1'): Promise<number> =>
    (await app.inject({ url, headers: { host: '127.0.0.1:3000', ...headers }, remoteAddress })).statusCode
  const own = { authorization: `Bearer ${localToken}` }
  assert.equal(await status(own), 200, 'whatever names are ours')
  assert.equal(await status(own, '/api/users'), 200, 'as an admin')
  assert.equal(await status({ ...own, host: 'hub.example.com' }, '/api/servers', '::ffff:127.0.0.1'), 200)
  assert.equal(await status({ ...own, host: 'hub.example.com' }, '/api/servers', '192.0.2.7'), 401)
  assert.equal(await status({ ...own, host: 'hub.example.com', 'x-forwarded-for': '127.0.0.1' }), 401, 'not through a proxy')
  assert.equal(await status({ host: 'hub.example.com', authorization: `Bearer thl_${'c'.repeat(64)}` }), 401)
  assert.equal(await status({ ...own, host: 'hub.example.com' }, '/metrics'), 200)
  for (const header of ['x-forwarded-for', 'x-real-ip', 'via']) {
    const proxied = { ...own, host: 'hub.example.com', [header]: '192.0.2.7' }
    assert.equal(await status(proxied, '/metrics'), 401, `metrics through a proxy: ${header}`)
  }
  const mcp = await app.inject({ method: 'POST', url: '/mcp', headers: { ...own, host: 'hub.example.com', 'content-type': 'application/json' }, payload: '{}' })
  assert.equal(mcp.statusCode, 401, 'not on MCP routes')
})

test('files of other clients: what is expanded, switched off, and left out', async (t) => {
  const of = importedText.bind(undefined, t)
  const x = { command: 'x' }

  await t.test('Copilot: secrets by their prefix, with and without a dollar sign', async () => {
    const { configs, warnings } = await of({ mcpServers: { a: { ...x, env: { K: 'COPILOT_MCP_K', N: 'x COPILOT_MCP_N' } }, b: { url: 'https://b.example', headers: { A: 'Bearer $COPILOT_MCP_T' } } } })
    assert.deepEqual(configs, {
      a: { ...x, env: { K: '${COPILOT_MCP_K}', N: 'x COPILOT_MCP_N' } },
      b: { url: 'https://b.example', headers: { A: 'Bearer ${COPILOT_MCP_T}' } }
    })
    assert.deepEqual(warnings, [])
  })
  await t.test('a bare $NAME is kept, and told of', async () => {
    const { configs, warnings } = await of({ mcpServers: { a: { url: 'https://a.example', headers: { A: 'Bearer $TOKEN', B: 'costs $5', C: 'a$$B' } } } })
    assert.deepEqual(configs, { a: { url: 'https://a.example', headers: { A: 'Bearer $TOKEN', B: 'costs $5', C: 'a$$B' } } })
    assertWarnings(warnings, [/a: "headers\.A" has \$TOKEN, which is taken literally: write \$\{TOKEN\}/])
  })
  await t.test('opencode: variables of oauth, servers whose tools are off, entries that only switch', async () => {
    const { configs, warnings } = await of({
      mcp: { plain: { type: 'local', command: ['x'] }, far: { type: 'remote', url: 'https://far.example', oauth: { clientId: 'c', clientSecret: '{env:S}' } }, other: { enabled: false } },
      tools: { 'plain_*': false }
    })
    assert.deepEqual(configs, {
      plain: { type: 'stdio', command: 'x', args: [], enabled: false },
      far: { url: 'https://far.example', oauth: { clientId: 'c', clientSecret: '${S}' } }
    })
    assertWarnings(warnings, [/^other was skipped: its entry has neither a command nor an address/])
  })
  await t.test('Gemini: excluded and allowed servers; Zed: extensions', async () => {
    const enabled = async (mcp: object): Promise<unknown[]> => {
      const { configs } = await of({ mcp, mcpServers: { a: x, b: x } })
      return Object.values(configs).map((each) => (each as { enabled?: boolean }).enabled)
    }
    assert.deepEqual(await enabled({ excluded: ['a'] }), [false, undefined])
    assert.deepEqual(await enabled({ allowed: ['a'] }), [undefined, false])
    const { configs, warnings } = await of({ context_servers: { a: x, ext: { source: 'extension', enabled: true, settings: {} } } })
    assert.deepEqual(Object.keys(configs), ['a'])
    assertWarnings(warnings, [/^ext was skipped/])
  })
  await t.test('one warning for a transport that is written twice; TOML and YAML', async () => {
    const { warnings } = await of({ mcpServers: { a: { url: 'https://a.example', type: 'http', transportType: 'sse' } } })
    assertWarnings(warnings, [/a: "transportType" has no effect, since "type" is set too/])
    for (const [name, what] of [['config.toml', 'TOML'], ['config.yaml', 'YAML']] as const) {
      await assert.rejects(of('[mcp_servers.a]\ncommand: [', name), new RegExp(`is not ${what}: .*\\(line [12], column`))
    }
  })
  await t.test('a mistake in JSON is told in one line, with its place', async () => {
    for (const [text, says] of [
      ['{\n  // c\n  "mcpServers": { "a": { "command": "x" }\n    "b": {} } }', /wrong\.json is not JSON: .*, line 4, column 5$/],
      ['{ "mcpServers": {\n    "a": nope\n  }\n}', /is not JSON: [^\n]*$/],
      ['{ "mcpServers": {}\n}}', /is not JSON: [^\n]* after JSON, line 2, column 2$/]
    ] as const) await assert.rejects(of(text, 'wrong.json'), says)
  })
  await t.test('a server that is written twice', async () => {
    const { configs, warnings } = await of('{ "mcpServers": { "a": { "command": "x" }, "a": { "command": "y" } } }')
    assert.deepEqual(configs, { a: { command: 'y' } })
    assertWarnings(warnings, [/two members of one name/])
  })
  await t.test('TOML of Codex, and YAML of Continue', async () => {
    const codex = [
      'model = "gpt"', '[mcp_servers.files]', 'command = "npx"', 'args = ["-y", "files"]', 'startup_timeout_sec = 20', 'tool_timeout_sec = 90',
      '[mcp_servers.files.env]', 'A = "1"', '[mcp_servers.web]', 'url = "https://x.example/mcp"', 'bearer_token_env_var = "TOKEN"',
      'env_http_headers = { "X-Key" = "KEY" }', '[mcp_servers.web.http_headers]', 'X-Team = "a"'
    ].join('\n')
    const { configs, warnings } = await of(codex, 'config.toml')
    assert.deepEqual(configs, {
      files: { command: 'npx', args: ['-y', 'files'], startup_timeout_sec: 20, env: { A: '1' }, options: { timeout: 90_000 } },
      web: { url: 'https://x.example/mcp', headers: { Authorization: 'Bearer ${TOKEN}', 'X-Key': '${KEY}', 'X-Team': 'a' } }
    })
    assertWarnings(warnings, [/"startup_timeout_sec" has no effect/])
    const continued = 'name: mine\nmcpServers:\n  - name: notes\n    command: npx\n    args:\n      - notes\n'
    assert.deepEqual((await of(continued, 'config.yaml')).configs, { notes: { command: 'npx', args: ['notes'] } })
  })
})
