// From the packed tarball in an empty folder to a tool call, and each printed snippet run by its client. Needs npm's registry or cache.
// integration/first-start does the same with the local build.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { firstWordsIn, freePort, path, until } from '../helpers/hub.ts'
import { cachedPackages } from '../helpers/packages.ts'
import { startProgram } from '../helpers/programs.ts'

const execute = promisify(execFile)
const manifest = JSON.parse(readFileSync(path('package.json'), 'utf8')) as { devDependencies: Record<string, string> }
const everything = '@modelcontextprotocol/server-everything'
/** Clients that need a newer Node than the gateway. */
const inspector = { node: '22.23.3', '@modelcontextprotocol/inspector': '2.12.0' }
const agents = { node: '22.23.3', '@anthropic-ai/claude-code': '2.1.330', '@google/gemini-cli': '0.61.0' }

/** Runs a line in a shell. */
async function pasted (line: string, cwd: string, env: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await execute('sh', ['-euc', line], { cwd, env: { PATH: process.env.PATH ?? '', ...env } })
  return `${stdout}${stderr}`
}

test('from an empty folder to a tool call', async (t) => {
  assert.ok(existsSync(path('dist/cli/main.js')), 'the package is packed as it was built: npm run build')
  const folder = await temporaryFolder(t)
  const app = join(folder, 'app')
  const home = join(folder, 'home')
  const elsewhere = join(folder, 'elsewhere')
  for (const each of [app, home, elsewhere]) await mkdir(each)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const pages = ['README.md', 'docs/getting-started.md', 'docs/clients.md'].map((name) => readFileSync(path(name), 'utf8')).join('\n')
  /** The line of the documents with this beginning, for this clone and this gateway. */
  const documented = (beginning: string): string => {
    const found = pages.split('\n').find((line) => line.startsWith(beginning))
    assert.ok(found, beginning)
    return found.replaceAll('http://127.0.0.1:3000', url).replaceAll('/path/to/the/clone', path(''))
  }
  const [packing = '', installing = '', starting = ''] = documented('npm pack ').split(' && ')
  await pasted(`${packing} && ${installing}`, app)
  const tarball = join(app, readdirSync(app).find((name) => name.endsWith('.tgz')) ?? '')
  const packages = [everything, 'mcp-remote'].map((name) => `${name}@${manifest.devDependencies[name]}`)
  await execute('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...packages], { cwd: app, maxBuffer: 64 * 1024 * 1024 })

  const began = Date.now()
  const { said } = startProgram(t, 'sh', ['-c', `exec ${starting}`], { cwd: app, env: { HOME: home, PORT: String(port) } })
  await until(() => / add everything .*\n/.test(firstWordsIn(join(app, '.tool-hub'))), said)
  const output = firstWordsIn(join(app, '.tool-hub'))
  const line = (pattern: RegExp): string => pattern.exec(output)?.[0] ?? ''
  const KEY = line(/^thk_[0-9a-f]{64}$/m)

  await t.test('one paste calls a tool, in any folder', async (t) => {
    const answer = await pasted(line(/^.* add everything .*$/m), elsewhere, { HOME: home })
    t.comment(`from the command to the answer of the tool: ${((Date.now() - began) / 1_000).toFixed(1)} s`)
    assert.match(answer, /Echo: Hello/)
  })

  /** The JSON that is printed for a client. */
  const json = (client: string): string => new RegExp(`^${client} \\([^)\\n]*\\):\\n\\n(\\{\\n.*?^\\})$`, 'ms').exec(output)?.[1] ?? ''

  await t.test('Claude Desktop: mcp-remote', async (t) => {
    const { mcpServers: { 'tool-hub': server } } = JSON.parse(json('Claude Desktop')) as { mcpServers: { 'tool-hub': { command: string, args: string[], env: Record<string, string> } } }
    const client = new Client({ name: 'test', version: '1' })
    t.after(async () => { await client.close() })
    await client.connect(new StdioClientTransport({ ...server, env: { PATH: process.env.PATH ?? '', HOME: home, ...server.env }, cwd: app, stderr: 'ignore' }))
    assert.ok((await client.listTools()).tools.some(({ name }) => name === 'everything-echo'))
  })

  await t.test('MCP Inspector', async () => {
    const modules = await cachedPackages('inspector', inspector)
    const env = { PATH: `${modules}/.bin:${process.env.PATH ?? ''}`, HOME: home, MCP_INSPECTOR_SECRET_STORE: 'file', KEY }
    for (const each of [line(/^npx @modelcontextprotocol\/inspector .*$/m), documented('npx @modelcontextprotocol/inspector --cli')]) {
      assert.match(await pasted(each, join(modules, '..'), env), /everything-echo/)
    }
  })

  await t.test('npm install -g makes it a command', async () => {
    const prefix = join(folder, 'global')
    const globally = ['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', '--omit=optional', tarball]
    await execute('npm', globally, { maxBuffer: 64 * 1024 * 1024 })
    const env = { PATH: `${join(prefix, 'bin')}:${process.env.PATH ?? ''}`, HOME: home }
    assert.match(await pasted('tool-hub --version', elsewhere, env), /^\d+\.\d+\.\d+\n$/)
    assert.match(await pasted(`tool-hub --config ${join(app, 'mcp_settings.json')} list`, elsewhere, env), /everything +connected/)
  })

  // Downloads 650 MB.
  await t.test('Claude Code and Gemini CLI', async () => {
    const modules = await cachedPackages('agents', agents)
    const env = { PATH: `${modules}/.bin:${process.env.PATH ?? ''}`, HOME: home, GEMINI_CLI_TRUST_WORKSPACE: 'true', KEY }
    await pasted(documented('claude mcp add '), elsewhere, env)
    assert.match(await pasted('claude mcp list', elsewhere, env), /tool-hub: .* Connected/)
    await pasted('claude mcp remove tool-hub', elsewhere, env)
    await pasted(line(/^claude mcp add .*$/m), elsewhere, env)
    assert.match(await pasted('claude mcp list', elsewhere, env), /tool-hub: .* Connected/)
    for (const [at, add] of [documented('gemini mcp add '), line(/^gemini mcp add .*$/m)].entries()) {
      const own = { ...env, HOME: join(folder, `home-of-gemini-${at}`) }
      await mkdir(own.HOME)
      await pasted(add, elsewhere, own)
      assert.match(await pasted('gemini mcp list 2>&1', elsewhere, own), /tool-hub: .* Connected/)
    }
  })
})
