// Servers that are processes: their streams, their end, and what they print.
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { PassThrough, Writable } from 'node:stream'
import { test, type Test } from 'tap'
import { holdClock } from '../helpers/clock.ts'
import { UpstreamError } from '../../protocol/errors.ts'
import { killGroup } from '../../protocol/transports/process-tree.ts'
import { LastLines, toRedactedLine } from '../../protocol/transports/printed-line.ts'
import { StdioTransport, type StdioOptions } from '../../protocol/transports/stdio.ts'
import { type ChildCommand, startFailureMessage, type ProcessExit, type StartedProcess } from '../../protocol/transports/started-process.ts'
import { transportLimits } from '../../protocol/transports/transport.ts'
import { LogLineLimiter } from '../../plugins/base/limits/token-bucket.ts'
import { createConfigRedactor } from '../../plugins/base/secrets/redact.ts'
import { within } from '../helpers/client.ts'
import { deadline, path, until } from '../helpers/hub.ts'
import { gate } from '../helpers/wire.ts'

const linux = process.platform === 'linux' ? false : 'needs /proc'

/** The processes, zombies left out, for which this holds. */
function processes (holds: (pid: number, stat: string[]) => boolean): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      const [state = '', ...rest] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
      return state !== 'Z' && holds(pid, rest)
    } catch { return false }
  })
}

const inGroup = (pgid: number): number[] => processes((_pid, [, group]) => Number(group) === pgid)
const marked = (mark: string): number[] =>
  processes((pid) => {
    try { return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark) } catch { return false }
  })
/** A command that no other process has. */
const uniqueSleep = (): string => `sleep 304.${randomInt(1e9)}`

/** A process that has left the group of its parent, and has started a command without any environment. */
const orphanWith = (name: string): string =>
  `setsid sh -c "env -i $(command -v setsid) ${name} & sleep 305; true" >/dev/null 2>&1 </dev/null &`

/** The processes that run a command of two words. */
const running = (command: string): number[] =>
  processes((pid) => {
    try { return readFileSync(`/proc/${pid}/cmdline`, 'latin1') === `${command.replace(' ', '\0')}\0` } catch { return false }
  })
