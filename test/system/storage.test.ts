// What disks do to the settings file, with a real full disk, a real failing fsync and a real bind mount. Run as root on Linux, by
// `npm run test:system`; it needs `unshare` and `mount` (util-linux) and `strace`.
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chown, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { before, test } from 'tap'
import type { Change } from '../../db/store.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { database } from '../helpers/database.ts'
import { cliProgram, tsServer, until, type Cleanup } from '../helpers/hub.ts'
import { runToEnd } from '../helpers/programs.ts'

interface Answer {
  error?: string
  message?: string
  full?: boolean
  servers: Record<string, string>
  problems: string[]
  health: string | null
  warnings: string[]
}
interface Driver {
  child: ChildProcessWithoutNullStreams
  ask: (command: { do: string; changes?: Change[] }) => Promise<Answer>
  seen: (path: string) => string
  kill: () => Promise<void>
}

const put = (key: string, description = ''): { do: string; changes: Change[] } => ({
  do: 'commit',
  changes: [{ entity: 'mcpServers', key, value: { command: 'node', description } }]
})

before(() => {
  assert.equal(process.platform, 'linux', 'these tests need Linux')
  assert.equal(process.geteuid?.(), 0, 'these tests need root: they mount file systems in a namespace of their own')
  for (const [command, from] of [['unshare', 'util-linux'], ['mount', 'util-linux'], ['strace', 'strace']] as const) {
    assert.equal(spawnSync(command, ['--version']).status, 0, `these tests need ${command}: apt-get install ${from}`)
  }
  const mounted = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { encoding: 'utf8' })
  assert.equal(mounted.status, 0, `these tests need to mount a tmpfs in a namespace of their own, and cannot: ${mounted.stderr}`)
})

/** A store in a process of its own, in its own mount namespace, after these mounts. */
async function drive (t: Cleanup, path: string, mounts: string): Promise<Driver> {
  const { command, args } = tsServer('test/fakes/store-driver.ts', path)
  const child = spawn('unshare', ['-m', 'sh', '-ec', `${mounts}\nexec "$@"`, 'sh', command, ...args])
  t.after(() => { child.kill('SIGKILL') })
  let complaints = ''
  child.stderr.on('data', (chunk) => { complaints += String(chunk) })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const nextLine = async (): Promise<string> => {
    const { done, value } = await lines.next()
    assert.ok(done !== true, `the process ended: ${complaints}`)
    return value
  }
  assert.equal(await nextLine(), 'ready')
  return {
    child,
    ask: async (command) => {
      const answer = nextLine()
      child.stdin.write(`${JSON.stringify(command)}\n`)
      return JSON.parse(await answer) as Answer
    },
    // The same process after two execs, so its view of the mounts is to be had by its number.
    seen: (path) => `/proc/${child.pid}/root${path}`,
    kill: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }
}

/** A folder, and the settings file in it. */
async function place (t: Cleanup): Promise<{ folder: string, path: string }> {
  const folder = await temporaryFolder(t)
  return { folder, path: join(folder, 'settings.json') }
}

const stored = async (path: string): Promise<string[]> =>
  Object.keys((JSON.parse(await readFile(path, 'utf8')) as { mcpServers: object }).mcpServers)

test('a full disk: refused as full, memory equals disk, the old file whole, and on without a restart', async (t) => {
  const { folder, path } = await place(t)
  const { ask, seen } = await drive(t, path, `mount -t tmpfs -o size=256k tmpfs ${folder}`)
  await ask({ do: 'load' })
  assert.equal((await ask(put('a', 'x'.repeat(20_000)))).error, undefined)
  assert.equal((await ask(put('b'))).error, undefined)
  const whole = await readFile(seen(path))
  await writeFile(seen(join(folder, 'filler')), Buffer.alloc(1_000_000)).catch(() => {})
  for (const command of [
    put('c'),
    put('c', 'y'.repeat(30_000)),
    { do: 'commit', changes: [{ entity: 'mcpServers' as const, key: 'b', value: undefined }] }
  ]) {
    const answer = await ask(command)
    assert.deepEqual([answer.error, answer.full], ['StorageError', true], answer.message)
    assert.match(answer.health ?? '', /ENOSPC/)
    assert.ok(!answer.message?.includes(folder), 'the message tells a path')
    assert.deepEqual(Object.keys(answer.servers), ['a', 'b'])
    assert.deepEqual(await readFile(seen(path)), whole)
    assert.deepEqual((await readdir(seen(folder))).sort(), ['filler', 'settings.json', 'settings.json.lock'])
  }
  await writeFile(seen(join(folder, 'filler')), '')
  await until(async () => (await ask({ do: 'state' })).health === null, 'health never came back')
  const answer = await ask(put('c'))
  assert.deepEqual([answer.error, Object.keys(answer.servers)], [undefined, ['a', 'b', 'c']])
  assert.deepEqual(await stored(seen(path)), ['a', 'b', 'c'])
  assert.deepEqual((await readdir(seen(folder))).sort(), ['filler', 'settings.json', 'settings.json.lock'], 'nothing of the looks for space')
})

