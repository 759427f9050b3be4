// What is stored of tasks, in which order, and while the storage is away.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { TaskRecord, Tasks } from '../../db/ports/tasks.ts'
import { StorageError } from '../../db/store.ts'
import { createProcessSealer } from '../../plugins/base/secrets/index.ts'
import { RunningTasks } from '../../plugins/gateway/running-tasks.ts'
import { TaskHandles } from '../../plugins/gateway/task-handles.ts'
import { makeView } from '../../plugins/settings/index.ts'
import { NonMcpClient } from '../../protocol/exchange.ts'

const view = makeView({ key: 'ann', kind: 'user-key', user: 'ann', username: 'ann', isAdmin: false }, { kind: 'global' })
const client = new NonMcpClient('c', 'ann')
const target = { provider: 's', server: 'identity', tool: 'run', id: 't1', run: '' }
const task = (status: string, more: object = {}): string =>
  JSON.stringify({ taskId: 't1', status, createdAt: '2026-01-01T00:00:00Z', ttl: null, ...more })

interface Storage { away: boolean, gate: Promise<unknown> }

/** A storage whose writes can be held, and the tasks with what it was asked to store. */
function made (): { tasks: RunningTasks, puts: Array<[state: string, lifetime: number]>, storage: Storage } {
  const stored = new Map<string, TaskRecord>()
  const puts: Array<[string, number]> = []
  const storage: Storage = { away: false, gate: Promise.resolve() }
  const fake: Partial<Tasks> = {
    put: async (each, lifetime) => {
      if (storage.away) throw new StorageError('away', false)
      await storage.gate
      puts.push([each.state, lifetime])
      stored.set(each.id, each)
    },
    find: async (id) => stored.get(id),
    list: async () => [...stored.values()],
    remove: async (id) => { stored.delete(id) }
  }
  const store = fake as Tasks
  const handles = new TaskHandles(createProcessSealer())
  const unused = {} as never
  const tasks = new RunningTasks({ store, handles, providers: unused, forwarder: unused, access: unused, logError: assert.ifError })
  return { tasks, puts, storage }
}

test('running tasks', async (t) => {
  await t.test('each state is stored once, in the order in which it came', async () => {
    const { tasks, puts, storage } = made()
    let open = (): void => {}
    storage.gate = new Promise<void>((resolve) => { open = resolve })
    const begun = tasks.recordState(view, client, target, 'h', task('working'))
    storage.gate = Promise.resolve()
    const ended = tasks.recordState(view, client, target, 'h', task('completed'))
    open()
    await Promise.all([begun, ended])
    for (let n = 0; n < 3; n++) await tasks.recordState(view, client, target, 'h', task('completed'))
    assert.deepEqual(puts.map(([state]) => state), ['working', 'completed'])
    assert.deepEqual(await tasks.list(), [])
  })

  await t.test('as long as the server keeps it, a day at most', async () => {
    const { tasks, puts } = made()
    const lifetimeOf = async (more: object): Promise<unknown> => {
      await tasks.recordState(view, client, { ...target, id: JSON.stringify(more) }, 'h', task('working', more))
      return puts.at(-1)?.[1]
    }
    const day = 24 * 60 * 60_000
    for (const [more, lifetime] of [
      [{ ttl: 5_000 }, 5_000], [{ ttlMs: 6_000 }, 6_000], [{}, day], [{ ttlMs: 1e15 }, day], [{ ttl: -1 }, day]
    ] as const) assert.equal(await lifetimeOf(more), lifetime)
  })

  await t.test('what a server tells is bounded', async () => {
    const { tasks } = made()
    await tasks.recordState(view, client, target, 'h', task('x'.repeat(10_000), { ttl: 1e300 }))
    const [stored] = await tasks.list()
    assert.deepEqual([stored?.state, stored?.ttl], ['x'.repeat(100), 365 * 24 * 60 * 60_000])
  })

  await t.test('what could not be stored is stored with the next answer', async () => {
    const { tasks, puts, storage } = made()
    storage.away = true
    await tasks.recordState(view, client, target, 'h', task('working'))
    assert.equal(puts.length, 0)
    storage.away = false
    await tasks.recordState(view, client, target, 'h', task('working'))
    assert.deepEqual(puts.map(([state]) => state), ['working'])
  })

  await t.test('an answer that is no task stores nothing; the result of a task ends it', async () => {
    const { tasks, puts } = made()
    for (const text of ['{}', '{"status":1}', '{"resultType":"complete"}']) await tasks.recordState(view, client, target, 'h', text)
    await tasks.recordEnd(view, client, target, 'completed')
    assert.equal(puts.length, 0)
    await tasks.recordState(view, client, target, 'h', task('working'))
    const [known] = await tasks.list()
    assert.deepEqual([known?.tool, known?.username, known?.createdAt], ['run', 'ann', Date.parse('2026-01-01T00:00:00Z')])
    await tasks.recordEnd(view, client, target, 'failed')
    await tasks.recordEnd(view, client, target, 'completed')
    assert.deepEqual(puts.map(([state]) => state), ['working', 'failed'])
    assert.equal(await tasks.find(known?.id ?? ''), undefined)
  })
})
