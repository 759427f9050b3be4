// Tasks that run: who sees them, who cancels them, and what is known of them on other replicas and after a restart.
import assert from 'node:assert/strict'
import bcrypt from 'bcryptjs'
import { test } from 'tap'
import { recordCollections } from '../../db/records.ts'
import { startGates } from '../fakes/gates.ts'
import { loggedIn, manage, managed, startReplica, type Answer } from '../fakes/replica.ts'
import { startLegacyTasks, startModernTasks } from '../fakes/task-servers.ts'
import { at, connected, KEY, OTHER, otherKey, Session, settings, type Json } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { stdioFake } from '../helpers/stdio-fake.ts'
import { askWithTasks, publicServers } from '../helpers/task-clients.ts'

const password = 'Same-1234'
const hash = bcrypt.hashSync(password, 4)
const users = [
  { username: 'admin', password: hash, isAdmin: true }, { username: 'alice', password: hash }, { username: 'bob', password: hash }
]
/** The key of the admins, and one of alice. */
const people = { users, bearerKeys: [bearerKey(), otherKey({ kind: 'user', owner: 'alice', name: 'laptop' })] }

/** Begins a task as a modern client; its handle. */
async function begin (hub: Hub, name: string, { key = OTHER, path = '/mcp' } = {}): Promise<string> {
  const params = { name, arguments: { text: 'an argument' } }
  const answer = await askWithTasks(`${hub.url}${path}`, 'tools/call', params, { key })
  assert.equal(answer.result?.resultType, 'task', JSON.stringify(answer))
  return String(answer.result?.taskId)
}

const stateOf = async (hub: Hub, taskId: string): Promise<unknown> =>
  (await askWithTasks(`${hub.url}/mcp`, 'tasks/get', { taskId }, { key: OTHER })).result?.status

/** Two replicas with these servers. (Those of a settings file are private in a database.) */
async function replicas (t: Cleanup, db: string, servers: Json): Promise<[Hub, Hub]> {
  const [one, two] = [await startReplica(t, db, { settings: settings({}, people) }), await startReplica(t, db)]
  for (const [name, config] of Object.entries(servers)) await managed(one, 'POST', '/servers', { name, config })
  for (const hub of [one, two]) await connected(hub, Object.keys(servers).length)
  return [one, two]
}

type Asker = (method: string, path: string) => Promise<Answer>
/** Asks the management API as a user. */
async function as (hub: Hub, username: string): Promise<Asker> {
  const headers = await loggedIn(hub, username, password)
  return async (method, path) => await manage(hub, method, path, undefined, headers)
}
const listOf = async (ask: Asker): Promise<Json[]> => at((await ask('GET', '/tasks')).body, 'data') as Json[]
const cancel = async (ask: Asker, { id }: Json): Promise<Answer> => await ask('POST', `/tasks/${String(id)}/cancel`)