test('a disk that is full at the start: read, not written, and on without a restart', async (t) => {
  const { folder, path } = await place(t)
  const { ask, seen } = await drive(
    t,
    path,
    `mount -t tmpfs -o size=64k tmpfs ${folder}; echo '{"mcpServers":{"a":{}}}' > ${path}; head -c 100000 /dev/zero > ` +
    `${folder}/filler || true`
  )
  const loaded = await ask({ do: 'load' })
  assert.deepEqual([Object.keys(loaded.servers), loaded.health === null], [['a'], false])
  assert.equal((await ask(put('b'))).full, true)
  await writeFile(seen(join(folder, 'filler')), '')
  assert.equal((await ask(put('b'))).error, undefined)
  assert.deepEqual(await stored(seen(path)), ['a', 'b'])
})

interface Tracer { strace: ChildProcessWithoutNullStreams, output: () => string }

/** Traces a running process, all of its threads, and changes what one kind of calls does. @param change for `inject=` of strace */
async function trace (t: Cleanup, pid: number, call: string, change: string): Promise<Tracer> {
  const strace = spawn('strace', ['-f', '-p', String(pid), '-e', `trace=${call}`, '-e', `inject=${call}:${change}`])
  t.after(() => { strace.kill('SIGKILL') })
  let output = ''
  strace.stderr.on('data', (chunk) => { output += String(chunk) })
  const isTraced = async (task: string): Promise<boolean> =>
    !/^TracerPid:\t0$/m.test(await readFile(`/proc/${pid}/task/${task}/status`, 'utf8'))
  await until(async () => (await Promise.all((await readdir(`/proc/${pid}/task`)).map(isTraced))).every(Boolean), () => `strace does not attach: ${output}`)
  return { strace, output: () => output }
}

/**
 * Makes the fsyncs of a running process fail, until the function that it returns is called; that one tells what they answered.
 * @param which `when=` of strace
 */