test('killGroup: a process group ends as a whole', { skip: linux }, async (t) => {
  /** A grace that no test waits out. */
  const long = 10 * deadline
  const start = async (script: string): Promise<{ pid: number, gone: Promise<void>, child: ChildProcess }> => {
    const child = spawn('sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    const gone = new Promise<void>((resolve) => { child.once('exit', () => { resolve() }) })
    await once(child.stdout, 'data')
    const pid = child.pid ?? 0
    t.after(() => { try { process.kill(-pid, 'SIGKILL') } catch {} })
    return { pid, gone, child }
  }

  await t.test('those who listen end at once', async () => {
    const { pid, gone, child } = await start('sleep 61 & sleep 61 & echo ready; wait')
    assert.equal(inGroup(pid).length, 3)
    await within('the end of the group', killGroup(pid, gone, long))
    assert.deepEqual(inGroup(pid), [])
    assert.equal(child.signalCode, 'SIGTERM', 'nobody had to be killed')
  })
  for (const [who, stubborn, slow] of [
    ['those who do not', "trap '' TERM; sleep 61 & sleep 61 & echo ready; wait; wait; sleep 61", "trap 'sleep 0.2; echo saved; exit' TERM; echo ready; while :; do sleep 0.1; done"],
    ['a child that outlives its leader', "(trap '' TERM; echo ready; sleep 61; sleep 61) & sleep 61", "(trap 'sleep 0.2; echo saved; exit' TERM; echo ready; while :; do sleep 0.1; done) & sleep 61"]
  ] as const) {
    await t.test(`${who} are killed after the grace, and not before`, async () => {
      const killed = await start(stubborn)
      await killGroup(killed.pid, killed.gone, 100)
      await until(() => inGroup(killed.pid).length === 0, 'somebody is left')
      const { pid, gone, child } = await start(slow)
      let said = ''
      child.stdout?.on('data', (chunk) => { said += String(chunk) })
      await within('the end of the group', killGroup(pid, gone, long))
      await until(() => said === 'saved\n', () => `it was killed: ${said}`)
    })
  }

  await t.test('a group of which only a zombie is left', async (t) => {
    // A child leaves the group, and never reads the exit code of its own child, which stays there.
    const outside = uniqueSleep()
    const { pid, gone, child } = await start(`sh -c 'sleep 61 & exec setsid ${outside}' & echo ready; wait`)
    t.after(() => { for (const each of running(outside)) process.kill(each, 'SIGKILL') })
    await until(() => running(outside).length === 1, 'nobody has left the group')
    await within('the end of the group', killGroup(pid, gone, long))
    assert.equal(child.signalCode, 'SIGTERM')
    process.kill(-pid, 0)
  })
  await t.test('a group that is gone already', async () => {
    const { pid, gone } = await start('echo ready')
    await gone
    await killGroup(pid, gone, long)
  })
})

interface Child {
  transport: StdioTransport
  heard: string[]
  lines: string[]
  closed: () => string | undefined
  /** Waits for its end; why it ended. */
  ended: () => Promise<string>
  send: (text: string, id?: number) => void
}

type StartOptions = Partial<StdioOptions & ChildCommand>

async function startChild (
  t: Test, command: string, args: string[], { env, cwd, ...more }: StartOptions = {}
): Promise<Child> {
  const heard: string[] = []
  const lines: string[] = []
  let closed: string | undefined
  const transport = new StdioTransport({
    child: { command, args, env: env ?? { PATH: process.env.PATH ?? '' }, cwd },
    onLine: (line) => { lines.push(line.text()) },
    grace: 500,
    ...more
  })
  t.after(async () => { await transport.close() })
  await transport.start({
    message: (message) => {
      heard.push(
        message.kind === 'response'
          ? `response ${message.id} ${message.resultText ?? message.errorText}`
          : `${message.kind} ${message.method} ${message.paramsText}`
      )
      return true
    },
    failed: (id, error) => { heard.push(`failed ${id} ${error.fault}: ${error.message}${error.detail}`) },
    paused: () => {},
    closed: (error) => {
      assert.equal(closed, undefined, 'closed is told twice')
      closed = `${error.message}${error.detail}`
      heard.push('closed')
    }
  })
  const ended = async (): Promise<string> => {
    await until(() => closed !== undefined)
    return closed ?? ''
  }
  return { transport, heard, lines, closed: () => closed, ended, send: (text, id) => { transport.send(text, { id }) } }
}

const sh = async (t: Test, script: string, more?: StartOptions): Promise<Child> =>
  await startChild(t, 'sh', ['-c', script], more)
const nodeScript = async (t: Test, script: string, more?: StartOptions): Promise<Child> =>
  await startChild(t, process.execPath, ['-e', script], more)

interface Held { startProcess: () => Promise<StartedProcess>, stdout: PassThrough, stderr: PassThrough, exit: (how: ProcessExit) => void }

/** A process that the test holds. No process has its id. */
function heldProcess (stdin: Writable, stdout = new PassThrough()): Held {
  const stderr = new PassThrough()
  const { promise: exited, open: exit } = gate<ProcessExit>()
  return { startProcess: async () => ({ pid: 2 ** 22 + 1, stdin, stdout, stderr, exited }), stdout, stderr, exit }
}

test('a request to a process that has just ended fails with its last words', async (t) => {
  const stdin = new Writable({ write: (_chunk, _encoding, callback) => { callback(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })) } })
  const { startProcess, stderr, exit } = heldProcess(stdin)
  const child = await startChild(t, 'dying', [], { startProcess })
  child.send('{"jsonrpc":"2.0","id":1,"method":"initialize"}', 1)
  // Whoever has inherited its stderr holds it open.
  stderr.write('dying of thirst\n')
  exit({ code: 3, signal: null })
  await until(() => child.heard.length > 0)
  assert.equal(child.heard[0], 'failed 1 unreachable: the process ended with exit code 3; its last lines:\ndying of thirst')
})

test('output is read again after a pause for memory, also if the line was complete by then', async (t) => {
  const { startProcess, stdout, exit } = heldProcess(new PassThrough(), new PassThrough({ highWaterMark: 1024 * 1024 }))
  const meter = { openAccount: () => ({ resize: () => false, close: () => {} }) }
  const child = await startChild(t, 'large', [], { startProcess, reading: { meter } })
  const text = 'x'.repeat(2 * transportLimits.small)
  stdout.write(`{"jsonrpc":"2.0","method":"first","params":{"text":"${text}"}}\n`)
  await until(() => child.heard.length === 1)
  stdout.write('{"jsonrpc":"2.0","method":"second"}\n')
  await until(() => child.heard.length === 2)
  assert.equal(child.heard[1], 'notification second {}')
  exit({ code: 0, signal: null })
})

