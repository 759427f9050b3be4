// All lists of one upstream: those that fail in part, and tools that are not declared.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { emptyCapabilityClass } from '../../protocol/capabilities.ts'
import { RpcError, UpstreamError } from '../../protocol/errors.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import { type ListConnection, readCatalogue, UndeclaredToolsReader } from '../../plugins/upstream/catalogues/read-catalogue.ts'
import { setLimits } from '../helpers/patient.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

type Answer = (cursor: unknown) => string | Promise<string>
interface Server { capabilities: Record<string, unknown>, lists: Record<string, Answer>, closed?: boolean }

/** A server that refuses what it does not list, and what was asked of it. */
function serverOf ({ capabilities, lists }: Server): ListConnection & { asked: string[], closed: boolean } {
  const asked: string[] = []
  return {
    asked,
    closed: false,
    key: { capabilityClass: emptyCapabilityClass },
    identity: { version: '2025-11-25', capabilities, serverInfo: '{}', instructions: undefined },
    request: async (method, params) => {
      asked.push(method)
      const answer = lists[method]
      if (!answer) throw new RpcError(-32601, 'Method not found')
      return await answer((JSON.parse(params) as { cursor?: unknown }).cursor)
    }
  }
}
const tool = (name: string): string => `{"name":"${name}","inputSchema":{"type":"object"}}`
const page = (names: string[], next?: string): string =>
  `{"tools":[${names.map(tool).join()}]${next === undefined ? '' : `,"nextCursor":"${next}"`}}`
const names = ({ lists }: Catalogue): string[] => lists.tools.map(({ key }) => key)

interface Read { names: string[], warnings: string[], whole: boolean, capabilities: Record<string, unknown>, catalogue: Catalogue }
async function read (server: ListConnection, undeclared = new UndeclaredToolsReader(), before?: Catalogue): Promise<Read> {
  const warnings: string[] = []
  const warn = (each: string): void => { warnings.push(each) }
  const { catalogue, isComplete: whole } =
    await readCatalogue(server, before, undefined, Infinity, upstreamLimits.listTime, undeclared, warn)
  return { names: names(catalogue), warnings, whole, capabilities: catalogue.capabilities, catalogue }
}

test('a later page that fails: what was read counts, with the former items that may stand behind it, and it is read again', async () => {
  let isFailing = false
  const server = serverOf({
    capabilities: { tools: {} },
    lists: {
      'tools/list': (cursor) => {
        if (cursor === undefined) return page(isFailing ? ['a', 'new'] : ['a', 'b'], 'x')
        if (isFailing) throw new RpcError(-32603, 'boom')
        return page(['c'])
      }
    }
  })
  const first = await read(server)
  assert.deepEqual([first.names, first.whole, first.warnings], [['a', 'b', 'c'], true, []])
  isFailing = true
  const warning = 'tools: page 2 and those after it could not be read, so their items are missing: boom'
  const fresh = await read(server)
  assert.deepEqual([fresh.names, fresh.whole, fresh.warnings], [['a', 'new'], false, [warning]])
  const again = await read(server, undefined, first.catalogue)
  assert.deepEqual([again.names, again.whole, again.warnings], [['a', 'new', 'b', 'c'], false, [warning]])
  // A connection that has ended is no server of half a list.
  server.closed = true
  await assert.rejects(read(server), { fault: 'broken', message: 'boom' })
})

