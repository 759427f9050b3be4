// What the command line prints and refuses, as a process of its own; no gateway runs. test/integration/cli.test.ts has the rest.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { path, type Cleanup } from '../helpers/hub.ts'

interface Ended { code: number | null, out: string, err: string }
interface Options { env?: Record<string, string>, cwd?: string, input?: string, isClosed?: boolean }

/** @param isClosed nobody reads its output */
async function cli (args: readonly string[], { env = {}, cwd, input = '', isClosed = false }: Options = {}): Promise<Ended> {
  const child = spawn(process.execPath, ['--import', path('node_modules/tsx/dist/loader.mjs'), path('cli/main.ts'), ...args], {
    env: { PATH: process.env.PATH ?? '', ...env }, cwd, stdio: 'pipe'
  })
  let [out, err] = ['', '']
  if (isClosed) child.stdout.destroy()
  else child.stdout.on('data', (chunk) => { out += String(chunk) })
  child.stderr.on('data', (chunk) => { err += String(chunk) })
  child.stdin.end(input)
  const code = await new Promise<number | null>((resolve) => { child.once('close', resolve) })
  return { code, out, err }
}

/** A folder with a settings file, and the environment that names it. */
async function settingsFor (t: Cleanup, settings: object = {}): Promise<{ folder: string, env: Record<string, string> }> {
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'mcp_settings.json'), JSON.stringify(settings))
  return { folder, env: { SETTINGS_PATH: join(folder, 'mcp_settings.json'), HOME: folder } }
}

test('add names what has no effect, and connects nothing while the gateway is down', async (t) => {
  const { env } = await settingsFor(t)
  const stdio = await cli(['add', 'a', '--header', 'X: a', '--', 'node', 'x'], { env })
  assert.deepEqual([stdio.code, stdio.out], [0, 'The server "a" was added. The gateway is down: it connects when that is started\n'])
  assert.match(stdio.err, /warning: "headers" has no effect: the server is a command/)
  const remote = JSON.parse((await cli(['add', 'b', '--json', '--env', 'A=1', 'http://127.0.0.1:9/mcp'], { env })).out) as { warnings: string[] }
  assert.match(remote.warnings.join(), /"env" has no effect/)
})

test('a command whose reader has gone ends quietly, with the code that it would have had', async (t) => {
  const { env } = await settingsFor(t, { mcpServers: { a: { command: 'x' } } })
  const cases: Array<[args: string[], code: number]> =
    [[['list'], 0], [['list', '--json'], 0], [['status'], 3], [['--help'], 0], [['completion', 'fish'], 0], [['check'], 0]]
  for (const [args, code] of cases) {
    const ended = await cli(args, { env: { ...env, JWT_SECRET: 'x'.repeat(32) }, isClosed: true })
    assert.deepEqual([ended.code, ended.err], [code, ''], args.join(' '))
  }
})