test('stdio: a child and its streams', async (t) => {
  await t.test('messages come as they were printed, in pieces or together; CRLF and empty lines are no matter', async (t) => {
    const child = await nodeScript(
      t,
      `
      const out = Buffer.from('{"jsonrpc":"2.0","method":"a","params":{"text":"é😀"}}\\r\\n\\n\\r\\n' +
        '{"jsonrpc":"2.0","id":1,"result":{"n":12345678901234567890}}\\n{"jsonrpc":"2.0","id":2,"method":"ask"}\\n')
      const step = (at) => { if (at < out.length) process.stdout.write(out.subarray(at, at + 7), () => setTimeout(step, 1, at + 7)) }
      step(0); setTimeout(() => {}, 5000)`
    )
    await until(() => child.heard.length === 3)
    assert.deepEqual(child.heard, ['notification a {"text":"é😀"}', 'response 1 {"n":12345678901234567890}', 'request ask {}'])
    assert.deepEqual(child.lines, [])
  })
  await t.test('what is sent in one turn, or in many, arrives in order, each message on one line', async (t) => {
    const child = await startChild(t, 'cat', [])
    const sent: string[] = []
    for (let n = 0; n < 500; n++) {
      child.send(`{"jsonrpc":"2.0","method":"m",\n"params":{"n":${n},\r\n"é":"${'x'.repeat(n % 7 === 0 ? 5_000 : 3)}"}}`)
      sent.push(`notification m {"n":${n},  "é":"${'x'.repeat(n % 7 === 0 ? 5_000 : 3)}"}`)
      if (n % 50 === 49) await new Promise((resolve) => { setImmediate(resolve) })
    }
    await until(() => child.heard.length === 500)
    assert.deepEqual(child.heard, sent)
  })
  await t.test('garbage is no end: it is noted, and messages around it arrive', async (t) => {
    const child = await nodeScript(t, `
      process.stdout.write('Loading... done\\n[]\\nnull\\n{"this is":"no JSON-RPC"}\\n{"broken": \\n')
      process.stdout.write(Buffer.from([0xff, 0xfe, 0x0a]))
      process.stdout.write('{"jsonrpc":"2.0","method":"still here"}\\n')
      setTimeout(() => {}, 5000)`)
    await until(() => child.heard.length > 0)
    assert.deepEqual(child.heard, ['notification still here {}'])
    assert.deepEqual(child.lines.slice(0, 5), ['Loading... done', '[]', 'null', '{"this is":"no JSON-RPC"}', '{"broken": '])
    assert.equal(child.lines.length, 6)
  })
  await t.test('a broken answer fails its request at once', async (t) => {
    const child = await sh(t,
      'printf \'{"jsonrpc":"2.0","id":7,"result":{"a":}}\\n{"jsonrpc":"2.0","result":{]},"id":8}\\n\'; exec sleep 60')
    await until(() => child.heard.length === 2)
    assert.match(child.heard[0] ?? '', /^failed 7 broken: /)
    assert.match(child.heard[1] ?? '', /^failed 8 broken: /)
  })
  await t.test('the exit code and the last lines of stderr stand in the error', async (t) => {
    const child = await sh(
      t,
      'i=0; while [ $i -lt 30 ]; do echo "line $i" >&2; i=$((i+1)); done; echo "cannot read the licence file" >&2; exit 3'
    )
    // Only the last lines.
    assert.match(await child.ended(), /exit code 3; its last lines:\nline 21\n[^]*line 29\ncannot read the licence file$/)
    assert.equal(child.lines.length, 31)
  })
  await t.test('an answer that was printed before the end is an answer', async (t) => {
    for (let round = 0; round < 3; round++) {
      const child = await sh(t, 'read line; printf \'{"jsonrpc":"2.0","id":1,"result":{"n":"%050000d"}}\\n\' 0; exit 0')
      child.send('{"jsonrpc":"2.0","id":1,"method":"m"}', 1)
      await child.ended()
      assert.match(child.heard[0] ?? '', /^response 1 /)
      assert.equal(child.heard.at(-1), 'closed')
    }
  })
  await t.test('the last line of output may have no end: an answer, or the reason', async (t) => {
    const child = await sh(t, 'printf \'{"jsonrpc":"2.0","id":1,"result":{}}\'')
    await child.ended()
    assert.deepEqual(child.heard, ['response 1 {}', 'closed'])
    for (const stream of ['1', '2']) {
      const failed = await sh(t, `printf "no licence" >&${stream}; exit 3`)
      assert.match(await failed.ended(), /exit code 3; its last lines:\nno licence$/)
    }
  })
  await t.test('a signal is named; requests to what is gone fail at once', async (t) => {
    const child = await sh(t, 'kill -9 $$')
    assert.match(await child.ended(), /SIGKILL/)
    await until(() => { child.heard.length = 0; child.send('{"jsonrpc":"2.0","id":1,"method":"m"}', 1); return child.heard.length > 0 })
    assert.match(child.heard[0] ?? '', /^failed 1 unreachable: /)
  })
  await t.test('a line without an end: a plain error, and the child is ended', { skip: linux }, async (t) => {
    const child = await nodeScript(
      t,
      "const b = 'x'.repeat(65536); const w = () => { while (process.stdout.write(b)); process.stdout.once('drain', w) }; w()"
    )
    const { pid = 0 } = child.transport
    assert.match(await child.ended(), new RegExp(`line of more than ${transportLimits.message} bytes`))
    await until(() => inGroup(pid).length === 0)
    assert.ok(child.lines.every((line) => line.length <= 8 * 1024))
  })
  await t.test('a long line that ends is a message', async (t) => {
    const child = await nodeScript(
      t,
      'process.stdout.write(\'{"jsonrpc":"2.0","id":1,"result":"\' + \'x\'.repeat(15 * 1024 * 1024) + \'"}\\n\'); setTimeout(() => ' +
      '{}, 5000)'
    )
    await until(() => child.heard.length === 1)
    assert.equal(child.heard[0]?.length, 'response 1 ""'.length + 15 * 1024 * 1024)
  })
  await t.test('one that does not stop when told has nobody who reads it, so that it costs no memory', { skip: linux }, async (t) => {
    const child = await nodeScript(
      t,
      "process.on('SIGTERM', () => {}); process.stdout.on('error', () => { process.exit() }); const b = 'x'.repeat(65536); " +
      "const w = () => { while (process.stdout.write(b)); process.stdout.once('drain', w) }; w()",
      { grace: 10 * deadline }
    )
    const { pid = 0 } = child.transport
    await child.ended()
    // Nobody kills it: it ends since its output is closed.
    await until(() => inGroup(pid).length === 0)
  })
  await t.test('stderr is drained, however much comes, and cut to lines of a bounded length', async (t) => {
    const child = await nodeScript(
      t,
      'process.stderr.write(\'y\'.repeat(20 * 1024 * 1024) + \'\\nafter\\n\', () => { process.stdout.write(\'{"jsonrpc":"2.0",' +
      '"method":"done"}\\n\') }); setTimeout(() => {}, 5000)'
    )
    await until(() => child.heard.length > 0)
    await until(() => child.lines.includes('after'))
    assert.equal(child.lines.length, 2)
    assert.ok((child.lines[0]?.length ?? 0) <= 8 * 1024)
  })
  await t.test('closing ends the child and all that it started, also what left its group', { skip: linux }, async (t) => {
    const mark = randomUUID()
    const child = await sh(t, 'setsid sleep 62 & sleep 62 & echo \'{"jsonrpc":"2.0","method":"ready"}\'; wait', {
      env: { PATH: process.env.PATH ?? '', TEST_MARK: mark }
    })
    await until(() => child.heard.length > 0 && marked(mark).length >= 3)
    await child.transport.close()
    await until(() => marked(mark).length === 0, 'somebody is left')
    assert.equal(child.closed(), undefined, 'an end of our own is not told')
  })
  await t.test('also what left its group and emptied its environment', { skip: linux }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'tool-hub-child-'))
    t.after(async () => { await rm(folder, { recursive: true }) })
    const file = join(folder, 'pid')
    const child = await sh(t, `env -i "$(command -v setsid)" sh -c 'echo $$ > ${file}; exec /bin/sleep 62' & echo '{"jsonrpc":"2.0","method":"ready"}'; wait`)
    const pid = async (): Promise<number> => Number(await readFile(file, 'utf8'))
    await until(async () => child.heard.length > 0 && await pid() > 0)
    await child.transport.close()
    const left = await pid()
    // A process that has ended has no command line, even if nobody has asked for its end.
    await until(async () => await readFile(`/proc/${left}/cmdline`, 'utf8').catch(() => '') === '', 'it is left')
  })
  await t.test('also what a process outside of its group started, once both have lost their parents', { skip: linux }, async (t) => {
    const name = uniqueSleep()
    const child = await sh(t, `(${orphanWith(name)}); echo '{"jsonrpc":"2.0","method":"ready"}'; sleep 62`)
    await until(() => child.heard.length > 0 && running(name).length === 1)
    await child.transport.close()
    assert.equal(running(name).length, 0, 'it is left')
  })
  await t.test('also what a process outside of its group starts while the child has its time to end', { skip: linux }, async (t) => {
    const name = uniqueSleep()
    const folder = await mkdtemp(join(tmpdir(), 'tool-hub-child-'))
    t.after(async () => { await rm(folder, { recursive: true }) })
    // A process that has not left the group yet ends with it.
    const [left, told, begun] = [join(folder, 'left'), join(folder, 'told'), join(folder, 'begun')]
    const wait = (file: string): string => `while [ ! -e ${file} ]; do sleep 0.05; done`
    const late = `setsid sh -c "touch ${left}; ${wait(told)}; env -i $(command -v setsid) ${name} & touch ${begun}; sleep 305; true" >/dev/null 2>&1 </dev/null &`
    const child = await sh(t, `trap "touch ${told}" TERM; (${late}); ${wait(left)}; echo '{"jsonrpc":"2.0","method":"ready"}'; ${wait(begun)}`, {
      grace: 10 * deadline
    })
    await until(() => child.heard.length > 0)
    await child.transport.close()
    assert.equal(running(name).length, 0, 'it is left')
  })
  await t.test('also when the child ends by itself', { skip: linux }, async (t) => {
    const name = uniqueSleep()
    const child = await sh(t, `(${orphanWith(name)}); read line; exit 0`)
    await until(() => running(name).length === 1)
    child.send('{"jsonrpc":"2.0","method":"end"}')
    await child.ended()
    await until(() => running(name).length === 0, 'it is left')
  })
  await t.test('so does the child\'s own end', { skip: linux }, async (t) => {
    const mark = randomUUID()
    const child = await sh(t, 'setsid sleep 62 & sleep 62 & exit 0', { env: { PATH: process.env.PATH ?? '', TEST_MARK: mark } })
    await child.ended()
    await until(() => marked(mark).length === 0, 'somebody is left')
  })
  await t.test('a command that cannot be started: a sentence that says why', async (t) => {
    const table: Array<[string, StartOptions, RegExp]> = [
      ['no-such-command-here', {}, /cannot start "no-such-command-here": no such command/],
      ['sh', { cwd: '/no/such/folder' }, /no folder "\/no\/such\/folder"/],
      [path('package.json'), {}, /not executable/],
      ['no\0de', {}, /contains a NUL character: remove it/],
      ['sh', { env: { NAME: 'a\0b' } }, /contains a NUL character: remove it/]
    ]
    for (const [command, more, message] of table) {
      await assert.rejects(startChild(t, command, [], more),
        (error) => error instanceof UpstreamError && error.fault === 'unreachable' && message.test(error.message),
        command)
    }
  })
  await t.test('a child gets the environment it is given, and no more of ours', async (t) => {
    process.env.TEST_SECRET_OF_OURS = 'x'
    t.after(() => { delete process.env.TEST_SECRET_OF_OURS })
    const child = await nodeScript(t,
      'console.log(JSON.stringify({ jsonrpc: "2.0", method: "env", params: process.env })); setTimeout(() => {}, 5000)',
      { env: { PATH: process.env.PATH ?? '', GIVEN: '1' } })
    await until(() => child.heard.length > 0)
    const { TOOL_HUB_CHILD: ours, ...env } = JSON.parse(child.heard[0]?.slice('notification env '.length) ?? '') as Record<string, string>
    assert.equal(typeof ours, 'string')
    assert.deepEqual(env, { PATH: process.env.PATH, GIVEN: '1' })
  })
})