test('tools that are not declared: the server is asked all the same', async (t: Test) => {
  const shown = 'it lists tools without declaring the capability: they are included'
  const table: Array<[string, Server, string[], string[]]> = [
    ['it lists some', { capabilities: {}, lists: { 'tools/list': () => page(['a']) } }, ['a'], [shown]],
    ['beside prompts', { capabilities: { prompts: {} }, lists: { 'tools/list': () => page(['a']) } }, ['a'], [shown]],
    ['something else is declared', { capabilities: { tools: true }, lists: { 'tools/list': () => page(['a']) } }, ['a'], [
      'capabilities: "tools" is not an object and was omitted', shown
    ]],
    ['nothing is', { capabilities: {}, lists: {} }, [], ['it does not declare tools: it answered tools/list with an error: Method not found']],
    ['it lists none', { capabilities: {}, lists: { 'tools/list': () => page([]) } }, [], ['it does not declare tools: its list is empty']],
    ['it has other lists', { capabilities: { resources: {} }, lists: {} }, [], []],
    ['it has other lists and fails', { capabilities: { prompts: {} }, lists: { 'tools/list': () => { throw new RpcError(-32603, 'boom') } } }, [],
      ['it does not declare tools: it answered tools/list with an error: boom']],
    ['HTTP says no', { capabilities: {}, lists: { 'tools/list': () => { throw new UpstreamError('refused', 'HTTP 500') } } }, [],
      ['it does not declare tools: it answered tools/list with an error: HTTP 500']]
  ]
  for (const [name, options, expected, warnings] of table) {
    await t.test(name, async () => {
      const result = await read(serverOf(options))
      assert.deepEqual([result.names, result.warnings, result.whole], [expected, warnings, true])
      assert.deepEqual(result.capabilities.tools, expected.length > 0 ? {} : undefined)
    })
  }
})

test('tools that are not declared: who has none is asked once, who lists them each time', async () => {
  for (const [lists, times] of [[{}, 1], [{ 'tools/list': () => page(['a']) }, 3], [{ 'tools/list': () => page([]) }, 3]] as const) {
    const server = serverOf({ capabilities: {}, lists })
    const undeclared = new UndeclaredToolsReader()
    for (let time = 0; time < 3; time++) await read(server, undeclared)
    assert.equal(server.asked.length, times)
  }
})

test('tools that are not declared: a server that stays silent, or ends, is not asked again', async (t: Test) => {
  setLimits(t, upstreamLimits, { undeclaredTools: 10 })
  const silent = serverOf({ capabilities: {}, lists: { 'tools/list': async () => await new Promise<string>(() => {}) } })
  const undeclared = new UndeclaredToolsReader()
  assert.deepEqual((await read(silent, undeclared)).warnings, ['it does not declare tools: it does not answer tools/list'])
  assert.equal((await read(silent, undeclared)).whole, true)
  assert.equal(silent.asked.length, 1)
  const dying = serverOf({
    capabilities: { prompts: {} },
    lists: {
      'prompts/list': () => '{"prompts":[{"name":"p"}]}',
      'tools/list': () => { dying.closed = true; throw new UpstreamError('broken', 'the process ended') }
    }
  })
  const once = new UndeclaredToolsReader()
  await assert.rejects(read(dying, once), { message: 'the process ended' })
  dying.closed = false
  const { warnings, catalogue } = await read(dying, once)
  assert.deepEqual([warnings, catalogue.lists.prompts.length], [['it does not declare tools: its connection ended when they were requested'], 1])
})

test('tools that are not declared: a request that is lost is sent again with the next reading, a few times', async () => {
  let losses = 1
  const server = serverOf({
    capabilities: { prompts: {} },
    lists: {
      'prompts/list': () => '{"prompts":[]}',
      'tools/list': () => { if (losses-- > 0) throw new UpstreamError('broken', 'closed the connection'); return page(['a']) }
    }
  })
  const undeclared = new UndeclaredToolsReader()
  const first = await read(server, undeclared)
  assert.deepEqual([first.names, first.whole, first.warnings], [[], false, ['it does not declare tools: tools/list failed: closed the connection']])
  assert.deepEqual((await read(server, undeclared)).names, ['a'])
  losses = Infinity
  const always = new UndeclaredToolsReader()
  const wholes: boolean[] = []
  for (let time = 0; time < 5; time++) wholes.push((await read(server, always)).whole)
  assert.deepEqual(wholes, [false, false, true, true, true])
})

test('a member that occurs twice in a definition: clients get the one that pins and the scan read', async () => {
  const written = '{"name":"x","description":"<IMPORTANT>","inputSchema":{"type":"object","a":1,"a":1.0},"description":"Adds"}'
  const server = serverOf({ capabilities: { tools: {} }, lists: { 'tools/list': () => `{"tools":[${written}]}` } })
  const { catalogue, warnings } = await read(server)
  assert.equal(catalogue.lists.tools[0]?.text, '{"name":"x","inputSchema":{"type":"object","a":1.0},"description":"Adds"}')
  assert.deepEqual(warnings, ['tools: "x" has members that occur twice, of which only the last are used'])
})