async function failFsync (t: Cleanup, pid: number, which: string): Promise<() => Promise<string>> {
  const { strace, output } = await trace(t, pid, 'fsync', `error=EIO${which}`)
  return async () => {
    const closed = once(strace, 'close')
    strace.kill('SIGINT')
    await closed
    return [...output().matchAll(/fsync\(.*= (0|-1)/g)].map(([, answer]) => answer).join(' ')
  }
}

for (const [what, which, answers] of [
  ['every fsync', '', /^-1/],
  ['the fsync of the folder, after the rename', ':when=2', /^0 -1 0/]
] as const) {
  test(`${what} fails: refused, memory equals disk, the old file whole, and on without a restart`, async (t) => {
    const folder = await temporaryFolder(t)
    const path = join(folder, 'settings.json')
    // One thread for files: strace counts calls by thread.
    const { ask, child } = await drive(t, path, 'export UV_THREADPOOL_SIZE=1')
    await ask({ do: 'load' })
    for (const name of ['a', 'b']) assert.equal((await ask(put(name))).error, undefined)
    const whole = await readFile(path)
    const mend = await failFsync(t, child.pid ?? 0, which)
    const answer = await ask(put('c'))
    assert.deepEqual([answer.error, answer.full], ['StorageError', false], answer.message)
    assert.match(answer.health ?? '', /EIO/)
    assert.deepEqual(Object.keys(answer.servers), ['a', 'b'])
    assert.deepEqual(await readFile(path), whole)
    assert.deepEqual((await readdir(folder)).sort(), ['settings.json', 'settings.json.lock'])
    assert.match(await mend(), answers)
    const again = await ask(put('c'))
    assert.deepEqual([again.error, Object.keys(again.servers), again.health], [undefined, ['a', 'b', 'c'], null])
    assert.deepEqual(await stored(path), ['a', 'b', 'c'])
  })
}

test('a file that is a mount point is written in place, and mended after a kill in the middle', async (t) => {
  const { folder, path } = await place(t)
  const real = join(await temporaryFolder(t), 'real.json')
  await writeFile(real, '{"mcpServers":{"a":{"command":"x"}}}')
  await writeFile(path, '')
  const { ino } = await stat(real)
  const mounts = `mount --bind ${real} ${path}`
  const first = await drive(t, path, mounts)
  await first.ask({ do: 'load' })
  for (const name of ['b', 'c']) assert.equal((await first.ask(put(name))).error, undefined)
  assert.deepEqual(await stored(real), ['a', 'b', 'c'])
  assert.equal((await stat(real)).ino, ino)
  assert.equal((await stat(real)).mode & 0o777, 0o600)
  assert.deepEqual((await readdir(folder)).sort(), ['settings.json', 'settings.json.bak', 'settings.json.lock'])

  // The only ftruncate is the one before the bytes are written over: the process is killed on it.
  const { strace } = await trace(t, first.child.pid ?? 0, 'ftruncate', 'delay_exit=120000000')
  first.child.stdin.write(`${JSON.stringify(put('d'))}\n`)
  await until(async () => (await stat(real)).size === 0, 'the write never began')
  const killed = first.kill()
  // A process that is traced is gone when its tracer is.
  strace.kill('SIGKILL')
  await killed
  assert.equal((await stat(real)).size, 0)

  const second = await drive(t, path, mounts)
  const loaded = await second.ask({ do: 'load' })
  assert.deepEqual([loaded.error, Object.keys(loaded.servers), loaded.problems.length], [undefined, ['a', 'b', 'c'], 1])
  assert.deepEqual(await stored(real), ['a', 'b', 'c'])
  assert.equal((await second.ask(put('d'))).error, undefined)
  assert.deepEqual(await stored(real), ['a', 'b', 'c', 'd'])
})

test('a mount point on a full disk: the old bytes go back', async (t) => {
  const folder = await temporaryFolder(t)
  const disk = await temporaryFolder(t)
  const path = join(folder, 'settings.json')
  await writeFile(path, '')
  const { ask, seen } = await drive(
    t,
    path,
    `mount -t tmpfs -o size=64k tmpfs ${disk}; echo '{"mcpServers":{"a":{}}}' > ${disk}/real; head -c 40000 /dev/zero > ` +
    `${disk}/filler; mount --bind ${disk}/real ${path}`
  )
  await ask({ do: 'load' })
  assert.equal((await ask(put('b'))).error, undefined)
  const whole = await readFile(seen(path))
  const answer = await ask(put('c', 'x'.repeat(60_000)))
  assert.deepEqual([answer.error, answer.full, Object.keys(answer.servers)], ['StorageError', true, ['a', 'b']], answer.message)
  assert.deepEqual(await readFile(seen(path)), whole)
  await ask(put('c', 'x'.repeat(60_000)))
  await writeFile(seen(join(disk, 'filler')), '')
  const { error, warnings } = await ask(put('c'))
  assert.equal(error, undefined)
  assert.deepEqual(await stored(seen(path)), ['a', 'b', 'c'])
  const [failed = '', again = '', ...others] = warnings
  assert.match(failed, /can be read, but not written\. .*ENOSPC/)
  assert.match(again, /can be written again/)
  assert.deepEqual(others, [], 'each is told once')
})

test('a read-only file system: read, and says why it cannot be written', async (t) => {
  const { folder, path } = await place(t)
  await writeFile(path, '{"mcpServers":{"a":{}}}')
  const { ask } = await drive(t, path, `mount --bind ${folder} ${folder}; mount -o remount,bind,ro ${folder}`)
  const loaded = await ask({ do: 'load' })
  assert.deepEqual([Object.keys(loaded.servers), /EROFS/.test(loaded.health ?? '')], [['a'], true])
  const answer = await ask(put('b'))
  assert.deepEqual([answer.error, answer.full, Object.keys(answer.servers)], ['StorageError', false, ['a']])
})

test('a file of another user stays that user\'s', async (t) => {
  const path = join(await temporaryFolder(t), 'settings.json')
  await writeFile(path, '{}')
  await chown(path, 65_534, 65_534)
  const { ask } = await drive(t, path, ':')
  await ask({ do: 'load' })
  assert.equal((await ask(put('a'))).error, undefined)
  const { uid, gid, mode } = await stat(path)
  assert.deepEqual([uid, gid, mode & 0o777], [65_534, 65_534, 0o600])
})

test('a backup and an export onto a full disk: the file is named with the reason and what to do, and none is left', async (t) => {
  const { folder, path } = await place(t)
  const disk = await temporaryFolder(t)
  const noise = randomBytes(300_000).toString('base64')
  await writeFile(path, JSON.stringify({ mcpServers: { a: { command: 'node', description: noise } } }), { mode: 0o600 })
  const { url } = await database(t)
  const env = { HOME: folder, DATA_DIR: folder }
  const [node, ...program] = cliProgram
  assert.ok(node)
  const imported = await runToEnd(node, [...program, 'db', 'import', path], { env: { ...env, DB_URL: url } })
  assert.equal(imported.code, 0, imported.said)
  for (const [says, command, source] of [
    ['a settings file', ['backup', 'it.zip'], { SETTINGS_PATH: path }],
    ['a database', ['backup', 'it.zip'], { DB_URL: url }],
    ['an export', ['db', 'export', 'it.json'], { DB_URL: url }]
  ] as const) {
    const mounts = `mount -t tmpfs -o size=64k tmpfs ${disk}; cd ${disk}`
    const listed = '"$@" && code=0 || code=$?; ls -A; exit $code'
    const { code, out, err } = await runToEnd('unshare', ['-m', 'sh', '-ec', `${mounts}\n${listed}`, 'sh', ...cliProgram, ...command], {
      env: { ...env, ...source }
    })
    const name = join(disk, command.at(-1) ?? '')
    assert.deepEqual([code, out], [1, ''], `${says}: ${out}${err}`)
    assert.ok(err.includes(`${name} cannot be written: there is no space left (ENOSPC). `), `${says}: ${err}`)
  }
})
