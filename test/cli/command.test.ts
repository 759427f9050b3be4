// What the command line prints and refuses, as a process of its own; no gateway runs. test/integration/cli.test.ts has the rest.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { cliProgram, type Cleanup } from '../helpers/hub.ts'

interface Ended { code: number | null, out: string, err: string }
interface Options { env?: Record<string, string>, cwd?: string, input?: string, isClosed?: boolean }

/** @param isClosed nobody reads its output */
async function cli (args: readonly string[], { env = {}, cwd, input = '', isClosed = false }: Options = {}): Promise<Ended> {
  const [command = '', ...program] = cliProgram
  const child = spawn(command, [...program, ...args], {
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

test('backup and restore: JSON, names that begin with a dash, and failures of the disk in words', async (t) => {
  const { env, folder } = await settingsFor(t, { mcpServers: { a: { command: 'x' } } })
  const { code, out, err } = await cli(['backup', '--json', '--', '-x.zip'], { env, cwd: folder })
  assert.deepEqual([code, err], [0, ''])
  const { file, kind, remarks } = JSON.parse(out) as { file: string, kind: string, remarks: string[] }
  assert.deepEqual([basename(file), kind, remarks], ['-x.zip', 'file', []])
  const nowhere = await cli(['backup', join(folder, 'nope/b.zip')], { env })
  assert.deepEqual([nowhere.code, /^\S+nope\/b\.zip cannot be written: its folder does not exist \(ENOENT\)\. Name a file/.test(nowhere.err)], [1, true], nowhere.err)
  const isFolder = await cli(['--json', 'backup', '--force', folder], { env })
  assert.match((JSON.parse(isFolder.err) as { message: string }).message, /cannot be written: it is a folder/)
  const refused = await cli(['restore', '--json', file], { env })
  assert.match((JSON.parse(refused.err) as { message: string }).message, /exists, and was left as it is/)
  const restored = JSON.parse((await cli(['restore', file, '--replace', '--json'], { env })).out) as { location: string, bundles: string[], remarks: string[] }
  assert.deepEqual([basename(restored.location), restored.bundles, restored.remarks.length], ['mcp_settings.json', [], 2])
  // Before anything is changed.
  assert.match(restored.remarks[0] ?? '', /^Restores the backup of \S+ to .*mcp_settings\.json\.$/)
  const blocked = await cli(['restore', file, '--replace'], { env: { ...env, DATA_DIR: join(file, 'data') } })
  assert.match(blocked.err, /^What is in .* cannot be written: what should be its folder is a file/)
})

test('db is a command, too, and makes nothing for an export', async (t) => {
  const { env, folder } = await settingsFor(t)
  const typo = await cli(['db', 'export', '--json', '-'], { env: { ...env, DB_URL: `pglite://${join(folder, 'typo')}` } })
  assert.deepEqual([typo.code, /There is no Tool-Hub database/.test((JSON.parse(typo.err) as { message: string }).message)], [1, true])
  assert.deepEqual((await cli(['db'], { env })).code, 2)
})

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
