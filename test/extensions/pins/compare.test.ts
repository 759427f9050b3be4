// What counts as a change of a definition, for whom, and what accepting one does.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'
import { acceptPending, compareWithPins, type PinComparison, type PinMode, type ServerPins } from '../../../plugins/extensions/pins/compare.ts'
import { canonicalJson } from '../../../protocol/json.ts'
import { definitionsOf, knownItemDigest, type Definition } from '../../../plugins/extensions/pins/definitions.ts'
import { listedCatalogueOf } from '../../../plugins/extensions/pins/listed-catalogue.ts'
import { makeStaticCatalogue, type Catalogue } from '../../../protocol/lists.ts'

const define = (item: string, text: string): Definition => ({ kind: 'tool', item, digest: `digest of ${text}`, text: JSON.stringify(text) })
interface Read { source?: string, user?: string, mode?: PinMode, now?: string }
const read = (pinned: ServerPins | undefined, definitions: Definition[], { source = 'shared', user, mode = 'ask', now = 'later' }: Read = {}): PinComparison =>
  compareWithPins(pinned, { definitions, source, user, mode, now })
const first = (...definitions: Definition[]): ServerPins => read(undefined, definitions, { user: 'ann', now: 'first' }).pinned
const waiting = ({ pins }: ServerPins): string[] => pins.flatMap(({ item, pending = [] }) => pending.map(({ digest }) => `${item}: ${digest}`))
const a = define('t', 'a')
const b = define('t', 'b')
const c = define('t', 'c')

test('canonical JSON sorts members at each depth, and keeps the order of arrays', async () => {
  assert.equal(canonicalJson({ b: [2, 1, { d: null, c: 'é' }], a: { z: true, 10: 1, 9: 2 } }), '{"a":{"10":1,"9":2,"z":true},"b":[2,1,{"c":"é","d":null}]}')
  assert.equal(canonicalJson(JSON.parse('{"__proto__":1,"a":2}')), '{"__proto__":1,"a":2}')
})

const digest = async (text: string): Promise<string | undefined> => {
  const item = { key: 't', text }
  await definitionsOf({ ...makeStaticCatalogue({ name: 's', version: '1' }), lists: { tools: [item], prompts: [], resources: [], resourceTemplates: [], skills: [], events: [] } })
  return knownItemDigest(item)
}

test('the digest is of what the model reads: not of `_meta` and icons, nor of the order of members', async () => {
  const one = await digest('{"name":"t","title":"T","annotations":{"readOnlyHint":true}}')
  assert.match(one ?? '', /^[\w-]{43}$/)
  assert.equal(await digest('{"_meta":{"at":1},"annotations":{"readOnlyHint":true},"icons":[],"title":"T","name":"t"}'), one)
  assert.notEqual(await digest('{"name":"t","title":"T","annotations":{"readOnlyHint":false}}'), one)
  assert.notEqual(await digest('{"name":"t","title":"T!","annotations":{"readOnlyHint":true}}'), one)
})

test('the digest is of the tags that policies read as well, in any order, and of nothing else in `_meta`', async () => {
  const tagged = async (meta: object): Promise<string | undefined> => await digest(JSON.stringify({ name: 't', _meta: meta }))
  const one = await tagged({ tags: ['safe', 'read'] })
  assert.notEqual(one, await digest('{"name":"t"}'))
  for (const same of [{ tags: ['read', 'safe', 'read'], at: 1 }, { fastmcp: { tags: ['safe', 'read'], version: 2 } }, { _fastmcp: { tags: ['read', 'safe', 7] } }]) {
    assert.equal(await tagged(same), one, JSON.stringify(same))
  }
  for (const other of [{ tags: ['safe'] }, { tags: ['safe', 'read', 'admin'] }, { tags: [] }, {}]) assert.notEqual(await tagged(other), one, JSON.stringify(other))
  assert.equal(await tagged({ tags: [], other: { tags: ['x'] } }), await digest('{"name":"t"}'))
})

test('the first reading is pinned, with who saw it and when', async () => {
  assert.deepEqual(first(a), {
    source: 'shared', pins: [{ kind: 'tool', item: 't', by: 'ann', at: 'first', digest: a.digest, text: a.text }]
  })
  assert.equal(read(first(a), [a]).isChanged, false, 'nothing to store')
})

test('a change is told once; one that goes and comes again is told again', async () => {
  const changed = read(first(a), [b])
  assert.deepEqual([waiting(changed.pinned), changed.unreported], [['t: digest of b'], [{ kind: 'tool', item: 't' }]])
  assert.deepEqual([read(changed.pinned, [b]).isChanged, read(changed.pinned, [b]).unreported], [false, []])
  const back = read(changed.pinned, [a])
  assert.deepEqual([waiting(back.pinned), back.unreported], [[], []])
  assert.equal(read(back.pinned, [b]).unreported.length, 1)
  const again = read(changed.pinned, [c])
  assert.deepEqual([waiting(again.pinned), again.unreported.length], [['t: digest of c'], 1], 'a third replaces the second')
})

