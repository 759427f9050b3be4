// What was replaced is let go of: a gateway that runs for months restarts its servers often.
import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { appFor } from '../helpers/app.ts'
import { KEY, settings, text } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('the former upstreams of a server that was restarted are collected, whoever called them', async (t) => {
  const fake = await startUpstream(t, { tools: [tool('echo')] })
  const app = await appFor(t, settings({ up: { url: fake.url, visibility: 'public' } }))
  const headers = { authorization: `Bearer ${KEY}` }
  const isConnected = (): boolean => app.upstreams.get('up')?.status === 'connected'
  await until(isConnected)
  // A client that stays has used each of them, too.
  const session = await openSession(app, '/mcp', KEY)
  const made: Array<WeakRef<object>> = []
  const note = (): void => { made.push(new WeakRef(app.upstreams.get('up') ?? assert.fail())) }
  note()
  for (let n = 0; n < 4; n++) {
    for (const answer of await Promise.all([
      app.inject({ url: '/api/tools/up/echo?message=hello' }),
      app.inject({ url: '/api/tools/up/echo?message=hello', headers }),
      app.inject({ method: 'POST', url: '/api/tools/call/up', headers, payload: { toolName: 'echo' } })
    ])) assert.equal(answer.statusCode, 200, answer.body)
    assert.equal(text((await session.request('tools/call', { name: 'up-echo', arguments: { message: 'hello' } })).result), 'hello')
    await app.upstreams.restart('up')
    await until(isConnected)
    note()
  }
  assert.equal(new Set(made.map((each) => each.deref())).size, 5, 'each restart made one')
  const left = (): number => made.filter((each) => each.deref() !== undefined).length
  await until(() => { collect(); return left() === 1 }, () => `${left()} of ${made.length} upstreams are still held`)
  assert.equal(made.at(-1)?.deref(), app.upstreams.get('up'))
})
