import assert from 'node:assert/strict'
import { test } from 'tap'
import { ListResult, type ListEntry } from '../../plugins/gateway/list.ts'

interface Result { tools: Array<{ name: string }>, nextCursor?: string, _meta?: unknown }

const entries = (count: number, size: number, from = 0): ListEntry[] => Array.from({ length: count }, (_, n) => {
  const key = `tool-${from + n}`
  return { key, text: JSON.stringify({ name: key, description: 'd'.repeat(size) }) }
})
const read = async (list: ListResult): Promise<Result> => JSON.parse(String(await list.bytes())) as Result
const names = (each: readonly ListEntry[]): string[] => each.map(({ key = '' }) => key)

/** All pages, from a cursor on. */
async function walk (list: ListResult, cursor?: string): Promise<Result[]> {
  const page = await read(list.page(cursor))
  return [page, ...page.nextCursor === undefined ? [] : await walk(list, page.nextCursor)]
}

test('a usual list has one page', async () => {
  const list = new ListResult('tools', entries(1_000, 1_000), '{}')
  assert.equal(list.page(undefined), list)
  assert.equal((await read(list)).tools.length, 1_000)
  for (const cursor of ['1', 7, '5.abcdefghijklmnopqrstuv']) assert.throws(() => list.page(cursor), { code: -32602 }, String(cursor))
})

test('a large list has several pages, of which nothing is missing', async () => {
  const all = entries(2_000, 6_000)
  const pages = await walk(new ListResult('tools', all, '{"_meta":{"a":1}}'))
  assert.equal(pages.length, 3)
  for (const page of pages) assert.ok(JSON.stringify(page).length < 4.2 * 1024 * 1024)
  assert.deepEqual(pages.flatMap(({ tools }) => tools.map(({ name }) => name)), names(all))
  assert.deepEqual(pages.map(({ _meta: meta }) => meta), [{ a: 1 }, { a: 1 }, { a: 1 }])
})

test('a cursor is good for a list of another generation that still has the item before it', async () => {
  const all = entries(2_000, 6_000)
  const { tools, nextCursor } = await read(new ListResult('tools', all, '{}').page(undefined))
  const same = new ListResult('tools', entries(2_000, 6_000), '{}')
  assert.deepEqual((await walk(same, nextCursor)).flatMap(({ tools }) => tools.map(({ name }) => name)), names(all.slice(tools.length)))
  const later = new ListResult('tools', [...entries(10, 100, 5_000), ...all], '{}')
  assert.deepEqual((await walk(later, nextCursor)).flatMap(({ tools }) => tools.map(({ name }) => name)), names(all.slice(tools.length)))
  assert.throws(() => new ListResult('tools', all.slice(tools.length), '{}').page(nextCursor), { code: -32602 })
})

test('a list is written once while anybody holds it, and large ones one after the other', async () => {
  const list = new ListResult('tools', entries(500, 1_000), '{}')
  const [one, other] = await Promise.all([list.bytes(), list.bytes()])
  assert.equal(one, other)
  assert.equal(await list.bytes(), one)
  // Others take the room that there is for lists that are kept.
  for (let n = 0; n < 12; n++) await new ListResult('tools', entries(600, 6_000), '{}').bytes('somebody')
  assert.equal(await list.bytes(), one)
})
