// Handles of tasks: on another replica, after a restart, for strangers, and while access changes.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { test } from 'tap'
import { managed, startReplica } from '../fakes/replica.ts'
import { startLegacyTasks, startModernTasks } from '../fakes/task-servers.ts'
import { at, connected, OTHER, otherKey, Session, settings, text, type Json, type Message } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { askWithTasks as ask, publicServers } from '../helpers/task-clients.ts'

/** Calls a tool that runs as a task; its handle. */
async function begin (url: string, name: string): Promise<string> {
  const { result, error } = await ask(url, 'tools/call', { name, arguments: { text: 'x' } })
  assert.equal(result?.resultType, 'task', JSON.stringify(error))
  return String(result?.taskId)
}

/** The task once it has ended. */
async function ended (url: string, taskId: string): Promise<Json> {
  let told: Message = {}
  await until(async () => {
    told = await ask(url, 'tasks/get', { taskId })
    return told.error !== undefined || !['working', 'input_required'].includes(String(told.result?.status))
  }, () => JSON.stringify(told))
  assert.ok(told.result, JSON.stringify(told))
  return told.result
}

const unknown = { code: -32602, message: 'Unknown task' }
const keys = { bearerKeys: [bearerKey(), otherKey()] }

test('a handle is good on every replica and after a restart', async (t) => {
  const [legacy, modern] = [await startLegacyTasks(t), await startModernTasks(t)]
  const { url: db } = await database(t)
  const config = settings(publicServers({ legacy: legacy.url, modern: modern.url }), keys)
  const one = await startReplica(t, db, { settings: config })
  const other = await startReplica(t, db)
  for (const hub of [one, other]) await connected(hub, 2)
  const on = (hub: Hub, path: string): string => `${hub.url}${path}`
  for (const [path, name, world] of [
    ['/mcp', 'legacy-held', legacy.world], ['/mcp', 'modern-held', modern.world], ['/mcp/legacy', 'held', legacy.world]
  ] as const) {
    const taskId = await begin(on(one, path), name)
    assert.equal((await ask(on(other, path), 'tasks/get', { taskId })).result?.status, 'working', name)
    assert.deepEqual((await ask(on(other, path), 'tasks/get', { taskId }, { key: OTHER })).error, unknown)
    world.release()
    for (const hub of [other, one]) {
      const task = await ended(on(hub, path), taskId)
      assert.deepEqual([task.taskId, task.status, text(task.result)], [taskId, 'completed', 'released'], name)
    }
  }
  const session = await Session.open(on(one, '/mcp'))
  const begun = await session.ask('tools/call', { name: 'legacy-long', arguments: { text: 'x' }, task: {} })
  const taskId = String(at(begun, 'task', 'taskId'))
  assert.equal(text(await (await Session.open(on(other, '/mcp'))).ask('tasks/result', { taskId })), 'long x')
  await one.stop()
  const again = await startReplica(t, db, { folder: one.folder })
  await connected(again, 2)
  assert.equal(text(await (await Session.open(on(again, '/mcp'))).ask('tasks/result', { taskId })), 'long x')
})

test('a handle ends with what it stands for', async (t) => {
  const [legacy, modern] = [await startLegacyTasks(t), await startModernTasks(t)]
  const urls = { legacy: legacy.url, modern: modern.url }
  const hub = await startHub(t, { settings: settings(publicServers(urls), keys) })
  await connected(hub, 2)
  const url = `${hub.url}/mcp`
  for (const [server, { world }] of [['legacy', legacy], ['modern', modern]] as const) {
    await t.test(`${server}: is cancelled by its client, and by no other`, async () => {
      const taskId = await begin(url, `${server}-held`)
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        assert.deepEqual((await ask(url, method, { taskId, inputResponses: {} }, { key: OTHER })).error, unknown, method)
      }
      for (let time = 0; time < 2; time++) assert.equal((await ask(url, 'tasks/cancel', { taskId })).result?.resultType, 'complete')
      assert.equal((await ended(url, taskId)).status, 'cancelled')
      world.release()
    })
    await t.test(`${server}: a tool that is not shown any more`, async () => {
      const taskId = await begin(url, `${server}-held`)
      const toggle = async (enabled: boolean): Promise<void> => {
        await managed(hub, 'POST', `/servers/${server}/tools/held/toggle`, { enabled })
      }
      await toggle(false)
      await until(async () => (await ask(url, 'tasks/get', { taskId })).error?.message === 'Unknown task')
      await toggle(true)
      await until(async () => (await ask(url, 'tasks/get', { taskId })).error === undefined)
      world.release()
      assert.equal((await ended(url, taskId)).status, 'completed')
    })
    await t.test(`${server}: another server of the same name`, async () => {
      const taskId = await begin(url, `${server}-held`)
      await managed(hub, 'DELETE', `/servers/${server}`)
      await managed(hub, 'POST', '/servers', { name: server, config: { url: urls[server], visibility: 'public' } })
      await connected(hub, 2)
      assert.deepEqual((await ask(url, 'tasks/get', { taskId })).error, unknown)
      world.release()
    })
  }
})

