// Clients that leave while a hook waits, for example for the check of their credential, or within their body.
import assert from 'node:assert/strict'
import { get, request as open } from 'node:http'
import Fastify from 'fastify'
import { test } from 'tap'
import { createBodyMemoryHook } from '../../../plugins/base/body/memory.ts'
import { baseLimits, memoryBudget } from '../../../plugins/base/limits/index.ts'
import type { Principal } from '../../../plugins/settings/index.ts'
import { callerOf } from '../../../routes/caller.ts'
import { settings } from '../../helpers/client.ts'
import { startHub, until } from '../../helpers/hub.ts'

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

void test('a client that leaves within its body leaves no error in the log', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { LOG_LEVEL: 'debug' } })
  const begun = { method: 'POST', headers: { 'content-type': 'application/json', 'content-length': 50 } }
  // Whether a gateway has begun to read a body cannot be seen from outside, so some clients leave before.
  await until(async () => {
    const request = open(`${hub.url}/api/auth/login`, begun).on('error', () => {})
    await new Promise<void>((resolve) => { request.write('{"a', () => { resolve() }) })
    await fetch(`${hub.url}/health`)
    request.destroy()
    return hub.output().includes('a request failed')
  }, hub.output)
  assert.match(hub.output(), /"level":20,[^\n]*"msg":"a request failed"/)
  assert.doesNotMatch(hub.output(), /"level":50/)
})
