// The process that starts the processes of stdio servers. Linux only.
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { Launcher } from '../../plugins/upstream/launcher/launcher.ts'
import { allProcesses } from '../../protocol/transports/process-table.ts'
import type { StartedProcess } from '../../protocol/transports/started-process.ts'
import { silence, within } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'

const skip = process.platform === 'linux' ? false : 'Linux only'

/** It changes the limits of a process that runs; a part of util-linux. */
const noPrlimit = spawnSync('prlimit').error ? 'needs prlimit' : false
const run = promisify(execFile)
const env = { PATH: process.env.PATH ?? '' }
const noWarning = (sentence: string): void => { throw new Error(sentence) }

/** A launcher that has time, however slow the machine is. */
const patient = (): Launcher => new Launcher(undefined, { open: 200_000, start: 200_000, end: 80_000 })
const turn = async (): Promise<void> => { await new Promise((resolve) => { setImmediate(resolve) }) }

const start = async (launcher: Launcher, script: string, warn = noWarning): Promise<StartedProcess> =>
  await launcher.start({ command: 'sh', args: ['-c', script], env }, warn)

async function textOf (stream: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

/** The parent of a process. */
const parentOf = (pid: number): number => Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
const commandOf = (pid: number): string[] => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean)

/** The sockets at which a process listens: their inodes. */
function listenersOf (pid: number): string[] {
  const rows = (name: string): string[][] => {
    try { return readFileSync(`/proc/net/${name}`, 'utf8').split('\n').map((row) => row.trim().split(/\s+/)) } catch { return [] }
  }
  // The flag SO_ACCEPTCON, and the state LISTEN.
  const unix = rows('unix').filter((row) => row[3] === '00010000').map((row) => row[6])
  const tcp = ['tcp', 'tcp6'].flatMap(rows).filter((row) => row[3] === '0A').map((row) => row[9])
  const open = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try { return readlinkSync(`/proc/${pid}/fd/${fd}`) } catch { return '' }
  })
  return [...unix, ...tcp].filter((inode): inode is string => inode !== undefined && open.includes(`socket:[${inode}]`))
}

test('a process has its streams, and its end is told', { skip }, async () => {
  const child = await start(new Launcher(), 'cat; echo "last words" >&2; exit 3')
  child.stdin.end('one line\n')
  const [out, err, exit] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited])
  assert.deepEqual([out, err, exit], ['one line\n', 'last words\n', { code: 3, signal: null }])
})

test('output of megabytes, and that of a process which ends at once, arrives whole', { skip }, async () => {
  const launcher = new Launcher()
  const large = await start(launcher, 'head -c 5000000 /dev/zero')
  large.stdin.end()
  assert.equal((await textOf(large.stdout)).length, 5_000_000)
  const short = await Promise.all(Array.from({ length: 20 }, async (_, n) => await textOf((await start(launcher, `echo ${n}`)).stdout)))
  assert.deepEqual(short, Array.from({ length: 20 }, (_, n) => `${n}\n`))
})

test('a signal is named', { skip }, async () => {
  const child = await start(new Launcher(), 'kill -9 $$')
  assert.deepEqual(await child.exited, { code: null, signal: 'SIGKILL' })
})

test('what cannot be started is refused with its code', { skip }, async () => {
  const launcher = new Launcher()
  await assert.rejects(launcher.start({ command: 'no-such-command-1', args: [], env }, noWarning), { code: 'ENOENT' })
  await assert.rejects(launcher.start({ command: '/etc/passwd', args: [], env }, noWarning), { code: 'EACCES' })
  await assert.rejects(launcher.start({ command: 'sh', args: ['\0'], env }, noWarning), { code: 'ERR_INVALID_ARG_VALUE' })
})

test('nothing of our environment can be read from the parent of a process', { skip }, async () => {
  const child = await start(new Launcher(), 'cat /proc/$PPID/environ; cat')
  child.stdin.end()
  const names = (await textOf(child.stdout)).split('\0').filter(Boolean).map((each) => each.split('=')[0] ?? '')
  for (const name of names) assert.match(name, /^NODE_CHANNEL_/)
})

