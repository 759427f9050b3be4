// How documents are written: in a worker thread, of one moment, within bounds.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { parse } from 'yaml'
import { makeView } from '../../plugins/settings/access/view.ts'
import { ItemClaims } from '../../plugins/gateway/claims.ts'
import { Precedence } from '../../plugins/gateway/precedence.ts'
import type { ViewSection } from '../../plugins/gateway/section.ts'
import { makeDocument, type DocumentInput } from '../../plugins/downstream/openapi/document.ts'
import { OpenApiDocuments } from '../../plugins/downstream/openapi/openapi.ts'
import { toYaml } from '../../plugins/downstream/openapi/yaml.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'
import { makeStaticCatalogue } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import { documentsOf, manyProperties, manyTools } from '../helpers/open-documents.ts'
import { ids } from '../helpers/open-tools.ts'

/** The parts of a document that are looked at. */
interface Written {
  paths: Record<string, {
    servers?: Array<{ url: string }>
    post: { requestBody: { content: { 'application/json': { schema: object } } } }
  }>
}

test('of two tools that could have one operationId, the same one has it each time', async (t) => {
  const view = makeView({ key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }, { kind: 'global', open: true })
  const sections = ['a', 'a_b'].map((name, at): ViewSection => {
    const catalogue = makeStaticCatalogue({ name, version: '1', tools: [{ name: at === 0 ? 'b_c' : 'c', inputSchema: { type: 'object' } }] })
    const provider: Provider = { name, status: 'connected', catalogue: () => catalogue, call: async () => assert.fail() }
    return { server: { name, config: {} }, label: name, member: { name }, isOwnedByAdmin: true, provider, catalogue }
  })
  const openapi = new OpenApiDocuments({
    access: { viewOfOpenRoute: () => view },
    gateway: {
      filteredView: (asked) => asked,
      sections: () => sections,
      precedence: (given, separator) => new Precedence(given, separator, ({ catalogue }) => {
        const claims = new ItemClaims()
        claims.record(catalogue ? [catalogue] : [])
        return claims
      })
    },
    base: () => ''
  })
  t.after(() => { openapi.close() })
  for (let n = 0; n < 3; n++) {
    const { bytes } = await openapi.document(view.principal, undefined, { title: `${n}` }, 'json', '127.0.0.1')
    const [first, second, ...more] = ids(JSON.parse(bytes.toString()))
    assert.equal(first, 'a_b_c')
    assert.match(String(second), /^a_b_c_[0-9a-f]{8}$/)
    assert.equal(more.length, 0)
  }
})

test('a document in YAML says what it says in JSON', async () => {
  const odd = [
    {
      name: 'with space',
      description: 'é "q"\u2028 \ud83d\ude00',
      inputSchema: {
        type: 'object',
        properties: manyProperties,
        $defs: { Tag: { type: 'object', properties: { t: { $ref: '#/$defs/Tag' } } } }
      }
    },
    { name: '.', inputSchema: { type: 'object' } },
    { name: 'z'.repeat(1_200), inputSchema: { type: 'object' } },
    { name: 'c', inputSchema: { $ref: '#/$defs/E', $defs: { E: {} } } }
  ].map((each) => ({ key: each.name, text: JSON.stringify(each), description: undefined, operationId: `id ${each.name}` }))
  const said = odd.map((tool) => ({ ...tool, description: 'Said by an admin' }))
  const many = manyTools(30).map((tool) => ({ ...tool, description: undefined, operationId: tool.key }))
  const lists = [[{ name: 'a_b', tools: odd }, { name: 'сервер', tools: many }, { name: 'a', tools: said }], [], [{ name: 'a', tools: [] }]]
  for (const servers of lists) {
    for (const operationUrl of [undefined, 'https://hub.example/api/g-1']) {
      const input: DocumentInput = {
        format: 'yaml',
        title: 'T "x"',
        about: 'about',
        version: '1',
        serverUrl: '/api',
        servers: servers.map((server) => ({ ...server, description: 'yes' })),
        operationUrl,
        isAuthenticated: operationUrl === undefined,
        isBrief: false
      }
      const document = JSON.parse(JSON.stringify(makeDocument(input))) as Written
      assert.deepEqual(parse(toYaml({ ...document })), document)
      assert.ok(Object.values(document.paths).every(({ servers }) => servers?.[0]?.url === operationUrl))
      assert.equal(Object.keys(document.paths).length, servers.reduce((sum, { tools }) => sum + tools.filter(({ key }) => key !== '.').length, 0))
    }
  }
})

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
