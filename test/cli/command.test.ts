// What the command line prints and refuses; no gateway runs. test/integration/cli.test.ts has the rest.
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { test } from 'tap'
import { isMistypedAddress, mistypedAddressMessage } from '../../cli/commands/server-config.ts'
import { printError } from '../../cli/errors.ts'
import { toPrintable, toPrintableText } from '../../cli/printable.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { cli } from '../helpers/cli.ts'
import type { Cleanup } from '../helpers/hub.ts'

/** A folder with a settings file, and the environment that names it. */
async function settingsFor (t: Cleanup, settings: object = {}): Promise<{ folder: string, env: Record<string, string> }> {
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'mcp_settings.json'), JSON.stringify(settings))
  return { folder, env: { SETTINGS_PATH: join(folder, 'mcp_settings.json'), HOME: folder } }
}

test('backup and restore: JSON, names that begin with a dash, and failures of the disk in words', async (t) => {
  const { env, folder } = await settingsFor(t, { mcpServers: { a: { command: 'x' } } })
  const { code, out, err } = await cli(env, { cwd: folder })('backup', '--json', '--', '-x.zip')
  assert.deepEqual([code, err], [0, ''])
  const { file, kind, remarks } = JSON.parse(out) as { file: string, kind: string, remarks: string[] }
  assert.deepEqual([basename(file), kind, remarks], ['-x.zip', 'file', []])
  const nowhere = await cli(env)('backup', join(folder, 'nope/b.zip'))
  assert.deepEqual([nowhere.code, /^\S+nope\/b\.zip cannot be written: its folder does not exist \(ENOENT\)\. Choose a file/.test(nowhere.err)], [1, true], nowhere.err)
  const isFolder = await cli(env)('--json', 'backup', '--force', folder)
  assert.match((JSON.parse(isFolder.err) as { message: string }).message, /cannot be written: it is a folder/)
  const ofFolder = await cli(env)('restore', folder)
  assert.match(ofFolder.err, /^The backup \S+ cannot be used: it is a folder\. Nothing was changed\.\n$/)
  const refused = await cli(env)('restore', '--json', file)
  assert.match((JSON.parse(refused.err) as { message: string }).message, /exists and was not changed/)
  const restored = JSON.parse((await cli(env)('restore', file, '--replace', '--json')).out) as { location: string, bundles: string[], remarks: string[] }
  assert.deepEqual([basename(restored.location), restored.bundles, restored.remarks.length], ['mcp_settings.json', [], 2])
  // Before anything is changed.
  assert.match(restored.remarks[0] ?? '', /^Restores the backup of \S+ to .*mcp_settings\.json\.$/)
  const blocked = await cli({ ...env, DATA_DIR: join(file, 'data') })('restore', file, '--replace')
  assert.match(blocked.err, /^What is in .* cannot be written: what should be its folder is a file/)
})

test('db is a command, too, and makes nothing for an export', async (t) => {
  const { env, folder } = await settingsFor(t)
  const typo = await cli({ ...env, DB_URL: `pglite://${join(folder, 'typo')}` })('db', 'export', '--json', '-')
  assert.deepEqual([typo.code, /There is no Tool-Hub database/.test((JSON.parse(typo.err) as { message: string }).message)], [1, true])
  assert.deepEqual((await cli(env)('db')).code, 2)
})

test('add names what has no effect, and connects nothing while the gateway is down', async (t) => {
  const { env } = await settingsFor(t)
  const stdio = await cli(env)('add', 'a', '--header', 'X: a', '--', 'node', 'x')
  assert.deepEqual([stdio.code, stdio.out], [0, 'The server "a" was added. The gateway is down: the server connects once the gateway is started\n'])
  assert.match(stdio.err, /warning: "headers" has no effect: the server is a command/)
  const remote = JSON.parse((await cli(env)('add', 'b', '--json', '--env', 'A=1', 'http://127.0.0.1:9/mcp')).out) as { warnings: string[] }
  assert.match(remote.warnings.join(), /"env" has no effect/)
})

test('add refuses an address that is not one of http or https, and says what to write', async (t) => {
  for (const [given, rest] of [
    ['mcp.example.com/mcp', 'mcp.example.com/mcp'], ['localhost:9000/mcp', 'localhost:9000/mcp'],
    ['htps://mcp.example.com/mcp', 'mcp.example.com/mcp'], ['ftp://foo/mcp', 'foo/mcp']
  ] as const) {
    const said = mistypedAddressMessage('z', given)
    assert.ok(isMistypedAddress(given, process.env) && said.includes(`"${given}" looks like an address`), said)
    assert.ok(said.includes(`Write http://${rest} or https://${rest};`) && said.endsWith(`put two dashes before it: add z -- ${given}`), said)
  }
  const { env } = await settingsFor(t)
  const { code, out, err } = await cli(env)('add', 'z', 'htps://user:canary@a.example/mcp?key=canary')
  assert.deepEqual([code, out, err.includes('canary')], [2, '', false], err)
  assert.match(err, /Write http:\/\/…@a\.example\/mcp or https:/)
  const bare = await cli(env)('add', 'fs', 'npx', '-y', 'foo')
  assert.equal(bare.code, 2)
  assert.match(bare.err, /unknown option '-y'[^]*two dashes before a command that has options: tool-hub add fs -- npx -y foo/)
  assert.equal((await cli(env)('add', 'dashes', '--', 'mcp.example.com/mcp', 'x')).code, 0)
  assert.equal((await cli(env)('add', 'typed', '--type', 'stdio', 'mcp.example.com/mcp')).code, 0)
  const { mcpServers } = JSON.parse(await readFile(env.SETTINGS_PATH ?? '', 'utf8')) as { mcpServers: object }
  assert.deepEqual(Object.keys(mcpServers), ['dashes', 'typed'])
})

