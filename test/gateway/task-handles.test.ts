// Whose task a handle names, and who may read a linked resource.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { createProcessSealer } from '../../plugins/base/secrets/index.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'
import { ResourceLinks } from '../../plugins/gateway/resource-links.ts'
import { serverFingerprint, TaskHandles } from '../../plugins/gateway/task-handles.ts'
import { makeView, type Principal, type View } from '../../plugins/settings/index.ts'
import { NonMcpClient } from '../../protocol/exchange.ts'
import { refersToTask, replaceTaskId, translateTaskReferences, withoutRelatedTask, withRelatedTask } from '../../protocol/task-ids.ts'

const principal = (key: string, kind: Principal['kind'] = 'system-key'): Principal => ({ key, kind, user: key, isAdmin: false })
const view = (key: string, scope: View['scope'] = { kind: 'global' }, kind?: Principal['kind']): View => makeView(principal(key, kind), scope)
const clientOf = (id: string): NonMcpClient => new NonMcpClient(id, id)
const client = clientOf('c')
const task = { provider: 's', server: 'identity', tool: 'run', id: 't1', run: 'r1' }

test('task handles: for whom one opens', async (t) => {
  const sealer = createProcessSealer()
  const handles = new TaskHandles(sealer)
  const ann = view('ann')
  const handle = handles.seal(ann, client, task)
  await t.test('for its principal on its route, in every process with the same keys', async () => {
    assert.match(handle, /^[\w.-]+$/, 'a header can carry it')
    assert.deepEqual(handles.open(ann, handle), task)
    assert.deepEqual(new TaskHandles(sealer).open(view('ann'), handle), task)
    assert.equal(handles.seal(ann, clientOf('other'), task), handle, 'a task keeps its handle')
  })
  await t.test('a server\'s id that is used again, in another run, gets another handle', async () => {
    const next = handles.seal(ann, client, { ...task, run: 'r2' })
    assert.deepEqual(handles.open(ann, next), { ...task, run: 'r2' })
    assert.equal(handles.open(ann, handle)?.run, 'r1', 'the old one still tells its run')
    assert.equal(handles.find(ann, client, 's', 't1'), next)
    handles.remember(ann, client, 's', 't1', handle)
  })
  await t.test('for nobody else, and nowhere else', async () => {
    const changed = [`${handle}A`, `${handle.slice(0, -1)}`, handle.toUpperCase(), 't1', '', undefined, null, 1, {}, [handle], 'x'.repeat(9_000)]
    for (const each of changed) assert.equal(handles.open(ann, each), undefined)
    for (const other of [view('bob'), view('ann', { kind: 'server', name: 's' }), view('ann', { kind: 'group', id: 'g', name: 'g' })]) {
      assert.equal(handles.open(other, handle), undefined, other.key)
    }
    assert.equal(new TaskHandles(createProcessSealer()).open(ann, handle), undefined, 'other keys')
  })
  await t.test('is found by the server\'s id for its principal alone, and without credentials for its client alone', async () => {
    assert.equal(handles.find(ann, clientOf('other'), 's', 't1'), handle)
    for (const [who, provider, id] of [[view('bob'), 's', 't1'], [ann, 'other', 't1'], [ann, 's', 't2'], [ann, 's', 1]] as const) {
      assert.equal(handles.find(who, client, provider, id), undefined)
    }
    const anyone = view('anonymous', { kind: 'global' }, 'anonymous')
    const theirs = handles.seal(anyone, client, task)
    assert.equal(handles.find(anyone, client, 's', 't1'), theirs)
    assert.equal(handles.find(anyone, clientOf('other'), 's', 't1'), undefined)
  })
  await t.test('ids that are too long for a header get none', async () => {
    assert.throws(() => handles.seal(ann, client, { ...task, id: 'x'.repeat(1_025) }), /too long/)
  })
  await t.test('who begins tasks without end makes the gateway forget his own, and nobody else\'s', async () => {
    const few = new TaskHandles({ seal: (text) => text, unseal: (text) => text })
    few.seal(ann, client, task)
    for (let n = 0; n <= gatewayLimits.tasks; n++) few.seal(view('eve'), client, { ...task, id: String(n) })
    assert.notEqual(few.find(ann, client, 's', 't1'), undefined)
    assert.equal(few.find(view('eve'), client, 's', '0'), undefined)
  })
  await t.test('another server of the same name has another identity', async () => {
    const config = { url: 'https://a.example', createdAt: '2026-01-01', owner: 'ann' }
    const own = serverFingerprint('s', config)
    assert.equal(serverFingerprint('s', { ...config, description: 'new' }), own)
    for (const change of [{ url: 'https://b.example' }, { createdAt: '2026-01-02' }, { owner: 'bob' }]) {
      assert.notEqual(serverFingerprint('s', { ...config, ...change }), own)
    }
  })
})