test('a user sees and cancels his own tasks, an admin all', async (t) => {
  const [legacy, modern] = [await startLegacyTasks(t), await startModernTasks(t)]
  const hub = await startHub(t, { settings: settings(publicServers({ legacy: legacy.url, modern: modern.url }), people) })
  await connected(hub, 2)
  const [admin, alice, bob] = [await as(hub, 'admin'), await as(hub, 'alice'), await as(hub, 'bob')]
  const handles = [await begin(hub, 'legacy-held'), await begin(hub, 'modern-held')]
  await begin(hub, 'held', { key: KEY, path: '/mcp/modern' })

  await t.test('with what is known of them, without arguments and handles', async () => {
    const [second, first] = await listOf(alice)
    const { id, startedAt, updatedAt, ttl, ...shown } = second ?? {}
    assert.deepEqual(shown, {
      server: 'modern', tool: 'held', username: 'alice', keyName: 'laptop', route: '/mcp', state: 'working'
    })
    assert.equal(ttl, 60_000)
    for (const time of [startedAt, updatedAt]) assert.ok(!Number.isNaN(Date.parse(String(time))), String(time))
    assert.deepEqual([first?.server, first?.tool], ['legacy', 'held'])
    assert.match(String(id), /^[\w-]{43}$/)
    const [all, none] = [await admin('GET', '/tasks'), await bob('GET', '/tasks')]
    assert.deepEqual((at(all.body, 'data') as Json[]).map(({ username, route }) => [username, route]), [
      [undefined, '/mcp/modern'], ['alice', '/mcp'], ['alice', '/mcp']
    ])
    assert.deepEqual(at(none.body, 'data'), [])
    for (const text of ['an argument', ...handles]) assert.equal(all.text.includes(text), false)
  })

  await t.test('not those of others', async () => {
    const [theirs] = (await listOf(admin)).filter(({ username }) => username === undefined)
    for (const [ask, task] of [[bob, (await listOf(alice))[0]], [alice, theirs], [admin, { id: 'x' }]] as const) {
      assert.equal((await cancel(ask, task ?? {})).status, 404)
    }
    assert.deepEqual([legacy.world.cancelled, modern.world.cancelled], [[], []])
  })

  await t.test('cancelled, they are told so to their clients, and no longer listed', async () => {
    const [second, first] = await listOf(alice)
    const own = await cancel(alice, first ?? {})
    assert.deepEqual([own.status, at(own.body, 'data', 'state')], [200, 'cancelled'], own.text)
    const by = await cancel(admin, second ?? {})
    assert.deepEqual([by.status, at(by.body, 'data', 'state')], [200, 'cancelled'], by.text)
    assert.deepEqual([legacy.world.cancelled, modern.world.cancelled], [['held'], ['held']])
    for (const handle of handles) assert.equal(await stateOf(hub, handle), 'cancelled')
    assert.deepEqual(await listOf(alice), [])
    assert.equal((await cancel(admin, second ?? {})).status, 404)
  })

  await t.test('one that has ended meanwhile is 409, and no longer listed', async () => {
    await begin(hub, 'modern-held')
    const [task] = await listOf(alice)
    modern.world.release()
    await until(() => modern.world.held === 0)
    const answer = await cancel(alice, task ?? {})
    assert.deepEqual([answer.status, /It has ended/.test(answer.text)], [409, true], answer.text)
    assert.deepEqual(await listOf(alice), [])
  })

  await t.test('a task of a server that is away: 502, and it stays in the list', async () => {
    await begin(hub, 'modern-held')
    const [task] = await listOf(alice)
    await managed(hub, 'POST', '/servers/modern/toggle', { enabled: false })
    const answer = await cancel(alice, task ?? {})
    assert.equal(answer.status, 502, answer.text)
    assert.equal((await listOf(alice)).length, 1)
    await managed(hub, 'POST', '/servers/modern/toggle', { enabled: true })
    await connected(hub, 2)
    // Its tool is hidden, and the task can be cancelled all the same.
    await managed(hub, 'POST', '/servers/modern/tools/held/toggle', { enabled: false })
    assert.equal((await cancel(alice, task ?? {})).status, 200)
  })

  await t.test('one that its server no longer knows, or whose server is gone, is 409, and no longer listed', async () => {
    for (const lose of [
      async () => { modern.world.forget() },
      async () => { await managed(hub, 'PUT', '/servers/modern', { config: { url: legacy.url, visibility: 'public' } }) }
    ]) {
      await begin(hub, 'modern-may')
      const [task] = await listOf(alice)
      await lose()
      const answer = await cancel(alice, task ?? {})
      assert.deepEqual([answer.status, /It has ended/.test(answer.text)], [409, true], answer.text)
      assert.deepEqual(await listOf(alice), [])
    }
  })

  await t.test('not those of a former user with the same name', async () => {
    await begin(hub, 'legacy-held')
    const [task] = await listOf(alice)
    assert.ok(task)
    await managed(hub, 'DELETE', '/users/alice')
    await managed(hub, 'POST', '/users', { username: 'alice', password })
    const another = await as(hub, 'alice')
    assert.deepEqual(await listOf(another), [])
    assert.equal((await cancel(another, task)).status, 404)
    assert.equal((await listOf(admin)).some(({ id }) => id === task.id), true)
  })
})

