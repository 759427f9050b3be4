// Pins and the storage: what is listed while it is away, replicas that store at the same time, and both stores.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { CatalogueFiles } from '../../../db/json/catalogues.ts'
import { MemoryRecords } from '../../../db/memory/records.ts'
import type { PinStore } from '../../../db/ports/pins.ts'
import { FilePinStore } from '../../../db/cached-pins.ts'
import { RecordPinStore } from '../../../db/ports/pins.ts'
import { Pins } from '../../../plugins/extensions/pins/pins.ts'
import { makeStaticCatalogue, type Catalogue } from '../../../protocol/lists.ts'
import { silence } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'

const catalogueOf = (description: string): Catalogue => makeStaticCatalogue({ name: 's', version: '1', tools: [{ name: 't', description }] })

interface Made { pins: Pins, news: string[], changed: () => number, warnings: string[] }
function make (store: PinStore): Made {
  const news: string[] = []
  const warnings: string[] = []
  let count = 0
  const pins = new Pins({
    store,
    modeOf: (server) => server === 'gone' ? undefined : 'ask',
    onListsChanged: () => { count++ },
    reportChanges: (_server, _mode, changes) => { news.push(...changes.map(({ item }) => item)) },
    onExamined: () => {},
    warn: (_server, sentence) => { warnings.push(sentence) },
    retryTime: 5
  })
  return { pins, news, changed: () => count, warnings }
}
const listed = (pins: Pins, catalogue: Catalogue): number => pins.listed('s', catalogue).lists.tools.length

test('each store keeps pins, and refuses a write over one that it has not seen', async (t) => {
  const stores = { records: new RecordPinStore(new MemoryRecords()), files: new FilePinStore(new CatalogueFiles(await temporaryFolder(t))) }
  for (const [name, store] of Object.entries(stores)) {
    assert.equal(await store.find('s'), undefined, name)
    const first = await store.swap('s', undefined, { a: 1 })
    assert.ok(first !== undefined, name)
    assert.deepEqual(await store.find('s'), { value: { a: 1 }, version: first }, name)
    assert.equal(await store.swap('s', undefined, { a: 2 }), undefined, name)
    assert.equal(await store.swap('s', 'another', { a: 2 }), undefined, name)
    assert.ok(await store.swap('s', first, { a: 3 }) !== undefined, name)
    await store.remove(['s', 'none'])
    assert.equal(await store.find('s'), undefined, name)
  }
})

test('while pins cannot be read, ask lists nothing; it does as soon as they can, and says so once', async () => {
  const store = new RecordPinStore(new MemoryRecords())
  let isAway = true
  const find = store.find.bind(store)
  store.find = async (server) => { if (isAway) throw new Error('away'); return await find(server) }
  const { pins, changed, warnings } = make(store)
  const catalogue = catalogueOf('one')
  await pins.examine('s', catalogue, undefined)
  assert.equal(listed(pins, catalogue), 0)
  // It stays unlisted, also when it is compared again.
  await silence(50)
  assert.equal(listed(pins, catalogue), 0)
  isAway = false
  await until(() => changed() > 0 && listed(pins, catalogue) === 1, 'it was not compared again')
  assert.equal(warnings.length, 1)
  pins.close()
})

test('replicas that read a server at the same time pin it once, and tell a change once', async () => {
  const store = new RecordPinStore(new MemoryRecords())
  const all = [make(store), make(store), make(store)]
  const catalogues = all.map(() => catalogueOf('one'))
  await Promise.all(all.map(async ({ pins }, at) => { await pins.examine('s', catalogues[at] ?? catalogueOf(''), undefined) }))
  assert.deepEqual(all.map(({ pins }, at) => listed(pins, catalogues[at] ?? catalogueOf(''))), [1, 1, 1])
  const changed = all.map(() => catalogueOf('two'))
  await Promise.all(all.map(async ({ pins }, at) => { await pins.examine('s', changed[at] ?? catalogueOf(''), undefined) }))
  assert.deepEqual(all.flatMap(({ news }) => news), ['t'])
  const [one, two, three] = all
  assert.ok(one && two && three)
  assert.equal(await one.pins.accept('s', { kind: 'tool', item: 't' }), true)
  assert.equal(listed(two.pins, changed[1] ?? catalogueOf('')), 0)
  await two.pins.refresh(60_000)
  assert.equal(listed(two.pins, changed[1] ?? catalogueOf('')), 1)
  assert.deepEqual(await two.pins.readPendingChanges('s'), [])
  // A read between two polls notifies, too, since the next poll sees no newer version.
  const before = three.changed()
  assert.deepEqual(await three.pins.readPendingChanges('s'), [])
  assert.equal(three.changed(), before + 1)
  assert.equal(listed(three.pins, changed[2] ?? catalogueOf('')), 1)
})

test('nothing is stored of a server that is gone by then', async () => {
  const store = new RecordPinStore(new MemoryRecords())
  await make(store).pins.examine('gone', catalogueOf('one'), undefined)
  assert.equal(await store.find('gone'), undefined)
})