test('task ids in messages are replaced where MCP names a task, and nowhere else', async () => {
  const related = '"io.modelcontextprotocol/related-task"'
  for (const [text, expected] of [
    ['{"taskId":"a","status":"working"}', '{"taskId":"h","status":"working"}'],
    ['{"task":{"taskId": "a","ttl":1e400}}', '{"task":{"taskId": "h","ttl":1e400}}'],
    ['{"task":{"taskId":"\\u0061"}}', '{"task":{"taskId":"h"}}'],
    [`{"content":[],"_meta":{"x":1,${related}:{"taskId":"a"}}}`, `{"content":[],"_meta":{"x":1,${related}:{"taskId":"h"}}}`],
    ['{"taskId":"b","task":{"taskId":"b"}}', '{"taskId":"b","task":{"taskId":"b"}}'],
    ['{"structuredContent":{"taskId":"a"},"task":"a"}', '{"structuredContent":{"taskId":"a"},"task":"a"}']
  ] as const) assert.equal(replaceTaskId(text, 'a', 'h'), expected)
  const marked = withRelatedTask('{"x":1}', 'a')
  assert.equal(marked, `{"x":1,"_meta":{${related}:{"taskId":"a"}}}`)
  assert.equal(withoutRelatedTask(marked), '{"x":1}')
})

test('marks of tasks in params name the task of who sent them, or none', async () => {
  const related = '"io.modelcontextprotocol/related-task"'
  for (const [text, expected] of [
    [`{"name":"x","_meta":{"y":1e400,${related}:{"taskId":"h","more":"b"}}}`, `{"name":"x","_meta":{"y":1e400,${related}:{"taskId":"a"}}}`],
    [`{"_meta":{"y":1,${related}:{"taskId":"b"}}}`, '{"_meta":{"y":1}}'],
    [`{"name":"x","_meta":{${related}:"b"}}`, '{"name":"x"}'],
    [`{"_meta":{${related}:{"taskid":"b"}}}`, '{}'],
    ['{"task":{"ttl":1e400,"taskId":"b"}}', '{"task":{"ttl":1e400}}'],
    ['{"task":{"taskId":"h"}}', '{"task":{"taskId":"a"}}'],
    ['{"task":{"taskId":["h"]}}', '{"task":{}}']
  ] as const) {
    assert.ok(refersToTask(JSON.parse(text) as Record<string, unknown>), text)
    assert.equal(translateTaskReferences(text, (name) => name === 'h' ? 'a' : undefined), expected)
  }
  for (const params of [{}, { task: {} }, { _meta: { x: 1 } }, { _meta: null, task: 'x' }, { taskId: 'x' }]) assert.equal(refersToTask(params), false)
})

test('resource links: who makes the gateway remember them', async (t) => {
  await t.test('who is linked without end makes the gateway forget his own, and nobody else\'s', async () => {
    const links = new ResourceLinks()
    const link = (n: number): object => ({ type: 'resource_link', name: 'x', uri: `x://${n}` })
    links.record(JSON.stringify({ content: [link(1)] }), 'ann', 's')
    links.record(JSON.stringify({ content: Array.from({ length: gatewayLimits.resourceLinks }, (_, n) => link(n + 1)) }), 'eve', 's')
    assert.deepEqual(['ann', 'eve'].map((each) => links.providerOf('x://1', each)), ['s', undefined])
  })
  await t.test('URIs that take more than a KiB are not remembered', async () => {
    const links = new ResourceLinks()
    for (const [text, isKept] of [['x'.repeat(1_000), true], ['x'.repeat(1_025), false], ['ж'.repeat(500), true], ['ж'.repeat(513), false]] as const) {
      links.record(JSON.stringify({ content: [{ type: 'resource_link', name: 'x', uri: text }] }), 'ann', 's')
      assert.equal(links.providerOf(text, 'ann') === 's', isKept, String(text.length))
    }
  })
})
