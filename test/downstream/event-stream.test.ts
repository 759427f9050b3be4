import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { EventStream } from '../../plugins/downstream/event-stream.ts'
import { listen } from '../helpers/listen.ts'

void test('a stream whose client has disconnected before it begins is closed', async (t) => {
  const server = createServer()
  const port = await listen(t, server)
  const received = once(server, 'request')
  const request = get({ port }).on('error', () => {})
  const [, raw] = await received as [unknown, ServerResponse]
  const closed = once(raw, 'close')
  request.destroy()
  await closed
  const stream = new EventStream(raw, {})
  let closes = 0
  stream.onClose(() => { closes++ })
  await setImmediate()
  assert.deepEqual([stream.isOpen, closes], [false, 1])
})