test('where the launcher is killed, its processes go on, and another one starts the next', { skip }, async (t) => {
  const launcher = new Launcher()
  const first = await start(launcher, 'cat')
  t.after(() => { first.stdin.end() })
  const parent = parentOf(first.pid)
  assert.match(commandOf(parent).join(' '), /launcher/)
  process.kill(parent, 'SIGKILL')
  await until(() => parentOf(first.pid) !== parent)
  // An order that was on its way to the one that was killed fails.
  let second: StartedProcess | undefined
  await until(async () => (second = await start(launcher, 'cat')))
  t.after(() => { second?.stdin.end() })
  assert.ok(second && parentOf(second.pid) !== parent)
  first.stdin.write('still here\n')
  const [answer] = await once(first.stdout, 'data') as [Buffer]
  assert.equal(String(answer), 'still here\n')
  first.stdin.end()
  await once(first.stdout.resume(), 'close')
})

test('nobody else can connect: neither it nor the gateway listens for its streams', { skip }, async (t) => {
  const before = new Set(listenersOf(process.pid))
  const launcher = new Launcher()
  const first = await start(launcher, 'cat')
  t.after(() => { first.stdin.end() })
  const added = (): string[] =>
    [...listenersOf(process.pid), ...listenersOf(parentOf(first.pid))].filter((each) => !before.has(each))
  assert.deepEqual(added(), [])
  const starts = { left: 10 }
  const heard = Promise.all(Array.from({ length: starts.left }, async (_, n) => {
    const text = await textOf((await start(launcher, `echo ${n}`)).stdout)
    starts.left--
    return text
  }))
  while (starts.left > 0) {
    assert.deepEqual(added(), [])
    await turn()
  }
  assert.deepEqual(await heard, Array.from({ length: 10 }, (_, n) => `${n}\n`))
})

test('while the gateway is busy, starts succeed, and their first output arrives whole', { skip }, async (t) => {
  const launcher = new Launcher()
  await (await start(launcher, 'true')).exited
  const busy = setInterval(() => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30) }, 1)
  t.after(() => { clearInterval(busy) })
  const lengths = await Promise.all(Array.from({ length: 12 }, async () =>
    (await textOf((await start(launcher, 'head -c 150000 /dev/zero; head -c 150000 /dev/zero')).stdout)).length))
  assert.deepEqual(lengths, lengths.map(() => 300_000))
})

