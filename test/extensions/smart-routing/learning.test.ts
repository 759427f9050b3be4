// Learning from use: which tools are called after a search, what it changes, and what is stored.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { CatalogueFiles } from '../../../db/json/catalogues.ts'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'
import { ToolUseLearning } from '../../../plugins/extensions/smart-routing/learning/learning.ts'
import { wordCodeOf, ToolUses } from '../../../plugins/extensions/smart-routing/learning/uses.ts'
import { ShownTool } from '../../../plugins/extensions/smart-routing/shown-tools.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'
import { appFor } from '../../helpers/app.ts'
import { at, KEY, names, settings, type Json } from '../../helpers/client.ts'
import { until, type Cleanup } from '../../helpers/hub.ts'
import { openSession, type InjectedSession } from '../../helpers/inject.ts'

const bounds = extensionsLimits.smartRouting.learning

const shown = (server: string, name: string): ShownTool => {
  const item = { key: name, text: JSON.stringify({ name }) }
  return new ShownTool(`${server}-${name}`, { provider: server, key: name, item }, { text: item.text })
}
const [letter, parcel, other] = [shown('mail', 'letter'), shown('mail', 'parcel'), shown('shop', 'order')]

async function learner (t: Cleanup) {
  const folder = await temporaryFolder(t)
  let now = 0
  let listed: ReadonlySet<string> = new Set(['letter', 'parcel'])
  const make = (): ToolUseLearning => new ToolUseLearning({
    cache: new CatalogueFiles(folder), listed: () => listed, warn: (error) => { throw error }, now: () => now
  })
  const search = async (learning: ToolUseLearning, words: string[], scores: Array<[ShownTool, number]>, who = 'ada'): Promise<string[]> =>
    (await learning.rankAndRemember(who, words, scores.map(([tool, score]) => ({ tool, score })))).map(({ tool }) => tool.ownName)
  const list = (names: string[]): void => { listed = new Set(names) }
  return { folder, make, search, list, wait: (ms: number) => { now += ms } }
}

const close: Array<[ShownTool, number]> = [[letter, 1], [parcel, 0.95]]

void test('a tool that was called after a search comes before one of almost the same score', async (t) => {
  const { make, search } = await learner(t)
  const learning = make()
  for (let i = 0; i < 3; i++) {
    assert.equal((await search(learning, ['send', 'it'], close))[0], i < 2 ? 'letter' : 'parcel', `after ${i} calls`)
    learning.countCall('ada', 'mail', 'parcel')
  }
  assert.deepEqual(await search(learning, ['send', 'it'], close, 'grace'), ['parcel', 'letter'], 'for all who see the server')
  assert.deepEqual(await search(learning, ['weigh', 'them'], close), ['letter', 'parcel'], 'other words')
  const ranked = await learning.rankAndRemember('ada', ['send', 'it'], close.map(([tool, score]) => ({ tool, score })))
  assert.ok(ranked.every(({ score }) => score > 0 && score <= 1) && ranked[0]?.score === 1)
})

void test('a tool that is clearly better stays first', async (t) => {
  const { make, search } = await learner(t)
  const learning = make()
  const apart: Array<[ShownTool, number]> = [[letter, 1], [parcel, 1 - bounds.margin - 0.01]]
  for (let i = 0; i < 50; i++) {
    await search(learning, ['send', 'it'], apart)
    learning.countCall('ada', 'mail', 'parcel')
  }
  assert.deepEqual(await search(learning, ['send', 'it'], apart), ['letter', 'parcel'])
})

void test('only calls by the same principal, within ten minutes, of what was found count', async (t) => {
  const { make, search, wait } = await learner(t)
  const learning = make()
  for (let i = 0; i < 5; i++) {
    await search(learning, ['send'], close)
    learning.countCall('grace', 'mail', 'parcel')
    learning.countCall('ada', 'shop', 'order')
    wait(bounds.time + 1)
    learning.countCall('ada', 'mail', 'parcel')
  }
  assert.deepEqual(await search(learning, ['send'], [...close, [other, 0.9]]), ['letter', 'parcel', 'order'])
})