test('what is taken for a mistyped address, and what for a command', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'a.dir'))
  for (const name of ['tool:1', 'a.dir/server']) await writeFile(join(folder, name), '')
  const former = process.cwd()
  t.after(() => { process.chdir(former) })
  process.chdir(folder)
  const addresses = [
    'mcp.example.com/mcp', 'mcp.example.com:8080', 'hub:3000', 'hub:3000/mcp', 'LOCALHOST/mcp', '127.0.0.1/mcp', '127.0.0.1:1', '[::1]:9000/mcp',
    '[::1]/mcp', 'a.example?x', 'a.dir/other', 'htps://a', 'https:/a.example/mcp', 'ws://a/mcp', 'stdio://x'
  ]
  const commands = [
    'npx', 'uvx', './server.sh', '../a.example/mcp', '/usr/bin/foo', '~/a.b/c', 'bin/server', 'server.py', 'mcp.example.com', '@scope/pkg',
    'C:/tools/mcp.exe', 'C:\\tools\\mcp.exe', 'tool:1', 'a.dir/server', 'https://a.example/mcp', 'HTTP://a', ''
  ]
  for (const text of addresses) assert.equal(isMistypedAddress(text, {}), true, text)
  for (const text of commands) assert.equal(isMistypedAddress(text, {}), false, text)
  process.chdir(former)
  assert.deepEqual([isMistypedAddress('tool:1', {}), isMistypedAddress('tool:1', { PATH: `/nowhere:${folder}` })], [true, false])
})

test('a wrong option is a wrong usage, under the name that was given', async (t) => {
  const { env } = await settingsFor(t)
  for (const [args, sentence] of [
    [['serve', '--port', 'x'], '--port cannot be "x": expected a whole number from 0 to 65535'],
    [['--port=99999'], '--port cannot be "99999": expected a whole number from 0 to 65535'],
    [['logs', '-n', 'x'], '-n: expected a number'],
    [['logs', '--lines=x'], '--lines: expected a number'],
    [['import', 'none.json', '--input', '=k'], '--input: expected id=value']
  ] as const) {
    assert.deepEqual(await cli(env)(...args), { code: 2, out: '', err: `tool-hub: ${sentence}\n` }, args.join(' '))
  }
  for (const [args, message] of [
    [['status', '--nope'], 'unknown option \'--nope\''], [['key', 'revoke'], 'missing required argument \'key\''],
    [['logs', '-n', 'x'], '-n: expected a number'], [['group'], 'Specify a subcommand: --help lists them']
  ] as const) {
    const { code, out, err } = await cli(env)(...args, '--json')
    assert.deepEqual([code, out, JSON.parse(err)], [2, '', { success: false, message }], args.join(' '))
  }
})

test('what a server says steers no terminal', async () => {
  const hostile = 'a\u001b]0;x\u0007\u009b2J\u202eb\u{e0041}\r\nforged'
  const written: string[] = []
  const stderr = { write: (text: string) => written.push(text) }
  for (const isJson of [false, true]) printError(new Error(hostile), { stderr }, { isJson, prefix: 'tool-hub: ' })
  assert.equal(written[0], 'tool-hub: a�]0;x��2J�b� \n  forged\n')
  assert.equal((JSON.parse(written[1] ?? '') as { message: string }).message, hostile)
  assert.doesNotMatch(written.join(''), /(?!\n)[\p{Cc}\p{Bidi_Control}\u{e0000}-\u{e007f}]/u)
  assert.equal(toPrintableText('a\tb\n\u001b\u202e'), 'a\tb\n��')
  assert.equal(toPrintable('a\u{e0041}\nb'), 'a� b')
})

test('names in files steer no terminal', async (t) => {
  const folder = await temporaryFolder(t)
  const hostile = 'a\u009b2J\u202eb'
  const mcpServers = { sound: { command: 'run', env: { [hostile]: hostile } }, [hostile]: { command: hostile } }
  const path = join(folder, 'settings.json')
  await writeFile(path, JSON.stringify({ mcpServers, [hostile]: 1, groups: [{ id: 'g', name: hostile, servers: [hostile] }] }))
  const run = cli({ SETTINGS_PATH: path, JWT_SECRET: 'x'.repeat(32) })
  for (const args of [['check'], ['import', path, '--dry-run'], ['import', path, '--dry-run', '--json']]) {
    const { out, err } = await run(...args)
    assert.match(out, /a.+2J.+b/, args.join(' '))
    assert.doesNotMatch(out + err, /[\u009b\u202e]/, args.join(' '))
  }
})
