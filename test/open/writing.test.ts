// How documents are written: in pieces, once for all who ask, within bounds.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { parse } from 'yaml'
import { makeView } from '../../plugins/settings/access/view.ts'
import { Claims } from '../../plugins/gateway/claims.ts'
import { Precedence } from '../../plugins/gateway/precedence.ts'
import type { Section } from '../../plugins/gateway/section.ts'
import { DocumentCache } from '../../plugins/downstream/openapi/cache.ts'
import { documentFrame, documentHead, operationResponses, uniqueOperationId, type BodyInput } from '../../plugins/downstream/openapi/document.ts'
import { notations } from '../../plugins/downstream/openapi/notation.ts'
import { OpenApi } from '../../plugins/downstream/openapi/openapi.ts'
import { toOperation } from '../../plugins/downstream/openapi/operation.ts'
import { writeBody, writeHead, writeServers } from '../../plugins/downstream/openapi/write.ts'
import { makeCatalogue, type Item } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import type { Json } from '../helpers/client.ts'
import { documentsOf, listing, manyProperties, manyTools } from '../helpers/open-documents.ts'
import { ids } from '../helpers/open-tools.ts'
import { emptySnapshot } from '../helpers/snapshot.ts'

test('whose operationIds are whose is found out where a document is written, not with each request', async () => {
  const view = makeView({ key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }, { kind: 'global', open: true })
  const sections = ['a', 'a_b'].map((name, at): Section => {
    const catalogue = makeCatalogue({ name, version: '1', tools: [{ name: at === 0 ? 'b_c' : 'c', inputSchema: { type: 'object' } }] })
    const provider: Provider = { name, status: 'connected', catalogue: () => catalogue, call: async () => assert.fail() }
    return { server: { name, config: {} }, label: name, member: { name }, isOwnedByAdmin: true, provider, catalogue }
  })
  let asked = 0
  const openapi = new OpenApi({
    snapshot: () => emptySnapshot,
    access: { viewOfOpenRoute: () => view },
    gateway: {
      filteredView: (asked) => asked,
      sections: () => sections,
      precedence: (given, separator) => {
        asked++
        return new Precedence(given, separator, ({ catalogue }) => {
          const claims = new Claims()
          claims.record(catalogue ? [catalogue] : [])
          return claims
        })
      }
    },
    base: () => ''
  })
  for (let n = 0; n < 3; n++) {
    const { chunks } = await openapi.document(view.principal, undefined, {}, 'json', '127.0.0.1')
    const [first, second, ...more] = ids(JSON.parse(Buffer.concat(chunks()).toString()))
    assert.equal(first, 'a_b_c')
    assert.match(String(second), /^a_b_c_[0-9a-f]{8}$/)
    assert.equal(more.length, 0)
  }
  assert.equal(asked, 1)
})

test('a document is written piece by piece as it would be in one go', async () => {
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
  ].map((each) => ({ key: each.name, text: JSON.stringify(each) }))
  const servers = [
    listing(odd, 'a_b'),
    { ...listing(manyTools(30), 'сервер'), description: 'Said of it' },
    {
      ...listing(odd, 'a'),
      toTool: (item: Item) => ({
        item, description: item === odd[0] ? 'Said by an admin' : undefined, enabled: item !== odd[1] && item !== odd[3]
      })
    },
    listing([{ key: 'b_c', text: odd[3]?.text ?? '' }], 'a')
  ]
  const inputs: BodyInput[] = [servers, [], [listing([])], [listing(odd)]].flatMap((servers) =>
    [false, true].flatMap((flag) => [false, true].map((isForGroup) =>
      ({ servers, includesDisabled: flag, isAuthenticated: flag, isForGroup })))
  )
  const url = 'https://hub.example/api/g-1'
  const head = documentHead({ title: 'T "x"', description: 'about', version: '1', serverUrl: '/api' })
  for (const input of inputs) {
    const { components, ...frame } = documentFrame(input)
    const paths: Json = {}
    const schemas: Json = { ...components.schemas }
    const ids = new Set<string>()
    for (const { name, items, toTool } of input.servers) {
      for (const item of items) {
        const { description: said, enabled } = toTool(item) ?? {}
        const operation = enabled || input.includesDisabled ? toOperation(name, item) : undefined
        if (!operation) continue
        const { path, method, summary, description } = operation
        const text = said ?? description
        const operationId = uniqueOperationId(name, item.key, true, ids)
        paths[path] = {
          ...(input.isForGroup ? { servers: [{ url }] } : {}),
          [method]: {
            operationId,
            summary,
            ...(text === undefined ? {} : { description: text }),
            tags: [name],
            ...operation.input,
            responses: operationResponses
          }
        }
        Object.assign(schemas, Object.fromEntries(operation.components))
      }
    }
    const whole = { ...head, ...frame, paths, components: { ...components, schemas } }
    const pieces = (format: 'json' | 'yaml'): string =>
      writeHead(head, notations[format]) +
      [...writeBody(input, format)]
        .map(({ text, rest }) => (rest === undefined ? text : `${text}${writeServers(url, notations[format])}${rest}`))
        .join('')
    // Twice: what is remembered of a tool is the same.
    for (let n = 0; n < 2; n++) {
      assert.equal(pieces('json'), JSON.stringify(whole))
      assert.equal(pieces('yaml'), `${notations.yaml.members(whole, 0).slice(1)}\n`)
    }
    assert.deepEqual(parse(pieces('yaml')), whole)
  }
})
test('a large document does not hold the event loop, is written once for all who ask, and is of one moment', async () => {
  const { world, ask } = documentsOf(manyTools(1_000))
  for (const format of ['json', 'yaml'] as const) {
    world.builds = 0
    let turns = 0
    let isWritten = false
    const turn = (): void => { turns++; if (!isWritten) setImmediate(turn) }
    setImmediate(turn)
    const asked = Array.from({ length: 20 }, async (_, n) => await ask(`title ${n}`, format))
    // What comes later is for those who ask later.
    const before = world.items
    world.version++
    world.catalogue++
    world.items = manyTools(2, 'later')
    const all = await Promise.all(asked)
    isWritten = true
    assert.ok(turns > 10, `${format}: ${turns} turns`)
    assert.equal(world.builds, 1, format)
    assert.equal(new Set(all.map(({ etag }) => etag)).size, 20)
    const texts = all.map(({ chunks }) => Buffer.concat(chunks()).toString())
    assert.ok(texts.every((text) => text.length > 1_000_000 && !text.includes('later-') && text.includes('/tools/big/tool-999"')), format)
    const later = Buffer.concat((await ask('later', format)).chunks()).toString()
    assert.ok(later.includes('/tools/big/later-1"') && !later.includes('tool-0'), format)
    world.catalogue++
    world.items = before
  }
})

