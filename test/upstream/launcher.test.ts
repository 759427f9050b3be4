// The process that starts the processes of stdio servers. Linux only.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { Launcher } from '../../plugins/upstream/launcher/launcher.ts'
import { allProcesses } from '../../protocol/transports/process-table.ts'
import type { StartedProcess } from '../../protocol/transports/started-process.ts'
import { until } from '../helpers/hub.ts'

const skip = process.platform === 'linux' ? false : 'Linux only'
const env = { PATH: process.env.PATH ?? '' }
const noWarning = (sentence: string): void => { throw new Error(sentence) }

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
  await until(() => parentOf(first.pid) !== parent, 5_000)
  // An order that was on its way to the one that was killed fails.
  let second: StartedProcess | undefined
  await until(async () => (second = await start(launcher, 'cat')), 10_000)
  t.after(() => { second?.stdin.end() })
  assert.ok(second && parentOf(second.pid) !== parent)
  first.stdin.write('still here\n')
  const [answer] = await once(first.stdout, 'data') as [Buffer]
  assert.equal(String(answer), 'still here\n')
  first.stdin.end()
  await once(first.stdout.resume(), 'close')
})

test('strangers at its address get nothing, and delay nobody', { skip }, async (t) => {
  const launcher = new Launcher()
  const first = await start(launcher, 'cat')
  t.after(() => { first.stdin.end() })
  const address = `\0${commandOf(parentOf(first.pid)).at(-1) ?? ''}`
  const heard: string[] = []
  const strangers: Socket[] = []
  for (let n = 0; n < 200; n++) {
    const stranger = connect(address)
    stranger.on('error', () => {}).on('data', (chunk: Buffer) => { heard.push(String(chunk)) })
    if (n % 2 === 0) stranger.write(`${'0'.repeat(32)}1\nhello`)
    strangers.push(stranger)
  }
  const second = await start(launcher, 'echo done')
  assert.equal(await textOf(second.stdout), 'done\n')
  await until(() => strangers.every(({ closed }) => closed), 10_000, 'a silent connection stays open')
  assert.deepEqual(heard, [])
  first.stdin.write('mine\n')
  assert.equal(String((await once(first.stdout, 'data'))[0]), 'mine\n')
})

test('many starts at once', { skip }, async () => {
  const launcher = new Launcher()
  const texts = await Promise.all(Array.from({ length: 60 }, async (_, n) => await textOf((await start(launcher, `echo ${n}`)).stdout)))
  assert.deepEqual(texts, Array.from({ length: 60 }, (_, n) => `${n}\n`))
})

test('where the launcher is killed during starts, nothing is left of those that failed', { skip }, async (t) => {
  for (const delay of [20, 35, 50, 70]) {
    const launcher = new Launcher()
    const first = await start(launcher, 'cat')
    t.after(() => { first.stdin.end() })
    const marks = Array.from({ length: 8 }, () => randomUUID())
    const starts = marks.map(async (mark) =>
      await launcher.start({ command: 'sleep', args: ['306'], env: { ...env, TOOL_HUB_CHILD: mark } }, noWarning))
    await sleep(delay)
    process.kill(parentOf(first.pid), 'SIGKILL')
    const settled = await Promise.allSettled(starts)
    const failed = new Set<string>(marks.filter((_mark, n) => settled[n]?.status === 'rejected'))
    const left = async (): Promise<number[]> =>
      (await allProcesses()).filter(({ mark }) => mark !== undefined && failed.has(mark)).map(({ pid }) => pid)
    await sleep(200)
    await until(async () => (await left()).length === 0, 5_000, 'a process is left that nobody knows')
    for (const each of settled) if (each.status === 'fulfilled') process.kill(each.value.pid, 'SIGKILL')
  }
})

test('what a stopped launcher has been asked to start fails, and closing does not wait for it', { skip, timeout: 60_000 }, async (t) => {
  const launcher = new Launcher()
  const first = await start(launcher, 'cat')
  t.after(() => { first.stdin.end() })
  const parent = parentOf(first.pid)
  process.kill(parent, 'SIGSTOP')
  const second = assert.rejects(start(launcher, 'cat'), /the launcher has ended/)
  await sleep(100)
  await Promise.all([launcher.close(), launcher.close()])
  await second
  assert.throws(() => process.kill(parent, 0), 'it is left, stopped')
  first.stdin.end()
  await first.exited
})

test('a launcher that does not become ready is given up', { skip, timeout: 60_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-launcher-'))
  t.after(async () => { await rm(folder, { recursive: true }) })
  const mute = join(folder, 'mute.mjs')
  await writeFile(mute, 'setInterval(() => {}, 1_000)')
  const warnings: string[] = []
  const warn = (sentence: string): void => { warnings.push(sentence) }
  const [late, closed] = [new Launcher(mute), new Launcher(mute)]
  const starts = [start(late, 'cat', warn), start(closed, 'cat')]
  await sleep(300)
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
