// The memory that pages take for what they show.
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { test } from 'tap'
import { baseLimits, memoryBudget } from '../../../plugins/base/limits/index.ts'
import { holdMemory, prepareToHoldMemory } from '../../../plugins/management/console/memory.ts'

test('what a page shows takes memory from the share of its user until the response has ended', async () => {
  const before = memoryBudget.held
  const open = (): { request: FastifyRequest, response: EventEmitter } => {
    const response = new EventEmitter()
    const principal = { key: 'user ann', kind: 'user', user: 'ann', username: 'ann', isAdmin: false }
    const hooks = new Map<string, (request: FastifyRequest, reply: { raw: EventEmitter }) => void>()
    const scope = { decorateRequest: () => {}, addHook: (name: string, hook: () => void) => { hooks.set(name, hook) } }
    prepareToHoldMemory(scope as unknown as FastifyInstance)
    const request = { principal, ip: '127.0.0.1', pageMemory: null } as unknown as FastifyRequest
    hooks.get('onRequest')?.(request, { raw: response })
    return { request, response }
  }
  const pages = [open(), open()]
  const next = (): FastifyRequest => pages[pages.push(open()) - 1]?.request as FastifyRequest
  const size = 50 * 1024 * 1024
  for (const { request } of pages) holdMemory(request, size)
  holdMemory(open().request, baseLimits.smallText)
  assert.equal(memoryBudget.held, before + 2 * size)
  assert.throws(() => { for (;;) holdMemory(next(), size) }, { name: 'ShareError' })
  for (const { response } of pages) response.emit('close')
  assert.equal(memoryBudget.held, before)
  const left = open()
  Object.assign(left.response, { closed: true })
  assert.throws(() => { holdMemory(left.request, size) }, { name: 'ShareError' })
})