test('a document that is kept is written once for each format, whatever stands in its head', async () => {
  const { world, ask } = documentsOf(manyTools(20))
  for (let n = 0; n < 100; n++) for (const format of ['json', 'yaml'] as const) await ask(`title ${n}`, format)
  assert.equal(world.builds, 2)
})

test('memory is taken for a document before it is written, and one that would be too large is not written', async () => {
  const tools = (count: number): Array<{ key: string, text: string }> => Array.from({ length: count }, (_, n) => {
    const name = `tool-${n}`
    return { key: name, text: JSON.stringify({ name, description: 'd'.repeat(6_000), inputSchema: { type: 'object' } }) }
  })
  const { world, ask } = documentsOf(tools(500))
  await assert.rejects(ask('a', 'json', () => { throw new Error('there is none') }), /there is none/)
  assert.equal(world.builds, 0)
  const held: number[] = []
  const { chunks } = await ask('a', 'json', (bytes) => { held.push(bytes) })
  const size = Buffer.concat(chunks()).length
  const [expected = 0] = held
  assert.ok(held.length === 1 && expected > size * 0.9 && expected < size * 1.5, `${held.join()} for ${size} bytes`)
  assert.equal((await ask('another title')).chunks()[1], chunks()[1], 'chunks are shared')

  const builds = world.builds
  world.items = tools(6_000)
  world.catalogue++
  await assert.rejects(ask('a'), { name: 'ShareError', isOwnerLimit: false, message: /more than 32 MiB; name some of the servers with \?servers=/ })
  assert.equal(world.builds, builds)
})

test('documents are written one after the other, and not more may wait than the bound says', async () => {
  const cache = new DocumentCache({ maxTexts: 2, maxSize: 1_000, maxPending: 4 })
  const made: string[] = []
  let running = 0
  const make = (key: string) => async (): Promise<{ chunks: Buffer[], hash: string }> => {
    assert.equal(++running, 1, 'two at once')
    made.push(key)
    await new Promise((resolve) => { setImmediate(resolve) })
    running--
    if (key === 'bad') throw new Error('it failed')
    return { chunks: [Buffer.from(key)], hash: key }
  }
  const get = async (key: string): Promise<string> => (await cache.get(key, make(key))).hash
  const failing = assert.rejects(get('bad'), /it failed/)
  const [first, same, second] = [get('a'), get('a'), get('b')]
  await assert.rejects(get('c'), { name: 'ShareError', isOwnerLimit: true })
  await failing
  assert.deepEqual(await Promise.all([first, same, second]), ['a', 'a', 'b'])
  assert.deepEqual(
    [await get('a'), await get('c'), await get('a'), await get('b'), await get('bad').catch(() => 'again')],
    ['a', 'c', 'a', 'b', 'again']
  )
  assert.deepEqual(made, ['bad', 'a', 'b', 'c', 'b', 'bad'])
})