test('what is known of tasks holds on every replica, and after a restart', async (t) => {
  const [legacy, modern] = [await startLegacyTasks(t), await startModernTasks(t)]
  const { url: db } = await database(t)
  const [one, two] = await replicas(t, db, publicServers({ legacy: legacy.url, modern: modern.url }))
  const session = await Session.open(`${one.url}/mcp`, { key: OTHER })
  const begun = await session.ask('tools/call', { name: 'legacy-held', arguments: {}, task: {} })
  const taskId = String(at(begun, 'task', 'taskId'))
  await begin(one, 'modern-held')
  const there = await as(two, 'alice')
  const tasks = await listOf(there)
  assert.deepEqual(tasks.map(({ server, state }) => [server, state]), [['modern', 'working'], ['legacy', 'working']])

  const idsOn = async (hub: Hub, { key = OTHER, path = '/mcp' } = {}): Promise<unknown[]> => {
    const other = await Session.open(`${hub.url}${path}`, { key })
    return ((await other.ask('tasks/list')).tasks as Json[]).map((task) => task.taskId)
  }
  assert.deepEqual(await idsOn(two), [taskId], '`tasks/list` at another replica')
  assert.deepEqual(await idsOn(two, { key: KEY }), [], 'for another principal')
  assert.deepEqual(await idsOn(two, { path: '/mcp/legacy' }), [], 'on another route')

  await one.stop()
  const again = await startReplica(t, db, { folder: one.folder })
  await connected(again, 2)
  assert.deepEqual(await idsOn(again), [taskId], 'after a restart')
  for (const task of await listOf(await as(again, 'alice'))) {
    const answer = await cancel(there, task)
    assert.equal(answer.status, 200, answer.text)
  }
  assert.deepEqual([legacy.world.cancelled, modern.world.cancelled], [['held'], ['held']])
  assert.deepEqual(await listOf(await as(again, 'alice')), [])
})

test('a task of a command is cancelled where the command runs', async (t) => {
  // Its process counts its tasks from 0, in every replica.
  const { config } = stdioFake(t, { FAULT_LIVELY: '1', FAULT_COUNTS: '1' })
  const { url: db } = await database(t)
  const [one, two] = await replicas(t, db, { a: { ...config, visibility: 'public' } })
  const gates = await startGates(t)
  const session = await Session.open(`${one.url}/mcp/a`, { key: OTHER })
  const news = await session.listen()
  const work = async (gate: string, by = session): Promise<string> =>
    String(at(await by.ask('tools/call', { name: 'work', arguments: { gate: gates.at(gate) }, task: {} }), 'task', 'taskId'))
  await work('first')
  const others = await Session.open(`${two.url}/mcp/a`)
  const theirs = await work('theirs', others)
  const [here, there] = [await as(one, 'alice'), await as(two, 'alice')]
  const [task] = await listOf(there)
  assert.equal(task?.username, 'alice')
  const refused = await cancel(there, task ?? {})
  assert.deepEqual([refused.status, /another replica/.test(refused.text)], [409, true], refused.text)
  assert.equal((await others.ask('tasks/get', { taskId: theirs })).status, 'working', 'a task of the same id, of somebody else')
  assert.equal((await cancel(here, task ?? {})).status, 200)
  // A server that tells of the end of a task is heard, whether or not a client asks.
  await work('second')
  assert.equal((await listOf(there)).length, 1)
  gates.open('second')
  await news.wait(({ method, params }) => method === 'notifications/tasks/status' && params?.status === 'completed')
  await until(async () => (await listOf(there)).length === 0, 'its end was not heard')
})

test('who begins tasks without end makes the gateway forget his own, and nobody else\'s', async (t) => {
  setLimits(t, recordCollections.tasks, { maxPerOwner: 3 })
  const { url, world } = await startModernTasks(t)
  const hub = await startHub(t, { settings: settings(publicServers({ modern: url }), people) })
  await connected(hub, 1)
  await begin(hub, 'modern-held', { key: KEY })
  for (let n = 0; n < 5; n++) await begin(hub, 'modern-held')
  const all = await listOf(await as(hub, 'admin'))
  assert.deepEqual(all.map(({ username }) => username ?? ''), ['alice', 'alice', 'alice', ''])
  world.release()
})