test('the last words of a process, without the frames of its stack', async () => {
  const frames = Array.from({ length: 12 }, (_, n) => `    at step${n} (/srv/app/index.js:${n}:7)`)
  const cases: Array<readonly [printed: string[], wanted: string[]]> = [
    [
      [
        'reading the config', 'node:internal/modules/cjs/loader:1228', '  throw err;', '  ^', "Error: Cannot find module '/srv/app/x.js'", ...frames,
        '{', "  code: 'MODULE_NOT_FOUND',", '  requireStack: []', '}', 'Node.js v22.11.0'
      ],
      ['reading the config', 'node:internal/modules/cjs/loader:1228', '  throw err;', '  ^', "Error: Cannot find module '/srv/app/x.js'", '{', "  code: 'MODULE_NOT_FOUND',", '  requireStack: []', '}']
    ],
    [
      [
        'Traceback (most recent call last):', '  File "/srv/app/main.py", line 3, in <module>', '    import missing', '    ^^^^^^^^^^^^^^',
        ...Array.from({ length: 12 }, (_, n) => `  File "/srv/app/step.py", line ${n}, in step`), "ModuleNotFoundError: No module named 'missing'"
      ],
      [
        ...Array.from({ length: 9 }, (_, n) => `  File "/srv/app/step.py", line ${n + 3}, in step`), "ModuleNotFoundError: No module named 'missing'"
      ]
    ],
    [
      ['Exception in thread "main" java.lang.IllegalStateException: no licence', '\tat app.Main.main(Main.java:5)', '\t... 12 more'],
      ['Exception in thread "main" java.lang.IllegalStateException: no licence']
    ],
    [['usage: server [--port N]', '  --port N  where to listen', '', 'at least one folder is needed'], ['usage: server [--port N]', '  --port N  where to listen', '', 'at least one folder is needed']],
    [['Error: no licence file', ...frames, 'Node.js v22.11.0'], ['Error: no licence file']],
    [frames, []]
  ]
  for (const [printed, wanted] of cases) {
    const words = new LastLines((line) => line)
    for (const line of printed) words.add(line)
    assert.equal(words.detail, wanted.length === 0 ? '' : `; its last lines:\n${wanted.join('\n')}`)
  }
})

