import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { test } from 'tap'
import arrivals from '../../../plugins/base/limits/arrivals.ts'
import { noteArrival, turnForLongWork } from '../../../protocol/yield.ts'
import { appFor } from '../../helpers/app.ts'
import { holdClock } from '../../helpers/clock.ts'
import { silence } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'

test('a step of long work waits 3 ms for a request that has just arrived', async (t) => {
  const clock = holdClock(t)
  const app = Fastify({ forceCloseConnections: true })
  t.after(async () => { await app.close() })
  await app.register(arrivals)
  const steps: string[] = []
  app.get('/', async () => {
    steps.push('begun')
    await turnForLongWork()
    steps.push('over')
    return ''
  })
  for (let n = 0; n < 3; n++) {
    steps.length = 0
    const answer = app.inject('/').then(({ statusCode }) => statusCode)
    await until(() => steps.length > 0)
    clock.at += 2.9
    // Some turns of the event loop, in which the step would go on.
    await silence(10)
    assert.deepEqual(steps, ['begun'])
    clock.at += 0.2
    assert.equal(await answer, 200)
    clock.at += 100
  }
  assert.ok((await appFor(t, {})).hasPlugin('arrivals'))
})

test('where requests arrive without end, a step of long work goes on after 6 ms', async (t) => {
  const clock = holdClock(t)
  for (let step = 0; step < 3; step++) {
    noteArrival()
    let isOver = false
    const done = turnForLongWork().then(() => { isOver = true })
    for (let ms = 1; ms <= 5; ms++) {
      await silence(5)
      clock.at++
      noteArrival()
    }
    assert.equal(isOver, false)
    const arriving = setInterval(() => { clock.at++; noteArrival() }, 1)
    await done
    clearInterval(arriving)
    clock.at += 100
  }
})
