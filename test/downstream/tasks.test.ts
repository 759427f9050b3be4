// Tasks of 2025-11-25 and of the extension io.modelcontextprotocol/tasks, between clients and servers of both eras.
import assert from 'node:assert/strict'
import { ElicitRequestSchema, type CallToolResult, type ServerCapabilities } from '@modelcontextprotocol/sdk/types.js'
import { test } from 'tap'
import { startLegacyTasks } from '../fakes/task-servers.ts'
import { agent, connected, OTHER, otherKey, Session, settings, text, type AgentOptions, type Json } from '../helpers/client.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'

/** A gateway with these servers, and two keys. */
async function hubOf (t: Cleanup, servers: Record<string, string>, more: Json = {}): Promise<Hub> {
  const configs = Object.fromEntries(Object.entries(servers).map(([name, url]) => [name, { url, visibility: 'public' }]))
  const hub = await startHub(t, { settings: settings(configs, { bearerKeys: [bearerKey(), otherKey()], ...more }) })
  await connected(hub, Object.keys(servers).length)
  return hub
}

const askable: AgentOptions = {
  capabilities: { elicitation: {} },
  prepare: (client) => { client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ann' } })) }
}

/** What the SDK's client of 2025-11-25 is told of a call that runs as a task: the statuses, and the outcome. */
async function stream (t: Cleanup, url: string, name: string, options: AgentOptions = askable): Promise<unknown> {
  const client = await agent(t, url, options)
  await client.listTools()
  const told: unknown[] = []
  for await (const message of client.experimental.tasks.callToolStream({ name, arguments: { text: 'x' } }, undefined, { task: {} })) {
    if (message.type === 'result') told.push((message.result as CallToolResult).content)
    else if (message.type === 'error') told.push(message.error.message.replace(/[\w.-]{32,}/, 'ID'))
    else told.push(message.type)
  }
  return told.filter((each, at) => each !== told[at - 1])
}

/** Begins a task by hand; its handle. */
const begin = async (session: Session, name: string): Promise<string> =>
  String((await session.ask('tools/call', { name, arguments: { text: 'x' }, task: {} }) as { task: Json }).task.taskId)

test('tasks of 2025-11-25 between a client and a server of that revision', async (t) => {
  const server = await startLegacyTasks(t)
  const hub = await hubOf(t, { a: server.url, b: server.url })
  const routes = [['/mcp/a', ''], ['/mcp', 'b-']] as const

  await t.test('arrive as they do directly', async () => {
    for (const tool of ['long', 'may', 'ask', 'fail']) {
      const direct = await stream(t, server.url, tool)
      for (const [path, prefix] of routes) assert.deepEqual(await stream(t, `${hub.url}${path}`, prefix + tool), direct, path + tool)
    }
  })
  await t.test('are declared on every route', async () => {
    for (const [path] of routes) {
      const { tasks } = (await agent(t, `${hub.url}${path}`)).getServerCapabilities() as ServerCapabilities
      assert.deepEqual(tasks, { list: {}, cancel: {}, requests: { tools: { call: {} } } }, path)
    }
  })
  await t.test('are listed for their principal alone, by the handles that it has', async () => {
    for (const [path, prefix] of routes) {
      const [ann, bob] = [await Session.open(`${hub.url}${path}`), await Session.open(`${hub.url}${path}`, { key: OTHER })]
      const [first, second] = [await begin(ann, `${prefix}long`), await begin(bob, `${prefix}long`)]
      const ids = async (session: Session): Promise<unknown[]> => (await session.list('tasks/list', 'tasks')).map(({ taskId }) => taskId)
      assert.ok((await ids(ann)).includes(first) && !(await ids(ann)).includes(second), path)
      assert.deepEqual(await ids(bob), [second], path)
    }
  })
  await t.test('are unknown to strangers, elsewhere, and when they are made up', async () => {
    const ann = await Session.open(`${hub.url}/mcp`)
    const handle = await begin(ann, 'a-held')
    await until(() => server.world.held === 1)
    const own = String((await ann.request('tasks/get', { taskId: handle })).result?.taskId)
    assert.equal(own, handle)
    const strangers = [await Session.open(`${hub.url}/mcp`, { key: OTHER }), await Session.open(`${hub.url}/mcp/a`), ann]
    const answers = await Promise.all(strangers.flatMap((session) => ['tasks/get', 'tasks/result', 'tasks/cancel'].map(async (method) =>
      (await session.request(method, { taskId: session === ann ? `${handle}x` : handle })).error)))
    for (const error of answers) assert.deepEqual(error, { code: -32602, message: 'Unknown task' })
    const cancelled = await ann.ask('tasks/cancel', { taskId: handle })
    assert.deepEqual([cancelled.taskId, cancelled.status], [handle, 'cancelled'])
    server.world.release()
  })
  await t.test('are announced to who began them, by their handle', async () => {
    const ann = await Session.open(`${hub.url}/mcp`)
    const news = await ann.listen()
    const handle = await begin(ann, 'a-long')
    const told = await news.wait(({ method, params }) => method === 'notifications/tasks/status' && params?.status === 'completed')
    assert.equal(told.params?.taskId, handle)
    assert.equal(text(await ann.ask('tasks/result', { taskId: handle })), 'long x')
    news.close()
  })
})
