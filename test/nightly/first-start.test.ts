// The first five minutes: the packed tarball in an empty folder, one command, one paste, a tool call; each printed snippet run by its
// client. Needs npm's registry, or its cache. integration/first-start does it with what is built here.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { freePort, path, until } from '../helpers/hub.ts'
import { cachedPackages } from '../helpers/packages.ts'

const execute = promisify(execFile)
const manifest = JSON.parse(readFileSync(path('package.json'), 'utf8')) as { devDependencies: Record<string, string> }
const everything = '@modelcontextprotocol/server-everything'
/** Clients that need a newer Node than the gateway. */
const inspector = { node: '22.23.3', '@modelcontextprotocol/inspector': '2.12.0' }
const agents = { node: '22.23.3', '@anthropic-ai/claude-code': '2.1.330', '@google/gemini-cli': '0.61.0' }

/** Runs a line as a person pastes it into a shell. */
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
  const { stdout } = await execute('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], { cwd: path('') })
  const tarball = join(folder, (JSON.parse(stdout) as Array<{ filename: string }>)[0]?.filename ?? '')
  await writeFile(join(app, 'package.json'), '{"private": true}')
  const packages = [everything, 'mcp-remote'].map((name) => `${name}@${manifest.devDependencies[name]}`)
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--omit=optional', tarball, ...packages]
  await execute('npm', install, { cwd: app, maxBuffer: 64 * 1024 * 1024 })

  const port = await freePort()
  const began = Date.now()
  const hub = spawn('npx', ['tool-hub'], {
    cwd: app, env: { PATH: process.env.PATH ?? '', HOME: home, PORT: String(port) }, stdio: ['ignore', 'pipe', 'pipe'], detached: true
  })
  let output = ''
  hub.stdout.on('data', (chunk) => { output += String(chunk) })
  hub.stderr.on('data', (chunk) => { output += String(chunk) })
  const closed = new Promise((resolve) => { hub.once('close', resolve) })
  t.after(async () => {
    if (hub.pid !== undefined && hub.exitCode === null) process.kill(-hub.pid, 'SIGTERM')
    await closed
  })
  const line = (pattern: RegExp): string => pattern.exec(output)?.[0] ?? ''
  await until(() => / add everything .*\n/.test(output), () => output)

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
    const answer = await pasted(line(/^npx @modelcontextprotocol\/inspector .*$/m), join(modules, '..'), {
      PATH: `${modules}/.bin:${process.env.PATH ?? ''}`, HOME: home, MCP_INSPECTOR_SECRET_STORE: 'file'
    })
    assert.match(answer, /everything-echo/)
  })

  await t.test('npm install -g makes it a command', async () => {
    const prefix = join(folder, 'global')
    const globally = ['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', '--omit=optional', tarball]
    await execute('npm', globally, { maxBuffer: 64 * 1024 * 1024 })
    const env = { PATH: `${join(prefix, 'bin')}:${process.env.PATH ?? ''}`, HOME: home }
    assert.match(await pasted('tool-hub --version', elsewhere, env), /^\d+\.\d+\.\d+\n$/)
    assert.match(await pasted(`tool-hub --config ${join(app, 'mcp_settings.json')} list`, elsewhere, env), /everything +connected/)
  })

  // 650 MB are fetched for that.
  await t.test('Claude Code and Gemini CLI', async () => {
    const modules = await cachedPackages('agents', agents)
    const env = { PATH: `${modules}/.bin:${process.env.PATH ?? ''}`, HOME: home, GEMINI_CLI_TRUST_WORKSPACE: 'true' }
    await pasted(line(/^claude mcp add .*$/m), elsewhere, env)
    assert.match(await pasted('claude mcp list', elsewhere, env), /tool-hub: .* Connected/)
    await pasted(line(/^gemini mcp add .*$/m), elsewhere, env)
    assert.match(await pasted('gemini mcp list 2>&1', elsewhere, env), /tool-hub: .* Connected/)
  })
})