test('lines that nobody is shown are not searched for secrets, however many a process prints', async (t) => {
  const clock = holdClock(t)
  let searched = 0
  const text = 'x'.repeat(400)
  const line = { length: text.length, text: () => { searched += text.length; return text } }
  const passed: string[] = []
  const dropped: number[] = []
  const [lines, size] = [100, 32 * 1024]
  const limit = new LogLineLimiter({ burst: size, perSecond: size }, (count) => { dropped.push(count) })
  const onLine = (each: typeof line): void => { if (limit.admit(Math.max(each.length, size / lines))) passed.push(each.text()) }
  for (let n = 0; n < 100_000; n++) onLine(line)
  assert.ok(searched >= 32 * 1024 && searched <= 32 * 1024 + 400, `${searched} characters`)
  clock.at += 1_010
  for (let n = 0; n < 200; n++) onLine({ length: 1, text: () => 'y' })
  assert.deepEqual(dropped, [100_000 - 82])
  assert.equal(passed.length, 82 + 100)
  // A line that is too long by itself is shown.
  clock.at += 1_000
  onLine({ length: 60_000, text: () => 'z' })
  assert.deepEqual([passed.at(-1), dropped.at(-1)], ['z', 100])

  let shown = 0
  const words = new LastLines((each) => { shown++; return each })
  for (let n = 0; n < 100_000; n++) words.add(text)
  assert.equal(shown, 0)
  for (let n = 0; n < 3; n++) words.add('w'.repeat(30_000))
  assert.equal(words.detail, `; its last lines:\n${'w'.repeat(500)}\n${'w'.repeat(500)}`)
})