test('a gateway that may open no more files says so, and what to do', { skip }, async () => {
  const script = `
    import { openSync } from 'node:fs'
    import { Launcher } from ${JSON.stringify(new URL('../../plugins/upstream/launcher/launcher.ts', import.meta.url).href)}
    const launcher = new Launcher()
    const start = async () => await launcher.start({ command: 'sleep', args: ['307'], env: { ...process.env, TOOL_HUB_CHILD } }, () => {})
    const TOOL_HUB_CHILD = '${randomUUID()}'
    const first = await start()
    try { for (;;) openSync('/dev/null') } catch {}
    await start().catch(({ message }) => { console.log(message) })
    process.kill(first.pid, 'SIGKILL')
    await launcher.close()
  `
  const args = ['-c', 'ulimit -n 200; exec "$0" "$@"', process.execPath, '--import', import.meta.resolve('tsx'), '--input-type=module']
  const { stdout } = await run('sh', [...args, '--eval', script])
  assert.match(stdout, /^the gateway has as many files open as it may have: raise its limit \(ulimit -n/)
})

test('a launcher that may open no more files says so, and what to do', { skip: skip === false ? noPrlimit : skip }, async (t) => {
  const launcher = new Launcher()
  const first = await start(launcher, 'cat')
  t.after(() => { first.stdin.end() })
  await run('prlimit', ['--pid', String(parentOf(first.pid)), '--nofile=3:'])
  await assert.rejects(start(launcher, 'true'), /^Error: the launcher has as many files open as it may have: raise the gateway's limit/)
  await run('prlimit', ['--pid', String(parentOf(first.pid)), '--nofile=1000:'])
  await (await start(launcher, 'true')).exited
})

test('many starts at once', { skip }, async () => {
  const launcher = new Launcher()
  const texts = await Promise.all(Array.from({ length: 30 }, async (_, n) => await textOf((await start(launcher, `echo ${n}`)).stdout)))
  assert.deepEqual(texts, Array.from({ length: 30 }, (_, n) => `${n}\n`))
})

/** Eight starts, of which the launcher has done some. @param done how many: 0 is none, or those that it has done by itself */
async function eightStarts (launcher: Launcher, marks: string[], done: number): Promise<Array<Promise<StartedProcess>>> {
  const starts = marks.map(async (mark) =>
    await launcher.start({ command: 'sleep', args: ['306'], env: { ...env, TOOL_HUB_CHILD: mark } }, noWarning))
  await Promise.allSettled(starts.slice(0, done))
  // The orders are on their way.
  await turn()
  return starts
}

test('where the launcher is killed during starts, nothing is left of those that failed', { skip }, async (t) => {
  for (const done of [0, 1, 3, 5]) {
    const launcher = patient()
    const first = await start(launcher, 'cat')
    t.after(() => { first.stdin.end() })
    const marks = Array.from({ length: 8 }, () => randomUUID())
    const starts = await eightStarts(launcher, marks, done)
    process.kill(parentOf(first.pid), 'SIGKILL')
    const settled = await Promise.allSettled(starts)
    const failed = new Set<string>(marks.filter((_mark, n) => settled[n]?.status === 'rejected'))
    const left = async (): Promise<number[]> =>
      (await allProcesses()).filter(({ mark }) => mark !== undefined && failed.has(mark)).map(({ pid }) => pid)
    await silence(200)
    await until(async () => (await left()).length === 0, 'a process is left that nobody knows')
    for (const each of settled) if (each.status === 'fulfilled') process.kill(each.value.pid, 'SIGKILL')
  }
})

test('where it is closed during starts, nothing is left', { skip }, async (t) => {
  for (const done of [1, 2, 5]) {
    const launcher = patient()
    const first = await start(launcher, 'cat')
    t.after(() => { first.stdin.end() })
    const mark = randomUUID()
    const settled = Promise.allSettled(await eightStarts(launcher, Array<string>(8).fill(mark), done))
    await within('the end of the launcher', launcher.close())
    // Of a launcher that is killed, something is left.
    assert.equal((await allProcesses()).filter((each) => each.mark === mark).length, 0)
    await settled
  }
})

test('what a stopped launcher has been asked to start fails, and closing does not wait for it', { skip }, async (t) => {
  const launcher = new Launcher(undefined, { end: 200 })
  const first = await start(launcher, 'cat')
  t.after(() => { first.stdin.end() })
  const parent = parentOf(first.pid)
  process.kill(parent, 'SIGSTOP')
  const second = assert.rejects(start(launcher, 'cat'), /the launcher has ended/)
  await turn()
  await Promise.all([launcher.close(), launcher.close()])
  await second
  assert.throws(() => process.kill(parent, 0), 'it is left, stopped')
  first.stdin.end()
  await first.exited
})

test('a launcher that does not become ready is given up', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-launcher-'))
  t.after(async () => { await rm(folder, { recursive: true }) })
  const mute = join(folder, 'mute.mjs')
  await writeFile(mute, 'setInterval(() => {}, 1_000)')
  const warnings: string[] = []
  const warn = (sentence: string): void => { warnings.push(sentence) }
  const [late, closed] = [new Launcher(mute, { open: 300 }), new Launcher(mute)]
  const starts = [start(late, 'cat', warn), start(closed, 'cat')]
  await closed.close()
  for (const each of starts) {
    const child = await each
    assert.equal(parentOf(child.pid), process.pid)
    child.stdin.end()
    await child.exited
  }
  assert.match(warnings.join(), /^there is no launcher.*not ready in time$/)
})

test('where there can be no launcher, processes are children of ours, and somebody is told', { skip }, async () => {
  const launcher = new Launcher('/no/such/module.js')
  const warnings: string[] = []
  const child = await start(launcher, 'cat', (sentence) => { warnings.push(sentence) })
  assert.equal(parentOf(child.pid), process.pid)
  child.stdin.end()
  await child.exited
  await (await start(launcher, 'true', noWarning)).exited
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] ?? '', /no launcher/)
})
