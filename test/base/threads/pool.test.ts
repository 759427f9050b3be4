import assert from 'node:assert/strict'
import { test } from 'tap'
import { until } from '../../helpers/hub.ts'
import { convertAndCheckArguments } from '../../../plugins/base/json-schema/check-arguments.ts'
import { parsedSizeOf } from '../../../plugins/base/threads/parsed-size.ts'
import { TaskAborted, WorkerPool } from '../../../plugins/base/threads/pool.ts'

const module = new URL('pool-tasks.mjs', import.meta.url).href
const bounds = { threads: 2, heap: 64, loading: 60_000, idle: 60_000, tasks: 10 }

test('a task is answered, or stopped by time or memory, and the next one runs', async () => {
  const pool = new WorkerPool(bounds)
  const run = async (task: string, time = 60_000): Promise<unknown> => await pool.run(module, task, { owner: 'ann', time })
  assert.equal(await run('a'), 'a')
  const { maxOldGenerationSizeMb, maxYoungGenerationSizeMb } = await run('limits') as NodeJS.Dict<number>
  assert.deepEqual([maxOldGenerationSizeMb, maxYoungGenerationSizeMb], [64, 12])
  await assert.rejects(run('endless', 50), TaskAborted)
  await assert.rejects(run('greedy'), { message: 'it needs more than 64 MB of memory' })
  await assert.rejects(run('later'), { message: 'not caught' })
  await assert.rejects(run('throws'), /of its own/)
  assert.equal(await run('b'), 'b')
  await assert.rejects(pool.run('test/base/threads/none', 'a', { owner: 'ann', time: 1_000 }), Error)
})

test('one owner neither has all threads nor all places', async () => {
  const pool = new WorkerPool(bounds)
  const run = async (owner: string, task: unknown): Promise<unknown> => await pool.run(module, task, { owner, time: 60_000 })
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const waiting = Array.from({ length: 7 }, async () => await run('ann', gate))
  await assert.rejects(run('ann', 'one more'), { name: 'ShareError' })
  assert.equal(await run('ben', 'b'), 'b', 'while all tasks of the other owner run or wait')
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
  assert.equal((await Promise.all(waiting)).length, 7)
})

test('a thread ends after an idle time, when its task is given up, and with its pool', async (t) => {
  const pool = new WorkerPool({ ...bounds, threads: 1, idle: 1 })
  t.after(() => { pool.close() })
  const run = async (task: string, signal?: AbortSignal): Promise<unknown> =>
    await pool.run(module, task, { owner: 'ann', time: 60_000, signal })
  const first = await run('thread')
  await until(async () => await run('thread') !== first, 'the thread stays')
  const controller = new AbortController()
  const endless = assert.rejects(run('endless', controller.signal), { message: 'it is no longer needed' })
  controller.abort()
  await endless
  await assert.rejects(run('a', AbortSignal.abort()), TaskAborted)
  const stopped = assert.rejects(run('endless'), { message: 'the thread has ended' })
  // By then the task has its thread.
  await new Promise((resolve) => { setImmediate(resolve) })
  pool.close()
  await stopped
  assert.equal(await run('a'), 'a')
})

test('a thread ends after a task with a long text, whose memory it would keep', async (t) => {
  const pool = new WorkerPool({ ...bounds, threads: 1, kept: 100 })
  t.after(() => { pool.close() })
  const run = async (length: number): Promise<unknown> =>
    await pool.run(module, 'thread', { owner: 'ann', time: 60_000, parsed: ['{}', ' '.repeat(length)] })
  const first = await run(100)
  assert.equal(await run(101), first)
  assert.notEqual(await run(1), first)
})

test('a task that is given up before it starts ends no thread', async (t) => {
  const pool = new WorkerPool({ ...bounds, threads: 1 })
  t.after(() => { pool.close() })
  const run = async (signal?: AbortSignal): Promise<unknown> =>
    await pool.run(module, 'thread', { owner: 'ann', time: 60_000, signal })
  const thread = await run()
  await assert.rejects(run(AbortSignal.abort()), TaskAborted)
  assert.equal(await run(), thread)
})

// A thread that runs out of memory within one step ends the whole process: without these checks, so does this test.
test('a text that may take more memory than a thread has is not parsed there', async () => {
  const pool = new WorkerPool(bounds)
  const list = (element: string, count: number): string => `{"a":[${Array(count).fill(element).join()}]}`
  const options = { owner: 'ann', time: 60_000 }
  const memory = { name: 'Error', message: 'it needs more than 64 MB of memory' }
  for (const text of [list('{}', 1_000_000), list('[]', 1_000_000), list('{"b":1}', 500_000)]) {
    await assert.rejects(pool.run(module, 'a', { ...options, parsed: ['{}', text] }), memory)
  }
  assert.equal(await pool.run(module, 'a', { ...options, parsed: [list('{}', 10_000), `"${'x'.repeat(2_000_000)}"`] }), 'a')

  const large = list('{}', 5_000_000)
  assert.equal(await convertAndCheckArguments({ schema: '{"type":"object"}', args: large }, 'ann'), undefined)
  assert.equal(await convertAndCheckArguments({ schema: large, args: '{}' }, 'ann'), undefined)
})

test('the memory of a parsed text grows with what separates its values, not with its strings', async () => {
  const sizeOf = (text: string, format: 'json' | 'yaml' = 'json'): number => parsedSizeOf(text, format, text.length * 39)
  assert.equal(sizeOf('[{},{}]'), 14 + 56 + 2 * 64 + 24)
  assert.equal(sizeOf(`"${'x'.repeat(98)}"`), 200)
  assert.ok(sizeOf('- - - a\n- {}\n', 'yaml') > 39 * 13, 'counting stops above what is asked')
  assert.equal(parsedSizeOf('[{},{}]', 'json', 1_000), 0, 'it takes less in any case')
})
