// Tasks of 2025-11-25 and of the extension io.modelcontextprotocol/tasks, between clients and servers of both eras.
import assert from 'node:assert/strict'
import type { ServerCapabilities } from '@modelcontextprotocol/sdk/types.js'
import { test } from 'tap'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'
import type { Subscription } from '../../plugins/downstream/modern/subscription.ts'
import { TaskWatch } from '../../plugins/downstream/modern/task-watch.ts'
import type { Gateway } from '../../plugins/gateway/index.ts'
import { extension, startLegacyTasks, startModernTasks } from '../fakes/task-servers.ts'
import { agent, open, OTHER, otherKey, Session, text, type Json, type Stream } from '../helpers/client.ts'
import { turnsOfLoop } from '../helpers/clock.ts'
import { bearerKey, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { modernAgent } from '../helpers/modern-client.ts'
import { askModern, envelope, modernRequest } from '../helpers/modern-request.ts'
import { setLimits } from '../helpers/patient.ts'
import { served } from '../helpers/served.ts'
import {
  legacyWithoutTasks, legacyWithTasks, modernWithoutTasks, modernWithTasks, withTasks, type TaskCaller, type TaskOutcome
} from '../helpers/task-clients.ts'

/** A gateway with these servers, and two keys. */
async function hubOf (t: Cleanup, servers: Record<string, string>, more: Json = {}): Promise<Hub> {
  const configs = Object.fromEntries(Object.entries(servers).map(([name, url]) => [name, { url, visibility: 'public' }]))
  return await served(t, configs, { bearerKeys: [bearerKey(), otherKey()], ...more })
}

/** A stream of changes of these tasks. */
async function follow (hub: Hub, ...taskIds: string[]): Promise<Stream> {
  const { headers, body } = modernRequest('subscriptions/listen', { params: { notifications: { taskIds } }, capabilities: withTasks })
  return await open(`${hub.url}/mcp`, { headers, body, key: null })
}

/** What the stream tells of a task once it has this status. */
const told = async (news: Stream, status: string): Promise<Json> =>
  (await news.wait(({ method, params }) => method === 'notifications/tasks' && params?.status === status)).params ?? {}

/** Begins a task as a modern client; its handle. */
const beginModern = async (hub: Hub, name: string): Promise<string> => {
  const { message } = await askModern(`${hub.url}/mcp`, 'tools/call', { params: { name, arguments: {} }, capabilities: withTasks })
  return String(message.result?.taskId)
}

/** Begins a task by hand; its handle. */
const begin = async (session: Session, name: string): Promise<string> =>
  String((await session.ask('tools/call', { name, arguments: { text: 'x' }, task: {} }) as { task: Json }).task.taskId)

test('tasks of 2025-11-25 between a client and a server of that revision', async (t) => {
  const server = await startLegacyTasks(t)
  const hub = await hubOf(t, { a: server.url, b: server.url })
  const routes = [['/mcp/a', ''], ['/mcp', 'b-']] as const

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

test('a server is told of no task but by the handle that its client has', async (t) => {
  const [modern, other] = [await startModernTasks(t), await startModernTasks(t)]
  const hub = await hubOf(t, { modern: modern.url, other: other.url })
  const mark = 'io.modelcontextprotocol/related-task'
  const ask = async (method: string, params: Json, key?: string, marked?: Json): Promise<Json> =>
    (await askModern(`${hub.url}/mcp`, method, { params, meta: { ...envelope(withTasks), ...marked }, key })).message.result ?? {}
  const taskOf = async (key?: string): Promise<{ handle: string, own: string }> => {
    const handle = String((await ask('tools/call', { name: 'modern-held', arguments: {} }, key)).taskId)
    assert.equal((await ask('tasks/get', { taskId: handle }, key)).taskId, handle)
    return { handle, own: String(modern.seen.findLast(({ method }) => method === 'tasks/get')?.params.taskId) }
  }
  const [anns, eves] = [await taskOf(), await taskOf(OTHER)]
  /** The params of a request as a server gets them. */
  const sent = async (method: string, params: Json, name: string, server = modern): Promise<Json> => {
    const before = server.seen.length
    await ask(method, { ...params, task: { taskId: name }, id: name }, OTHER, { [mark]: { taskId: name } })
    return server.seen.slice(before).find((each) => each.method === method)?.params ?? {}
  }
  const markIn = ({ _meta }: Json): unknown => (_meta as Json)[mark]
  for (const name of [anns.own, anns.handle]) {
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const params = await sent(method, { taskId: eves.handle }, name)
      assert.deepEqual([params.taskId, params.task, params.id, markIn(params)], [eves.own, undefined, undefined, undefined], method)
    }
    const params = await sent('tools/call', { name: 'modern-echo', arguments: {} }, name)
    assert.deepEqual([params.name, params.task, markIn(params)], ['echo', {}, undefined])
  }
  assert.deepEqual(markIn(await sent('tools/call', { name: 'modern-echo' }, eves.handle)), { taskId: eves.own })
  const elsewhere = await sent('tools/call', { name: 'other-echo' }, eves.handle, other)
  assert.deepEqual([elsewhere.name, markIn(elsewhere)], ['echo', undefined])
  modern.world.release()
})

test('tasks between clients and servers of both eras', async (t) => {
  const [legacy, modern] = [await startLegacyTasks(t), await startModernTasks(t)]
  const hub = await hubOf(t, { legacy: legacy.url, modern: modern.url })
  const texts: Record<string, string> = { echo: 'echo x', may: 'may x', long: 'long x', ask: 'accept Ann', fail: 'it failed' }
  const ends = (tool: string, ...steps: string[]): TaskOutcome => ({ steps, text: texts[tool] ?? '', isError: tool === 'fail' })
  const asTask = ['taskCreated', 'taskStatus']
  const table: Array<[string, TaskCaller, (server: string, tool: string) => TaskOutcome | undefined]> = [
    ['a legacy client with tasks', legacyWithTasks, (_server, tool) => {
      if (tool === 'echo') return undefined
      return tool === 'fail' ? { steps: asTask, text: 'MCP error -32603: Task ID failed', isError: true } : ends(tool, ...asTask)
    }],
    ['a legacy client without tasks', legacyWithoutTasks, (_server, tool) => ends(tool)],
    ['a modern client with tasks', modernWithTasks, (server, tool) =>
      ends(tool, tool === 'echo' || (tool === 'may' && server === 'legacy') ? 'immediate' : 'task')],
    ['a modern client without tasks', modernWithoutTasks, (server, tool) => {
      if (server === 'modern' && !['echo', 'may'].includes(tool)) return { steps: [], text: '-32021', isError: true }
      return tool === 'ask' ? { ...ends(tool), text: 'accept answer-1' } : ends(tool)
    }]
  ]
  for (const [who, call, expected] of table) {
    for (const server of ['legacy', 'modern']) {
      await t.test(`${who} at a ${server} server`, async () => {
        for (const tool of Object.keys(texts)) {
          const outcome = expected(server, tool)
          if (outcome === undefined) continue
          // A client and a server of one era get along without a gateway, too.
          const isNative = who === `a ${server} client with tasks` || (server === 'modern' && call === modernWithoutTasks)
          const direct = server === 'legacy' ? legacy.url : modern.url
          for (const [url, prefix] of [
            ...(isNative ? [[direct, ''] as const] : []), [`${hub.url}/mcp/${server}`, ''], [`${hub.url}/mcp`, `${server}-`]
          ] as const) assert.deepEqual(await call(t, url, prefix + tool), outcome, `${url} ${tool}`)
        }
      })
    }
  }
  await t.test('a member task of a modern client means nothing', async () => {
    for (const name of ['legacy-echo', 'legacy-may', 'modern-echo']) {
      const { message } = await askModern(`${hub.url}/mcp`, 'tools/call', { params: { name, arguments: { text: 'x' }, task: {} } })
      assert.match(text(message.result), / x$/, name)
    }
  })
  await t.test('are declared to each era in its form', async () => {
    for (const path of ['/mcp', '/mcp/legacy', '/mcp/modern']) {
      const [client, { client: modernClient }] = [await agent(t, `${hub.url}${path}`), await modernAgent(t, `${hub.url}${path}`)]
      const { tasks, extensions } = client.getServerCapabilities() as ServerCapabilities
      const call = { requests: { tools: { call: {} } } }
      assert.deepEqual(tasks, path === '/mcp/modern' ? { cancel: {}, ...call } : { list: {}, cancel: {}, ...call }, path)
      assert.equal((extensions as Json | undefined)?.[extension], undefined)
      const declared = modernClient.getServerCapabilities() as Json
      assert.deepEqual([(declared.extensions as Json)[extension], declared.tasks], [{}, undefined], path)
      // A tool that runs as a task only is shown to all.
      for (const each of [client, modernClient]) assert.ok((await each.listTools()).tools.some(({ name }) => name.endsWith('long')), path)
    }
  })
  for (const [server, { world }] of [['legacy', legacy], ['modern', modern]] as const) {
    await t.test(`are told of on a stream: of a ${server} server`, async () => {
      const taskId = await beginModern(hub, `${server}-held`)
      const refused = await askModern(`${hub.url}/mcp`, 'subscriptions/listen', { params: { notifications: { taskIds: [taskId] } } })
      assert.deepEqual([refused.status, refused.message.error?.code], [400, -32021])
      const news = await follow(hub, taskId, 'unknown')
      const { params } = await news.wait(({ method }) => method === 'notifications/subscriptions/acknowledged')
      assert.deepEqual(params?.notifications, { taskIds: [taskId] })
      assert.equal((await told(news, 'working')).taskId, taskId)
      world.release()
      const { result, resultType, ...task } = await told(news, 'completed')
      assert.deepEqual([text(result), resultType, task.taskId], ['released', undefined, taskId])
      news.close()
    })
  }
})

test('a stream is told of a task when its server says so, before it is asked', async (t) => {
  // Asked for at its interval, the task would be told of in an hour.
  setLimits(t, downstreamLimits.taskWatch, { usual: 3_600_000 })
  const { url: server, world } = await startLegacyTasks(t, false)
  const hub = await hubOf(t, { legacy: server })
  const news = await follow(hub, await beginModern(hub, 'legacy-held'))
  await told(news, 'working')
  world.release()
  await told(news, 'completed')
  news.close()
})

test('a task whose server announces a change with each answer is not read again at once', async (t) => {
  setLimits(t, downstreamLimits.taskWatch, { least: 3_600_000, most: 3_600_000 })
  let [announce, reads] = [(): void => {}, 0]
  const gateway = {
    handle: async () => {
      announce()
      await turnsOfLoop(1)
      return `{"taskId":"1","status":"working","progress":${++reads}}`
    }
  }
  const subscription = {
    onTaskChange: (_id: string, listener: () => void) => { announce = listener }, deliver: () => {}, createRequest: () => ({})
  }
  const watch = new TaskWatch(gateway as unknown as Gateway, subscription as unknown as Subscription, '127.0.0.1', '1')
  await watch.begin()
  const ended = new AbortController()
  t.after(() => { ended.abort() })
  watch.run(ended.signal).catch(() => {})
  await turnsOfLoop(20)
  assert.equal(reads, 1)
})

test('a task that its client does not know of', async (t) => {
  const [legacy, modern] = [await startLegacyTasks(t), await startModernTasks(t)]
  const hub = await hubOf(t, { legacy: legacy.url, modern: modern.url })
  const session = await Session.open(`${hub.url}/mcp`)
  const call = (name: string, id = 'c', more: Json = {}): Json =>
    ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {}, ...more } })
  for (const [server, { world }] of [['legacy', legacy], ['modern', modern]] as const) {
    await t.test(`${server}: ends with the call that began it`, async () => {
      // Its answer begins when there is something to tell.
      const held = session.start(call(`${server}-held`))
      await until(() => world.held === 1, 'the task does not begin')
      await session.notify('notifications/cancelled', { requestId: 'c' })
      await until(() => world.cancelled.includes('held'), 'the task goes on for nobody')
      world.release()
      ;(await held).close()
    })
    await t.test(`${server}: fails where its client cannot be asked`, async () => {
      const { error, result } = await session.request('tools/call', { name: `${server}-ask`, arguments: {} })
      assert.match(error?.message ?? text(result), /not support (form )?elicitation/)
    })
  }
  await t.test('reports its progress as that of the call', async () => {
    const waiting = session.start(call('legacy-held', 'p', { _meta: { progressToken: 'mine' } }))
    await until(() => legacy.world.held === 1)
    legacy.world.report()
    const wait = await waiting
    const { params } = await wait.wait(({ method }) => method === 'notifications/progress')
    assert.deepEqual([params?.progressToken, params?.progress], ['mine', 1])
    legacy.world.release()
    assert.equal(text((await wait.wait(({ id }) => id === 'p')).result), 'released')
  })
})