test('a server at a URL that uses an id again: the task is for who began it last', async (t) => {
  const { url: server, world } = await startModernTasks(t)
  const hub = await startHub(t, { settings: settings(publicServers({ modern: server }), keys) })
  await connected(hub, 1)
  const url = `${hub.url}/mcp`
  world.nextId = 't1'
  const eves = (await ask(url, 'tools/call', { name: 'modern-held' }, { key: OTHER })).result?.taskId
  assert.equal((await ask(url, 'tasks/get', { taskId: eves }, { key: OTHER })).result?.status, 'working')
  const anns = await begin(url, 'modern-held')
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    assert.deepEqual((await ask(url, method, { taskId: eves, inputResponses: {} }, { key: OTHER })).error, unknown, method)
  }
  assert.equal((await ask(url, 'tasks/get', { taskId: anns })).result?.status, 'working')
  // A client of the other form at the same server.
  const session = await Session.open(url, { key: OTHER })
  await session.ask('tools/call', { name: 'modern-held', arguments: {}, task: {} })
  assert.deepEqual((await ask(url, 'tasks/get', { taskId: anns })).error, unknown)
  assert.equal((await ask(url, 'tasks/get', { taskId: eves }, { key: OTHER })).result?.status, 'working')
  world.release()
})

/** A legacy server at a URL that counts its tasks from 1, and again after `restart`. */
async function startCounting (t: Cleanup): Promise<{ url: string, restart: () => void }> {
  let [sessions, tasks] = [new Set<unknown>(), 0]
  const resultOf = (method: string, taskId: unknown): Json => {
    const now = '2026-01-01T00:00:00Z'
    const task = { taskId, status: 'working', ttl: 60_000, createdAt: now, lastUpdatedAt: now, pollInterval: 50 }
    switch (method) {
      case 'initialize': return {
        protocolVersion: '2025-11-25', serverInfo: { name: 'c', version: '1' }, capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } }
      }
      case 'tools/list': return { tools: [{ name: 'held', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } }] }
      case 'tools/call': return { task: { ...task, taskId: `t${++tasks}` } }
      default: return task
    }
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => { chunks.push(chunk) }).on('end', () => {
      if (request.method !== 'POST') { response.writeHead(405).end(); return }
      const { id, method = '', params } = JSON.parse(Buffer.concat(chunks).toString()) as { id?: number, method?: string, params?: Json }
      const session = method === 'initialize' ? randomUUID() : String(request.headers['mcp-session-id'])
      if (method === 'initialize') sessions.add(session)
      if (!sessions.has(session)) { response.writeHead(404).end(); return }
      if (id === undefined) { response.writeHead(202).end(); return }
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method, params?.taskId) }))
    })
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}/mcp`, restart: () => { [sessions, tasks] = [new Set(), 0] } }
}

test('a request about a task is not repeated in a session where its id is another one\'s', async (t) => {
  const server = await startCounting(t)
  const hub = await startHub(t, { settings: settings(publicServers({ a: server.url }), keys) })
  await connected(hub, 1)
  const askable = { capabilities: { elicitation: { form: {} } } }
  const [eve, ann] = [await Session.open(`${hub.url}/mcp/a`, { key: OTHER, ...askable }), await Session.open(`${hub.url}/mcp/a`, askable)]
  const start = async (session: Session): Promise<unknown> =>
    at(await session.ask('tools/call', { name: 'held', arguments: {}, task: {} }), 'task', 'taskId')
  const old = await start(eve)
  assert.equal((await eve.ask('tasks/get', { taskId: old })).status, 'working')
  server.restart()
  const anns = await start(ann)
  for (let time = 0; time < 2; time++) assert.deepEqual((await eve.request('tasks/get', { taskId: old })).error, unknown)
  assert.equal((await ann.ask('tasks/get', { taskId: anns })).status, 'working')
})
