// Tasks, questions, log messages and pages of a stdio server whose process several clients share.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startGates } from '../fakes/gates.ts'
import { managed } from '../fakes/replica.ts'
import { at, connected, OTHER, otherKey, Session, settings, text, type Json, type Message, type Stream } from '../helpers/client.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { stdioFake, type Entry } from '../helpers/stdio-fake.ts'

const askable = { capabilities: { elicitation: { form: {}, url: {} }, sampling: {} } }
const toolCall = (name: string, args: Json, id = 'c'): Json => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })
const isSampling = ({ method }: Message): boolean => method === 'sampling/createMessage'
const isUpdate = ({ method }: Message): boolean => method === 'notifications/resources/updated'
const isStatus = ({ method }: Message): boolean => method === 'notifications/tasks/status'

/** A gateway with these lively servers (fault-stdio.mjs), and what they have logged. */
async function startLively (t: Cleanup, servers: Record<string, Json>): Promise<{ hub: Hub, log: () => Entry[] }> {
  const fakes = Object.entries(servers).map(([name, more]) => [name, stdioFake(t, { FAULT_LIVELY: '1' }, more)] as const)
  const configs = Object.fromEntries(fakes.map(([name, { config }]) => [name, config]))
  const hub = await startHub(t, { settings: settings(configs, { bearerKeys: [bearerKey(), otherKey()] }) })
  return { hub, log: () => fakes.flatMap(([, { log }]) => log()) }
}

/** Begins a task; its id. */
const begin = async (session: Session, args: Json, more: Json = {}): Promise<string> =>
  String(at(await session.ask('tools/call', { name: 'work', arguments: args, task: { ttl: 60_000 }, ...more }), 'task', 'taskId'))

test('tasks on a process that several share', async (t) => {
  const { hub, log } = await startLively(t, { a: {}, b: {} })
  await connected(hub, 2)
  const gates = await startGates(t)
  const pair = async (server: string, more: object = {}): Promise<[Session, Session]> =>
    [await Session.open(`${hub.url}/mcp/${server}`, more), await Session.open(`${hub.url}/mcp/${server}`, more)]

  await t.test('a task\'s news reach who began it, and nobody else', async () => {
    const [one, other] = await pair('a')
    const [news, others] = [await one.listen(), await other.listen()]
    const taskId = await begin(one, { gate: gates.at('news') })
    gates.open('news')
    const told = await news.wait(isStatus)
    assert.deepEqual([told.params?.taskId, told.params?.status], [taskId, 'completed'])
    assert.equal((await one.ask('tasks/get', { taskId })).status, 'completed')
    // What the other one gets after that.
    await other.ask('resources/subscribe', { uri: 'r://1' })
    await one.call('touch', { uri: 'r://1' })
    await others.wait(isUpdate)
    assert.equal(others.messages.length, 1)
    await other.ask('resources/unsubscribe', { uri: 'r://1' })
    for (const stream of [news, others]) stream.close()
  })

  await t.test('a question of a task is for who began it or waits for its result, whoever else has a call open', async () => {
    const [one, other] = await pair('a', askable)
    const [news, others] = [await one.listen(), await other.listen()]
    const answer = async (stream: Stream, name: string): Promise<void> => {
      const { id } = await stream.wait(isSampling)
      await one.post({ jsonrpc: '2.0', id, result: { model: name, role: 'assistant', content: { type: 'text', text: name } } })
    }
    const open = other.post(toolCall('echo', { gate: gates.at('open') }))
    await gates.reached('open')
    const first = await begin(one, { ask: 'sampling', tag: 'x' })
    await answer(news, 'on its own')
    assert.match(text(await one.ask('tasks/result', { taskId: first })), /on its own/)
    const waits = (): number => log().filter(({ event }) => event === 'tasks/result').length
    const before = waits()
    const taskId = await begin(one, { ask: 'sampling', tag: 'x', gate: gates.at('result') })
    const waiting = await one.start({ jsonrpc: '2.0', id: 'r', method: 'tasks/result', params: { taskId } })
    await until(() => waits() > before, 'nobody waits for the result')
    gates.open('result')
    await answer(waiting, 'on the stream of its result')
    assert.match(text((await waiting.wait(({ id }) => id === 'r')).result), /on the stream of its result/)
    gates.open('open')
    assert.deepEqual([...(await open).messages, ...others.messages].filter(isSampling), [])
    for (const stream of [news, others]) stream.close()
  })

  await t.test('a question that may be of a task or of a call is for nobody; the result of a task that is over is still had', async () => {
    const [one, other] = await pair('b', askable)
    const [news, others] = [await one.listen(), await other.listen()]
    const open = other.post(toolCall('echo', { gate: gates.at('unclear') }))
    await gates.reached('unclear')
    const taskId = await begin(one, { ask: 'sampling', tag: 'x', unmarked: true })
    await news.wait((message) => isStatus(message) && message.params?.status === 'completed')
    gates.open('unclear')
    assert.deepEqual([...(await open).messages, ...others.messages, ...news.messages].filter(isSampling), [])
    assert.notEqual(text(await one.call('pid')), taskId.split('-')[1], 'it has another process now')
    assert.equal((await one.ask('tasks/get', { taskId })).status, 'completed')
    for (let time = 0; time < 2; time++) assert.match(text(await one.ask('tasks/result', { taskId })), /isolation/)
    for (const stream of [news, others]) stream.close()
  })
})