void test('what was learned outlives the process, without words, and is forgotten with the tool and the server', async (t) => {
  const { make, search, list, folder } = await learner(t)
  const first = make()
  for (let i = 0; i < 3; i++) {
    await search(first, ['confidential'], close)
    first.countCall('ada', 'mail', 'parcel')
  }
  await first.close()
  const [file = ''] = await readdir(folder)
  const text = await readFile(join(folder, file), 'utf8')
  assert.match(text, /parcel/)
  assert.ok(!text.includes('confidential'))
  const second = make()
  assert.deepEqual(await search(second, ['confidential'], close), ['parcel', 'letter'])

  list(['letter'])
  second.countCall('ada', 'mail', 'letter')
  await second.close()
  assert.ok(!(await readFile(join(folder, file), 'utf8')).includes('parcel'))
  const files = new CatalogueFiles(folder)
  await files.keepOnly(['mail'])
  assert.equal((await readdir(folder)).length, 1)
  await files.keepOnly(['shop'])
  assert.deepEqual(await readdir(folder), [])
  await files.writeUses('mail', '[]')
  await files.remove('mail')
  assert.deepEqual(await readdir(folder), [])
})

void test('counts that cannot be read now are neither replaced nor forgotten', async () => {
  let stored = ''
  let failures = 0
  const cache = {
    readUses: async () => {
      if (failures-- > 0) throw new Error('too many open files')
      return stored
    },
    writeUses: async (_server: string, text: string) => { stored = text }
  }
  const make = (): ToolUseLearning => new ToolUseLearning({ cache, listed: () => undefined, warn: () => {} })
  const search = async (learning: ToolUseLearning): Promise<string | undefined> =>
    (await learning.rankAndRemember('ada', ['send'], close.map(([tool, score]) => ({ tool, score }))))[0]?.tool.ownName
  const first = make()
  for (let i = 0; i < 3; i++) {
    await search(first)
    first.countCall('ada', 'mail', 'parcel')
  }
  await first.close()
  const second = make()
  failures = 2
  assert.equal(await search(second), 'letter')
  second.countCall('ada', 'mail', 'letter')
  assert.equal(await search(second), 'parcel')
  await second.close()
  assert.equal(await search(make()), 'parcel')
})

void test('counts are bounded, and unreadable ones are lost', () => {
  const uses = new ToolUses()
  for (let i = 0; i < bounds.tools + 50; i++) uses.count(`t${i}`, Array.from({ length: 100 }, (_, n) => wordCodeOf(`w${n}`)))
  const stored = JSON.parse(uses.toText()) as Array<[string, unknown[]]>
  assert.equal(stored.length, bounds.tools)
  assert.ok(stored.every(([, words]) => words.length === bounds.words))
  assert.deepEqual(ToolUses.fromText(uses.toText()).toText(), uses.toText())
  for (const text of ['', '{', '7', '[1, [2], ["a"], ["b", [[1]]], ["c", [["x", 1]]]]']) {
    assert.equal(ToolUses.fromText(text).shareOfUsedWords('a', [1]), 0)
  }
  return Promise.resolve()
})

const found = async (session: InjectedSession, query: string): Promise<string[]> => {
  const { result } = await session.request('tools/call', { name: 'search_tools', arguments: { query } })
  return names(at(result, 'structuredContent', 'tools') as Json[])
}

void test('call_tool teaches, a call of the merged route does not, and smartRouting.learn: false ends it', async (t) => {
  const twins = ['qqone', 'qqtwo'].map((name) => tool(name, { description: 'Sends a letter' }))
  const upstream = await startUpstream(t, { tools: twins })
  const app = await appFor(t, settings({ up: { type: 'streamable-http', url: upstream.url, visibility: 'public' } }))
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const [smart, merged] = await Promise.all([openSession(app, '/mcp/$smart', KEY), openSession(app, '/mcp', KEY)])
  for (let i = 0; i < 4; i++) {
    assert.equal((await found(smart, 'send a letter'))[0], 'up-qqone')
    await merged.request('tools/call', { name: 'up-qqtwo', arguments: {} })
  }
  for (let i = 0; i < 4; i++) {
    await found(smart, 'send a letter')
    await smart.request('tools/call', { name: 'call_tool', arguments: { toolName: 'up-qqtwo', arguments: {} } })
  }
  await until(async () => (await found(smart, 'send a letter'))[0] === 'up-qqtwo')
  await app.settings.change(({ system }) => [{ entity: 'systemConfig', value: { ...system, smartRouting: { learn: false } } }])
  assert.equal((await found(smart, 'send a letter'))[0], 'up-qqone')
})
