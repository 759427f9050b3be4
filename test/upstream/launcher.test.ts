// The process that starts the processes of stdio servers. Linux only.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { test } from 'tap'
import { Launcher } from '../../plugins/upstream/launcher/launcher.ts'
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
  const parent = parentOf(first.pid)
  assert.match(commandOf(parent).join(' '), /launcher/)
  process.kill(parent, 'SIGKILL')
  await until(() => parentOf(first.pid) !== parent, 5_000)
  const second = await start(launcher, 'cat')
  t.after(() => { second.stdin.end() })
  assert.notEqual(parentOf(second.pid), parent)
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
