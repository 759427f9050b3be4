// The page of usage: everybody sees his own, admins see all; by name and by day.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import type { FastifyInstance } from 'fastify'
import { appFor } from '../../helpers/app.ts'
import { OTHER, otherKey } from '../../helpers/client.ts'
import { signedIn } from '../../helpers/console.ts'
import { admin, alice } from '../../helpers/doors.ts'
import { openSession } from '../../helpers/inject.ts'
import { countingProvider } from '../../helpers/policies.ts'

const laptop = { ...otherKey(), name: 'laptop', kind: 'user', owner: 'alice' }

/** A gateway in which alice has called two tools with a key of hers, and got a prompt. */
async function start (t: Test): Promise<FastifyInstance> {
  const app = await appFor(t, { users: [admin, alice, { ...alice, username: 'bob' }], bearerKeys: [laptop] })
  app.gateway.addProvider(countingProvider())
  const session = await openSession(app, '/mcp', OTHER)
  for (const name of ['up-read', 'up-read', 'up-write']) await session.request('tools/call', { name, arguments: {} })
  await session.request('prompts/get', { name: 'up-greet' })
  return app
}

async function pageOf (app: FastifyInstance, username: string, path: string): Promise<{ status: number, text: string, words: string }> {
  const { status, text } = await (await signedIn(app, username)).get(path)
  const main = /<main[\s\S]*<\/main>/.exec(text)?.[0] ?? ''
  return { status, text, words: main.replace(/<select[\s\S]*?<\/select>|<[^>]*>/g, ' ').replace(/\s+/g, ' ') }
}

void test('usage by user, key, server and tool; others see their own', async (t) => {
  const app = await start(t)
  assert.match((await pageOf(app, 'admin', '/usage')).words, /calls 4 failed 0 .* User Calls Failed Result tokens alice 4 0 \d+/)
  assert.match((await pageOf(app, 'admin', '/usage?by=key')).words, /laptop 4 0/)
  assert.match((await pageOf(app, 'alice', '/usage')).words, /Server Calls Failed Result tokens up 4 0/)
  assert.match((await pageOf(app, 'alice', '/usage?by=tool')).words, /read up 2 0 \d+ .*write up 1 0/)
  assert.match((await pageOf(app, 'alice', '/usage?by=tool')).words, /prompts and resources up 1 0/)
  const others = await pageOf(app, 'bob', '/usage?by=user')
  assert.match(others.words, /You have not called anything from/)
  assert.doesNotMatch(others.words, /alice/)
})

void test('one name by day, and the days of the address', async (t) => {
  const app = await start(t)
  const today = new Date().toISOString().slice(0, 10)
  const { text } = await pageOf(app, 'admin', '/usage?by=tool')
  const href = /href="\/console(\/usage\?[^"]*of=read[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  assert.match((await pageOf(app, 'admin', href)).words, new RegExp(`Usage: read .* The last 30 days calls 2 .* Day Calls Failed Result tokens ${today} 2 0`))
  const before = await pageOf(app, 'admin', '/usage?from=2026-01-01&to=2026-01-10')
  assert.match(before.words, /No calls Nobody has called anything from 2026-01-01 to 2026-01-10\./)
  assert.match(before.text, /name="from" type="date" value="2026-01-01"/)
  const wrong = await pageOf(app, 'admin', '/usage?from=2026-02-30')
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /id="f-from-problem"[\s\S]*The day 2026-02-30 does not exist/)
  const long = await pageOf(app, 'admin', '/usage?from=2020-01-01&to=2026-01-10')
  assert.equal(long.status, 400)
  assert.match(long.words, /more than 400 days apart/)
  assert.match(long.text, /value="2020-01-01"/)
})
