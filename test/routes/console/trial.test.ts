// The event stream with the progress of a call that a page makes.
import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { test } from 'tap'
import { within } from '../../helpers/client.ts'
import { showWithProgress } from '../../../routes/console/trial.ts'

test('the stream of a call ends if its work throws', async (t) => {
  const app = Fastify()
  t.after(async () => { await app.close() })
  app.get('/', async (request, reply) => {
    await showWithProgress({ kit: {} } as never, { request, reply } as never, 'item', async ({ onProgress }) => {
      onProgress({ progress: 1 })
      throw new Error('broken')
    })
  })
  const asked = app.inject({ url: '/', headers: { accept: 'text/event-stream' } })
  const { statusCode, payload } = await within('the end of the stream', asked.then((answer) => answer))
  assert.deepEqual([statusCode, payload], [200, 'event: progress\ndata: {"progress":1}\n\n'])
})