test('tasks of several servers, and on routes of groups and of $smart', async (t) => {
  const [legacy, modern] = [await startLegacyTasks(t), await startModernTasks(t)]
  const group = { id: '33333333-3333-4333-8333-333333333333', name: 'both', servers: ['a', 'b', 'modern'] }
  const hub = await hubOf(t, { a: legacy.url, b: legacy.url, modern: modern.url }, { groups: [group] })
  await t.test('one list has those of all servers that list theirs', async () => {
    const session = await Session.open(`${hub.url}/mcp/both`)
    const handles = [await begin(session, 'a-long'), await begin(session, 'b-long')]
    const listed = (await session.ask('tasks/list')).tasks as Json[]
    assert.deepEqual(listed.map(({ taskId }) => taskId).sort(), handles.toSorted())
    for (const taskId of handles) assert.equal(text(await session.ask('tasks/result', { taskId })), 'long x')
  })
  await t.test('`call_tool` begins one, which is asked for on the same route', async () => {
    const ask = async (method: string, params: Json): Promise<Json> => {
      const { message } = await askModern(`${hub.url}/mcp/$smart`, method, { params, capabilities: withTasks })
      return message.result ?? { error: message.error }
    }
    for (const name of ['modern-long', 'a-long']) {
      const begun = await ask('tools/call', { name: 'call_tool', arguments: { toolName: name, arguments: { text: 'x' } } })
      assert.equal(begun.resultType, 'task', JSON.stringify(begun))
      let task: Json = {}
      await until(async () => {
        task = await ask('tasks/get', { taskId: begun.taskId })
        return task.status === 'completed'
      }, () => JSON.stringify(task))
      assert.equal(text(task.result), 'long x')
    }
  })
})
