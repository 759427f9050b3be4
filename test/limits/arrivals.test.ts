import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { test } from 'tap'
import arrivals from '../../plugins/limits/arrivals.ts'
import { noteArrival, turnForLongWork } from '../../protocol/yield.ts'
import { appFor } from '../helpers/app.ts'

/** How long long work leaves the event loop to a request, in ms, less what a clock may be wrong. */
const left = 2.9

test('steps of long work leave the event loop to a request that has just arrived', async (t) => {
  const app = Fastify({ forceCloseConnections: true })
  t.after(async () => { await app.close() })
  let arrived = 0
  app.addHook('onRequest', (_request, _reply, done) => {
    arrived = performance.now()
    done()
  })
  await app.register(arrivals)
  app.get('/', async () => {
    await turnForLongWork()
    return { waited: performance.now() - arrived }
  })
  for (let n = 0; n < 5; n++) {
    const { waited } = (await app.inject('/')).json<{ waited: number }>()
    assert.ok(waited >= left, `the step came after ${waited} ms`)
  }
  assert.ok((await appFor(t, {})).hasPlugin('arrivals'))
})

test('where requests arrive without end, long work goes on', async (t) => {
  noteArrival()
  const timer = setInterval(noteArrival, 1)
  t.after(() => { clearInterval(timer) })
  for (let step = 0; step < 5; step++) await turnForLongWork()
})
