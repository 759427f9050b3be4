// The examples of docs/extending.md for a hook and a provider: the page shows these files, and they work.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { FastifyPluginAsync } from 'fastify'
import { test } from 'tap'
import { makeStaticCatalogue } from '../../protocol/lists.ts'
import { toy } from '../fakes/toy.ts'
import { appFor } from '../helpers/app.ts'
import { KEY, settings, text } from '../helpers/client.ts'
import { path } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'
import callGuard, { type CallGuardOptions } from './examples/call-guard.ts'
import clock from './examples/clock.ts'

const page = readFileSync(path('docs/extending.md'), 'utf8')

test('docs/extending.md shows the examples as they are tested', async () => {
  for (const name of ['call-guard', 'clock']) {
    const example = readFileSync(path(`test/docs/examples/${name}.ts`), 'utf8')
    assert.ok(page.includes(`\`\`\`ts\n${example}\`\`\`\n`), name)
  }
})

test('a hook refuses a call, and logs a slow one', async (t) => {
  const warnings: unknown[] = []
  const app = await appFor(t, settings({}))
  app.log.warn = (object: unknown) => { warnings.push(object) }
  const schema = { type: 'object' }
  const catalogue = makeStaticCatalogue({ name: 'files', version: '1', tools: ['delete', 'add'].map((name) => ({ name, inputSchema: schema })) })
  app.gateway.addProvider({ ...toy, name: 'files', catalogue: () => catalogue })
  await (callGuard as unknown as FastifyPluginAsync<CallGuardOptions>)(app, { slow: -1 })
  const session = await openSession(app, '/mcp', KEY)
  const refused = await session.request('tools/call', { name: 'files-delete', arguments: {} })
  assert.deepEqual(refused.error, { code: -32602, message: 'The tool delete is not allowed here' })
  const { result } = await session.request('tools/call', { name: 'files-add', arguments: { a: 1, b: 2 } })
  assert.equal(text(result), '3')
  const told = warnings.map((each) => each as { item: string, outcome: string })
  assert.deepEqual(told.map(({ item, outcome }) => [item, outcome]), [['delete', 'error'], ['add', 'ok']])
})

test('a provider is listed and called on the merged route and on its own', async (t) => {
  const app = await appFor(t, settings({}))
  await clock(app)
  const merged = await openSession(app, '/mcp', KEY)
  const own = await openSession(app, '/mcp/clock', KEY)
  for (const [session, name] of [[merged, 'clock-now'], [own, 'now']] as const) {
    const { result } = await session.request('tools/call', { name, arguments: { zone: 'Europe/Zurich' } })
    assert.match(text(result), /^\d+:\d\d:\d\d \S+$/)
  }
  assert.match((await app.inject('/api/openapi.json')).body, /"\/tools\/clock\/now"/)
})