test('a secret is masked in what a process prints, also where something that controls a terminal stands within it', async () => {
  const redact = createConfigRedactor({ env: { API_KEY: 's3cr3tABCDEFGHIJ' } })
  const within = ['\x1b[1m', '\x1b[0m', '\x00', '\x85', '\u202e', '\u2028', '\x1b]0;title\x07']
  for (const each of ['', ...within]) assert.equal(toRedactedLine(`key\t${each}s3cr3tAB${each}CDEFGHIJ !`, redact), 'key\t••••GHIJ !')
  assert.equal(toRedactedLine('a \x1b[31mred\x1b[0m word', redact), 'a red word')
  // A secret that holds such characters itself.
  assert.equal(toRedactedLine('key s3cr3t\x1b[0mABCDEFGH', createConfigRedactor({ env: { API_KEY: 's3cr3t\x1b[0mABCDEFGH' } })), 'key ••••EFGH')
})

test('a command with its arguments in one text is told where they belong', async () => {
  const missing = Object.assign(new Error('spawn'), { code: 'ENOENT' })
  for (const command of ['npx -y a-server', 'npx @scope/server /tmp', 'uvx  a/b', '/usr/bin/npx -y a-server']) {
    assert.match(startFailureMessage(command, undefined, missing), /"command" must be the program only: put its arguments into "args"$/)
  }
  for (const command of ['npx', '/opt/my tools/run']) assert.match(startFailureMessage(command, undefined, missing), /is it installed and on the PATH\?$/)
})