test('messages of a process that several share', async (t) => {
  const { hub, log } = await startLively(t, { a: {} })
  await connected(hub, 1)
  const gates = await startGates(t)
  const open = async (more: object = {}): Promise<Session> => await Session.open(`${hub.url}/mcp/a`, more)

  await t.test('the end of a visit to a page is told to who was sent there', async () => {
    const session = await open(askable)
    const news = await session.listen()
    const call = await session.start(toolCall('page', { id: 'visit-1', gate: gates.at('visit') }))
    const question = await call.wait(({ method }) => method === 'elicitation/create')
    await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'accept' } })
    await call.wait(({ id }) => id === 'c')
    gates.open('visit')
    const told = await news.wait(({ method }) => method === 'notifications/elicitation/complete')
    assert.equal(told.params?.elicitationId, 'visit-1')
    news.close()
  })

  await t.test('clients that get a process of their own take their subscriptions with them', async () => {
    const [one, other] = [await open(askable), await open(askable)]
    const news = await one.listen()
    await one.ask('resources/subscribe', { uri: 'r://1' })
    const before = gates.meeting(2)
    await Promise.all([one, other].map(async (session) =>
      await session.request('tools/call', { name: 'ask', arguments: { kind: 'sampling', tag: 'x', before } })))
    await until(() => /get separate connections/.test(hub.output()), 'never contested')
    await until(async () => text(await one.call('touch', { uri: 'r://1' })) === 'r://1', 'its own process knows of no subscription')
    await news.wait((message) => isUpdate(message) && message.params?.uri === 'r://1')
    assert.ok(log().some(({ event, uri }) => event === 'unsubscribe' && uri === 'r://1'), 'the shared one is left')
    assert.deepEqual(await one.ask('resources/unsubscribe', { uri: 'r://1' }), {})
    assert.equal(text(await one.call('touch', { uri: 'r://1' })), '')
    news.close()
  })
})

test('a task ends with its process, whose successor gives its id to another task', async (t) => {
  const { config } = stdioFake(t, { FAULT_LIVELY: '1', FAULT_COUNTS: '1' })
  const hub = await startHub(t, { settings: settings({ a: config }, { bearerKeys: [bearerKey(), otherKey()] }) })
  await connected(hub, 1)
  const gates = await startGates(t)
  const url = `${hub.url}/mcp/a`
  const [eve, ann] = [await Session.open(url, { key: OTHER }), await Session.open(url)]
  const [old, anns] = [await begin(eve, { gate: gates.at('old') }), await begin(ann, { gate: gates.at('anns') })]
  const pid = text(await ann.call('pid'))
  const unknown = async (session: Session, taskId: string): Promise<void> => {
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      assert.deepEqual((await session.request(method, { taskId })).error, { code: -32602, message: 'Unknown task' }, method)
    }
  }
  assert.equal((await eve.ask('tasks/get', { taskId: old })).status, 'working')
  process.kill(Number(pid), 'SIGKILL')
  await until(async () => {
    const { result } = await ann.request('tools/call', { name: 'pid', arguments: {} })
    return result !== undefined && text(result) !== pid
  })
  await t.test('before its id is used again', async () => {
    await unknown(eve, old)
    await unknown(ann, anns)
  })
  await t.test('and after', async () => {
    const first = await begin(ann, { gate: gates.at('first') })
    await unknown(eve, old)
    const again = await begin(ann, { gate: gates.at('again') })
    await unknown(ann, anns)
    for (const taskId of [first, again]) assert.equal((await ann.ask('tasks/get', { taskId })).taskId, taskId)
  })
})

test('a process that starts on demand does not end under a task', async (t) => {
  const onDemand = { startOnDemand: true, idleTimeoutMs: 200 }
  const { hub } = await startLively(t, { busy: onDemand, idle: onDemand })
  const [busy, idle] = [await Session.open(`${hub.url}/mcp/busy`), await Session.open(`${hub.url}/mcp/idle`)]
  const gates = await startGates(t)
  const taskId = await begin(busy, { gate: gates.at('task') })
  // The other one is used later, and ends. By then the first would have ended as well.
  await idle.call('pid')
  await until(async () => (await managed(hub, 'GET', '/servers/idle')).status !== 'connected', 'it does not end')
  assert.equal((await busy.ask('tasks/get', { taskId })).status, 'working')
  gates.open('task')
})
