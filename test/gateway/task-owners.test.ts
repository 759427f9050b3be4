// Who may ask about a task or a linked resource, and of which server.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { ResourceLinks } from '../../plugins/gateway/result-notes.ts'
import { TaskOwners } from '../../plugins/gateway/result-notes.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

test('tasks: who may ask about one, and where', async (t) => {
  const result = (taskId: unknown): string => JSON.stringify({ task: { taskId, status: 'working' } })
  await t.test('its principal only, and on its server only', async () => {
    const tasks = new TaskOwners()
    tasks.note(result('t1'), { principal: 'ann', provider: 's' })
    assert.equal(tasks.providerOf('t1', 'ann', ['s', 'hostile']), 's')
    assert.equal(tasks.providerOf('t1', 'bob', ['s', 'hostile']), undefined)
    assert.equal(tasks.providerOf('t2', 'ann', ['s', 'hostile']), undefined)
    assert.equal(tasks.owns('t1', 'ann', 's'), true)
    assert.equal(tasks.owns('t1', 'ann', 'other'), false)
    assert.equal(tasks.owns('t1', 'bob', 's'), false)
    for (const odd of [undefined, null, 1, {}, ['t1'], '']) assert.equal(tasks.providerOf(odd, 'ann', ['s', 'hostile']), undefined)
  })
  await t.test('an unknown task is nobody\'s, whatever is asked', async () => {
    assert.equal(new TaskOwners().owns('t', 'ann', 's'), false)
    assert.equal(new TaskOwners().providerOf('__proto__', 'ann', ['s', 'hostile']), undefined)
  })
  await t.test('a result that announces none is none', async () => {
    const tasks = new TaskOwners()
    for (const text of [
      '{}', '{"content":[{"text":"\\"taskId\\""}]}', result(1), result(null), '{"taskId":"t"}',
      '{"task":null,"x":"taskId"}', '{"task":null,"taskId":1}', '{"task":"taskId"}', '["taskId"]',
      '{"task":{"taskId":{"a":1}}}'
    ]) { tasks.note(text, { principal: 'ann', provider: 's' }) }
    for (const id of ['t', '1', 'null', 'taskId']) assert.equal(tasks.providerOf(id, 'ann', ['s', 'hostile']), undefined)
  })
  await t.test('of more than can be remembered the oldest is forgotten', async () => {
    const tasks = new TaskOwners()
    for (let n = 0; n <= gatewayLimits.tasks; n++) tasks.note(result(`t${n}`), { principal: 'ann', provider: 's' })
    assert.equal(tasks.providerOf('t0', 'ann', ['s', 'hostile']), undefined)
    assert.equal(tasks.providerOf('t1', 'ann', ['s', 'hostile']), 's')
    assert.equal(tasks.providerOf(`t${gatewayLimits.tasks}`, 'ann', ['s', 'hostile']), 's')
  })
  await t.test('who begins tasks without end makes the gateway forget his own, and nobody else\'s', async () => {
    const tasks = new TaskOwners()
    tasks.note(result('t1'), { principal: 'ann', provider: 's' })
    for (let n = 1; n <= gatewayLimits.tasks; n++) tasks.note(result(`t${n}`), { principal: 'eve', provider: 's' })
    assert.deepEqual([tasks.owns('t1', 'ann', 's'), tasks.owns('t1', 'eve', 's')], [true, false])
    const links = new ResourceLinks()
    const link = (n: number): object => ({ type: 'resource_link', name: 'x', uri: `x://${n}` })
    links.note(JSON.stringify({ content: [link(1)] }), 'ann', 's')
    links.note(JSON.stringify({ content: Array.from({ length: gatewayLimits.resourceLinks }, (_, n) => link(n + 1)) }), 'eve', 's')
    assert.deepEqual(['ann', 'eve'].map((each) => links.providerOf('x://1', each)), ['s', undefined])
  })
  await t.test('ids and URIs that take more than a KiB are not remembered', async () => {
    const [tasks, links] = [new TaskOwners(), new ResourceLinks()]
    for (const [text, isKept] of [['x'.repeat(1_000), true], ['x'.repeat(1_025), false], ['ж'.repeat(500), true], ['ж'.repeat(513), false]] as const) {
      tasks.note(result(text), { principal: 'ann', provider: 's' })
      links.note(JSON.stringify({ content: [{ type: 'resource_link', name: 'x', uri: text }] }), 'ann', 's')
      assert.deepEqual([tasks.owns(text, 'ann', 's'), links.providerOf(text, 'ann') === 's'], [isKept, isKept], String(text.length))
    }
  })
  await t.test('a task id that another server announces, too, is not taken away from its owner', async () => {
    const tasks = new TaskOwners()
    tasks.note(result('t1'), { principal: 'ann', provider: 's' })
    tasks.note(result('t1'), { principal: 'bob', provider: 'hostile' })
    assert.equal(tasks.providerOf('t1', 'ann', ['s', 'hostile']), 's')
    assert.equal(tasks.providerOf('t1', 'bob', ['s', 'hostile']), 'hostile')
    assert.deepEqual([tasks.owns('t1', 'ann', 'hostile'), tasks.owns('t1', 'bob', 's')], [false, false])
  })
  await t.test('on a route only the servers behind it are asked about it, in their order', async () => {
    const tasks = new TaskOwners()
    for (const provider of ['s', 't']) tasks.note(result('t1'), { principal: 'ann', provider })
    const table: Array<[string[], string | undefined]> = [
      [['s', 't'], 's'], [['t', 's'], 't'], [['t'], 't'], [['other'], undefined], [[], undefined]
    ]
    for (const [providers, provider] of table) assert.equal(tasks.providerOf('t1', 'ann', providers), provider, providers.join())
  })
})
