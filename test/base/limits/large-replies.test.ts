import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { test } from 'tap'
import { Annexes } from '../../../plugins/base/annexes/index.ts'
import config, { type SharedEnv } from '../../../plugins/base/config/config.ts'
import { pacedReply } from '../../../plugins/base/limits/paced-reply.ts'
import largeReplies from '../../../plugins/base/limits/large-replies.ts'
import { memoryBudget } from '../../../plugins/base/limits/memory.ts'
import { turnsOfLoop } from '../../helpers/clock.ts'
import { until, type Cleanup } from '../../helpers/hub.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'

const MiB = 1024 * 1024
/** Bodies of some pieces each, with characters of one to four bytes at every boundary. */
const bodies: Record<string, string | Buffer> = {
  ascii: `"${'x'.repeat(3 * MiB)}"`,
  latin1: `"${'xé'.repeat(MiB)}"`,
  others: `"${'x€😀'.repeat(MiB / 4)}"`,
  bytes: Buffer.alloc(2 * MiB, 'bytes '),
  small: '"small"'
}

async function app (t: Cleanup, routes: (app: FastifyInstance) => void): Promise<{ url: string, port: number }> {
  const app = Fastify({ forceCloseConnections: true })
  t.after(async () => { await app.close() })
  await app.register(config, { version: '0', env: { BASE_PATH: '', MEMORY_BUDGET: 256 * MiB } as SharedEnv })
  app.decorate('annexes', new Annexes(() => app))
  await app.register(largeReplies)
  await app.register(async (scope) => { routes(scope) })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port }
}

test('large answers arrive whole, with their type and length, also several at once', async (t) => {
  const { url } = await app(t, (scope) => {
    scope.get('/:name', async (request, reply) => await reply.type('application/json').send(bodies[(request.params as { name: string }).name]))
  })
  const all = [...Object.keys(bodies), ...Object.keys(bodies), ...Object.keys(bodies)]
  await Promise.all(all.map(async (name) => {
    const reply = await fetch(`${url}/${name}`)
    const expected = Buffer.from(bodies[name] ?? '')
    assert.equal(reply.headers.get('content-length'), String(expected.length))
    assert.match(String(reply.headers.get('content-type')), /^application\/json/)
    assert.ok(Buffer.from(await reply.arrayBuffer()).equals(expected), name)
  }))
  const head = await fetch(`${url}/ascii`, { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('content-length'), await head.text()], [200, String(bodies.ascii?.length), ''])
  await until(() => memoryBudget.held < MiB)
})

test('hooks of plugins and of the route see the whole body', async (t) => {
  const seen: string[] = []
  const { url } = await app(t, (scope) => {
    scope.addHook('onSend', async (_request, reply, payload) => {
      seen.push(typeof payload)
      reply.header('etag', '"of the whole"')
      return payload
    })
    scope.get('/', { onSend: async (_request, _reply, payload) => { seen.push(typeof payload); return payload } }, async () => bodies.ascii)
  })
  const reply = await fetch(url)
  assert.equal((await reply.text()).length, bodies.ascii?.length)
  assert.equal(reply.headers.get('etag'), '"of the whole"')
  assert.deepEqual(seen, ['string', 'string'])
})

test('what a client does not read is not encoded; it counts as unread until the connection is gone', async (t) => {
  const replies: FastifyReply[] = []
  const { port } = await app(t, (scope) => {
    scope.get('/', async (_request, reply) => { replies.push(reply); return 'x'.repeat(16 * MiB) })
  })
  // What the tests before had read may be given back a moment later.
  await until(() => memoryBudget.held === 0)
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
  await until(() => memoryBudget.held > 8 * MiB * baseLimits.unreadCost)
  await until(() => replies[0]?.raw.writableNeedDrain)
  await turnsOfLoop(500)
  const waiting = replies[0]?.raw.writableLength ?? Infinity
  assert.ok(waiting <= 128 * 1024, `${waiting} bytes wait at the socket`)
  socket.destroy()
  await until(() => memoryBudget.held === 0)
})

/** A response whose client reads all at once. `end` resolves when it has all. */
class Eager extends EventEmitter {
  readonly ended = new Promise<void>((resolve) => { this.once('finish', resolve) })
  readonly destroyed = false
  readonly writableLength = 0
  bytes = 0
  cork (): void {}
  uncork (): void {}
  end (): void { this.emit('finish'); this.emit('close') }
  write (bytes: Buffer, done?: () => void): boolean {
    this.bytes += bytes.length
    if (done) process.nextTick(done)
    return true
  }
}

const text = `"${'x€'.repeat(8 * MiB)}"`
const length = Buffer.byteLength(text)
for (const [what, write] of [
  ['streamed', async (raw) => {
    for await (const bytes of pacedReply(raw as unknown as ServerResponse, [text], length)) raw.write(bytes as Buffer)
    raw.end()
  }],
  ['streamed in turns of its owner', async (raw) => {
    for await (const bytes of pacedReply(raw as unknown as ServerResponse, [text], length, { owner: 'ann' })) raw.write(bytes as Buffer)
    raw.end()
  }]
] satisfies Array<[string, (raw: Eager) => Promise<void>]>) {
  test(`a client that reads at once does not hold the event loop: an answer is ${what}`, async () => {
    const raw = new Eager()
    let turnsOfLoop = 0
    const count = (): void => { turnsOfLoop++; counting = setImmediate(count) }
    let counting = setImmediate(count)
    await write(raw)
    clearImmediate(counting)
    assert.equal(raw.bytes, length)
    assert.ok(turnsOfLoop > 10, `${length} bytes were written in ${turnsOfLoop} turns of the event loop`)
  })
}