test('a new name: pinned at off and warn, a change at ask and block, none when it is gone again', async () => {
  const added = define('new', 'n')
  for (const mode of ['off', 'warn'] as const) {
    const { pinned, unreported } = read(first(a), [a, added], { mode })
    assert.deepEqual([waiting(pinned), unreported, pinned.pins.at(-1)?.digest], [[], [], added.digest], mode)
  }
  for (const mode of ['ask', 'block'] as const) {
    const { pinned, unreported } = read(first(a), [a, added], { mode })
    assert.deepEqual([waiting(pinned), unreported], [[`new: ${added.digest}`], [{ kind: 'tool', item: 'new' }]], mode)
    assert.deepEqual(read(pinned, [a]).pinned, first(a), mode)
    assert.deepEqual(waiting(acceptPending(pinned, { kind: 'tool', item: 'new' }) ?? pinned), [], mode)
  }
  assert.equal(read(first(a), []).isChanged, false, 'a name that is gone is no change')
  assert.deepEqual(waiting(read(first(a), [b]).pinned), ['t: digest of b'], 'and is still pinned when it comes back')
})

test('off follows what the server lists', async () => {
  const { pinned, unreported } = read(first(a), [b], { mode: 'off' })
  assert.deepEqual([waiting(pinned), unreported], [[], []])
  assert.equal(read(pinned, [b]).isChanged, false)
})

test('an accepted change is pinned: the former definition is a change then', async () => {
  const accepted = acceptPending(read(first(a), [b]).pinned, { kind: 'tool', item: 't' })
  assert.ok(accepted)
  assert.equal(read(accepted, [b]).isChanged, false)
  assert.deepEqual(waiting(read(accepted, [a]).pinned), ['t: digest of a'])
  assert.equal(acceptPending(accepted, { kind: 'tool', item: 't' }), undefined)
  assert.equal(acceptPending(read(first(a), [b]).pinned, { kind: 'tool', item: 't' }, c.digest), undefined, 'not what the admin has seen')
})

test('other users and clients compare with the first catalogue; what is accepted of them changes nothing for others', async () => {
  const bobs = { source: 'of bob', user: 'bob' }
  const changed = read(first(a), [b], bobs)
  assert.equal(changed.unreported.length, 1)
  const both = read(changed.pinned, [a])
  assert.deepEqual(waiting(both.pinned), ['t: digest of b'], 'the shared one has not changed')
  const accepted = acceptPending(both.pinned, { kind: 'tool', item: 't' }) ?? both.pinned
  assert.equal(read(accepted, [a]).isChanged, false)
  assert.equal(read(accepted, [b], bobs).isChanged, false)
  assert.deepEqual(waiting(read(accepted, [b]).pinned), ['t: digest of b'], 'the shared one has what only bob may have')
  // Users whose definitions differ take turns: each is told once.
  let { pinned } = read(first(a), [b], bobs)
  for (let turn = 0; turn < 3; turn++) {
    for (const [source, definition] of [['of bob', b], ['of carl', c]] as const) {
      const next = read(pinned, [definition], { source })
      assert.equal(next.unreported.length, turn === 0 && source === 'of carl' ? 1 : 0)
      pinned = read(next.pinned, [a], { source }).pinned
    }
  }
})

test('what waits is bounded, and texts are kept within their bounds', async () => {
  let pinned = first(a)
  for (let n = 0; n < 20; n++) ({ pinned } = read(pinned, [define('t', `variant ${n}`)], { source: `of user ${n}` }))
  assert.equal(waiting(pinned).length, extensionsLimits.pins.pending)
  const long = define('long', 'x'.repeat(extensionsLimits.pins.item))
  assert.equal(first(long).pins[0]?.text, undefined)
  assert.equal(first(long).pins[0]?.digest, long.digest)
  const half = 'x'.repeat(extensionsLimits.pins.item - 2)
  const many = Array.from({ length: 20 }, (_, n) => define(`t${n}`, half))
  const kept = first(...many).pins.filter(({ text }) => text !== undefined)
  assert.equal(kept.length, extensionsLimits.pins.text / extensionsLimits.pins.item)
})

test('ask and block list nothing while nothing is known; block leaves out what it cannot list as it was', async () => {
  const catalogue: Catalogue = makeStaticCatalogue({ name: 's', version: '1', instructions: 'Do', tools: [{ name: 't' }], prompts: [{ name: 'p' }], resources: [{ uri: 'r:1' }] })
  const definitions = await definitionsOf(catalogue)
  const listed = (pinned: ServerPins | undefined, mode: 'ask' | 'block'): unknown[] => {
    const { catalogue: { lists, instructions } } = listedCatalogueOf(catalogue, pinned, mode, true)
    return [lists.tools.length, lists.prompts.length, lists.resources.length, instructions]
  }
  for (const mode of ['ask', 'block'] as const) {
    assert.deepEqual(listed(undefined, mode), [0, 0, 1, undefined], mode)
    const pinned = read(undefined, definitions).pinned
    assert.equal(listedCatalogueOf(catalogue, pinned, mode, true).catalogue, catalogue, mode)
    const changed = { ...pinned, pins: pinned.pins.map(({ text: _, ...pin }) => ({ ...pin, digest: 'another' })) }
    assert.deepEqual(listed(changed, mode), [0, 0, 1, undefined], mode)
  }
})
