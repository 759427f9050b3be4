// Clients that leave while a hook waits, for example for the check of their credential.
import { get } from 'node:http'
import Fastify from 'fastify'
import { test } from 'tap'
import { createBodyMemoryHook } from '../../../plugins/base/body/memory.ts'
import { baseLimits, memoryBudget } from '../../../plugins/base/limits/index.ts'
import type { Principal } from '../../../plugins/settings/index.ts'
import { callerOf } from '../../../routes/caller.ts'
import { until } from '../../helpers/hub.ts'

void test('a client that left during the check of its credential keeps no memory, and its call is cancelled', async (t) => {
  const app = Fastify()
  t.after(async () => { await app.close() })
  let [isWaiting, isCancelled] = [false, false]
  app.addHook('onRequest', async (_, { raw }) => {
    isWaiting = true
    await until(() => raw.closed)
  })
  app.addHook('preParsing', createBodyMemoryHook({ limit: () => 10 * baseLimits.smallBody, ownerOf: () => 'ann' }))
  app.get('/', async (request, reply) => {
    callerOf(request, reply, {} as Principal).disconnect.listen(() => { isCancelled = true })
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const before = memoryBudget.held
  const request = get(url, { headers: { 'content-length': 2 * baseLimits.smallBody } }).on('error', () => {})
  request.flushHeaders()
  await until(() => isWaiting)
  request.destroy()
  await until(() => isCancelled && memoryBudget.held === before)
})
