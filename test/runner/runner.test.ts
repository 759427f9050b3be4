// The runner of the tests itself.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { path, until } from '../helpers/hub.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { batchesOf, filesOf } from './files.mjs'
import { inSlots, runProcess } from './process.mjs'
import { tapReader, told, type FileResult } from './report.mjs'
import { verdict } from './verdict.mjs'

const ended = (file: string, more: Partial<FileResult> = {}): FileResult =>
  ({ file, ok: true, ms: 1, passed: 1, failed: 0, skipped: 0, lines: [], failures: [], ...more })
const isRunning = (pid: number): boolean => {
  try { return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')) } catch { return false }
}

void test('the runner tells what failed, whatever a diagnosis holds', async (t) => {
  await t.test('a function, a circle and a large number are told as text', async () => {
    const circle: Record<string, unknown> = { run: () => 1 }
    circle.self = circle
    assert.match(told({ fn: function named () {}, big: 10n }), /function named/)
    assert.match(told(circle), /run/)
  })
  await t.test('TAP with a function in a diagnosis is read, and what follows it too', async () => {
    const results: FileResult[] = []
    const reader = tapReader((result) => { results.push(result) })
    reader.write([
      'TAP version 14', '# Subtest: test/a.test.ts', '    # Subtest: adds', '        not ok 1 - 1 is not 2', '          ---',
      '          actual: !function |', '            function () { return 1 }', '          ...', '        1..1', '    not ok 1 - adds # time=1ms',
      '    1..1', 'not ok 1 - test/a.test.ts # time=2ms', '# Subtest: test/b.test.ts', '    ok 1 - b', '    1..1', 'ok 2 - test/b.test.ts # time=1ms',
      '1..2', ''
    ].join('\n'))
    reader.end()
    assert.deepEqual(results.map(({ file, ok, failed }) => ({ file, ok, failed })), [
      { file: 'test/a.test.ts', ok: false, failed: 1 }, { file: 'test/b.test.ts', ok: true, failed: 0 }
    ])
    assert.equal(results[0]?.failures[0]?.path, 'adds')
    assert.equal(results[0]?.failures[0]?.first, '1 is not 2')
  })
  await t.test('a batch that dies tells which files it did not end', async () => {
    const results: FileResult[] = []
    const reader = tapReader((result) => { results.push(result) })
    reader.write('TAP version 14\n# Subtest: test/a.test.ts\n    ok 1 - a\n    1..1\nok 1 - test/a.test.ts\n# Subtest: test/b.test.ts\n    # Subtest: x\n')
    reader.end()
    assert.deepEqual(results.map(({ file }) => file), ['test/a.test.ts'])
  })
})

void test('a failure that passes alone is told as flaky; too many, or one listed for long, fail the run', async () => {
  const flaky = (count: number): Array<{ file: string, path: string, first: string }> =>
    Array.from({ length: count }, (_, n) => ({ file: `test/${n}.test.ts`, path: 'waits', first: 'was late' }))
  const run = { results: [ended('test/0.test.ts')], listed: [], steps: new Map([['lint', true]]), now: Date.parse('2026-11-28') }
  assert.deepEqual(verdict({ ...run, flaky: flaky(1) }), {
    lines: ['FLAKY test/0.test.ts › waits, was late', '1 files, 1 flaky, 0 tests skipped', '2 passed, 0 failed'], ok: true
  })
  assert.equal(verdict({ ...run, flaky: flaky(3) }).ok, true)
  assert.equal(verdict({ ...run, flaky: flaky(4) }).ok, false)
  for (const [date, ok] of [['2026-11-15', true], ['2026-11-13', false]] as const) {
    const listed = [{ test: 'test/0.test.ts › waits', cause: 'a race', date }]
    assert.equal(verdict({ ...run, flaky: flaky(1), listed }).ok, ok, date)
    assert.equal(verdict({ ...run, flaky: [], listed }).ok, true, 'it did not do it again')
  }
  assert.equal(verdict({ ...run, flaky: [], steps: new Map([['lint', false]]) }).ok, false)
  assert.equal(verdict({ ...run, flaky: [], results: [], steps: new Map() }).ok, false, 'nothing ran')
  const failed = ended('test/0.test.ts', { ok: false, failed: 1, failures: [{ path: 'adds', what: 'why', first: 'why' }] })
  assert.deepEqual(verdict({ ...run, flaky: [], results: [failed] }).lines.slice(1, 3), ['What failed:', '✖ test/0.test.ts › adds\n  why'])
})

void test('no process outlives the file that started it', { skip: process.platform !== 'linux' }, async (t) => {
  const cwd = await temporaryFolder(t)
  for (const options of ['{}', '{ detached: true }']) {
    const start = `const { spawn } = require('node:child_process'); const child = spawn('sleep', ['600'], ${options}); child.unref(); console.log(child.pid)`
    let output = ''
    const { code, ended } = await runProcess(process.execPath, ['-e', `${start}; process.exit(3)`], { cwd, onOutput: (text) => { output += text } })
    assert.deepEqual([code, ended], [3, undefined])
    const pid = Number(output)
    assert.ok(pid > 1)
    await until(() => !isRunning(pid), `${pid} runs on`)
  }
})

void test('a run that is ended takes with it what its own processes have started', { skip: process.platform !== 'linux' }, async (t) => {
  const cwd = await temporaryFolder(t)
  const inner = `import { runProcess } from ${JSON.stringify(path('test/runner/process.mjs'))}
    await runProcess('sh', ['-c', 'echo $$; exec sleep 600'], { cwd: '.', onOutput: (text) => { process.stdout.write(text, () => { process.kill(process.pid, 'SIGKILL') }) } })`
  let pid = 0
  const { ended } = await runProcess(process.execPath, ['--input-type=module', '-e', inner], { cwd, onOutput: (text) => { pid = Number(text) } })
  assert.equal(ended, 'killed by SIGKILL')
  assert.ok(pid > 1)
  await until(() => !isRunning(pid), `${pid} runs on`)
})

void test('a process without a line for long, or that takes too long, is ended with its reason', async (t) => {
  const cwd = await temporaryFolder(t)
  const silent = await runProcess(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { cwd, silence: 50 })
  assert.equal(silent.ended, 'no line for 0.05 s')
  const busy = await runProcess(process.execPath, ['-e', 'setInterval(() => { console.log(1) }, 1)'], { cwd, limit: 50 })
  assert.equal(busy.ended, 'not over after 0.05 s')
  assert.match((await runProcess('/nowhere', [], { cwd })).ended ?? '', /ENOENT/)
})

void test('slots run tasks in order, so many at a time', async () => {
  let now = 0
  let most = 0
  const order: number[] = []
  await inSlots(2, Array.from({ length: 5 }, (_, n) => async () => {
    most = Math.max(most, ++now)
    order.push(n)
    await Promise.resolve()
    now--
  }))
  assert.deepEqual(order, [0, 1, 2, 3, 4])
  assert.equal(most, 2)
})

void test('each file is in one batch, and one that needs its own process is alone', async () => {
  const files = filesOf('unit')
  assert.ok(files.includes('test/runner/runner.test.ts'))
  const batches = batchesOf(files, 12)
  assert.deepEqual(batches.flat().sort(), files)
  assert.deepEqual(batches.find((batch) => batch.includes('test/gateway/large-views.test.ts')), ['test/gateway/large-views.test.ts'])
})
