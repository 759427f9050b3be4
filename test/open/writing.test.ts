// How documents are written: in a worker thread, of one moment, within bounds.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'
import { documentsOf, manyTools } from '../helpers/open-documents.ts'

/** The parts of a document that are looked at. */
interface Written { paths: Record<string, { post: { requestBody: { content: { 'application/json': { schema: object } } } } }> }

test('a large document leaves the event loop to others, is of one moment, and is written once for all who ask', async (t) => {
  const { world, ask } = documentsOf(t, manyTools(1_000))
  for (const format of ['json', 'yaml'] as const) {
    const asked = Array.from({ length: 20 }, async () => await ask('the same', format))
    // Tools that are listed now are for those who ask later.
    const before = world.items
    world.items = manyTools(2, 'later')
    const all = await Promise.all(asked)
    assert.equal(new Set(all.map(({ bytes }) => bytes)).size, 1, 'written more than once')
    const text = all[0]?.bytes.toString() ?? ''
    assert.ok(text.length > 1_000_000 && !text.includes('later-') && text.includes('/tools/big/tool-999'), format)
    const later = await ask('the same', format)
    assert.ok(later.bytes.includes('/tools/big/later-1') && !later.bytes.includes('tool-0'), format)
    assert.notEqual(later.etag, all[0]?.etag)
    assert.equal((await ask('the same', format)).bytes, later.bytes, 'a small one is kept')
    world.items = before
  }
})

test('memory is taken for a document before it is written, and one that would be too large is not written', async (t) => {
  const tools = (count: number): Array<{ key: string, text: string }> => Array.from({ length: count }, (_, n) => {
    const name = `tool-${n}`
    return { key: name, text: JSON.stringify({ name, description: 'd'.repeat(6_000), inputSchema: { type: 'object' } }) }
  })
  const { world, ask } = documentsOf(t, tools(500))
  await assert.rejects(ask('a', 'json', () => { throw new Error('there is none') }), /there is none/)
  const held: number[] = []
  const { bytes: { length: size } } = await ask('a', 'json', (bytes) => { held.push(bytes) })
  const [expected = 0] = held
  assert.ok(held.length === 1 && expected > size * 3 && expected < size * 6, `${held.join()} for ${size} bytes`)
  world.items = tools(6_000)
  await assert.rejects(ask('a'), { name: 'ShareError', isOwnerLimit: false, message: /more than 32 MiB; name some of the servers with \?servers=/ })
})

test('where a document takes too long, its large tools are described as taking any object', async (t) => {
  const { large, time } = downstreamLimits.documents
  const [big, ...small] = manyTools(1_000)
  const text = big?.text.replace('A tool', 'A'.repeat(large)) ?? ''
  const { ask } = documentsOf(t, [{ key: 'big', text }, ...small])
  const schemasOf = async (title: string): Promise<object[]> => {
    const { paths } = JSON.parse((await ask(title)).bytes.toString()) as Written
    return ['big', 'tool-7'].map((name) => paths[`/tools/big/${name}`]?.post.requestBody.content['application/json'].schema ?? {})
  }
  const times = [time, 1, time, 1, 1]
  Object.defineProperty(downstreamLimits.documents, 'time', { configurable: true, get: () => times.shift() })
  t.after(() => { Object.defineProperty(downstreamLimits.documents, 'time', { configurable: true, value: time }) })
  const shown = ['properties', 'required', 'type']
  assert.deepEqual((await schemasOf('in time')).map((each) => Object.keys(each).sort()), [shown, shown])
  const [brief, whole = {}] = await schemasOf('too late')
  assert.deepEqual(brief, { type: 'object', additionalProperties: { description: 'The arguments of the tool' } })
  assert.deepEqual(Object.keys(whole).sort(), shown)
  await assert.rejects(schemasOf('too late twice'), { name: 'ShareError' })
})
