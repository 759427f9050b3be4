// SIGTERM: what was taken on is answered, new work is not taken.
import assert from 'node:assert/strict'
import { Agent, request as httpRequest } from 'node:http'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { KEY, Session, settings, text, within } from '../helpers/client.ts'
import { appFor } from '../helpers/app.ts'
import { until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { Api, fine, type Answer } from '../helpers/management.ts'

/** A server whose calls wait until they are answered. */
async function holding (t: Cleanup): Promise<{ url: string, open: () => number, answer: () => void }> {
  let answer = (): void => {}
  const gate = new Promise<void>((resolve) => { answer = resolve })
  let open = 0
  const upstream = await startUpstream(t, {
    on: async ({ method }) => {
      if (method === 'tools/call') {
        open++
        await gate
      }
      return undefined
    }
  })
  t.after(() => { answer() })
  return { url: upstream.url, open: () => open, answer: () => { answer() } }
}

/**
 * A gateway within this process, whose end is that of a process after SIGTERM, with more time to drain, and with what calls its tool by
 * REST.
 */
async function started (
  t: Cleanup, upstream: { url: string }
): Promise<{ hub: Hub, call: () => Promise<Answer>, end: () => Promise<void> }> {
  const app = await appFor(t, settings({ held: { url: upstream.url } }), {}, { drainTimeout: 60_000 })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  app.phase.name = 'ready'
  const hub = { url, output: () => '' } as unknown as Hub
  const admin = new Api(hub, { authorization: `Bearer ${KEY}` })
  await admin.has('held', 'connected')
  const call = async (): Promise<Answer> =>
    await admin.ask('POST', '/tools/call/held', { toolName: 'echo', arguments: { message: 'finished' } })
  return { hub, call, end: async () => { await within('the end', app.close()) } }
}

test('draining: not ready, but still answering what it took on', async (t) => {
  const { open, answer, ...upstream } = await holding(t)
  const { hub, call: callByRest, end } = await started(t, upstream)
  // A connection that is there before: new ones are refused.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => { agent.destroy() })
  const status = async (route: string, method = 'GET', body = ''): Promise<number> => await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const request = httpRequest(`${hub.url}${route}`, { agent, method, headers: method === 'GET' ? {} : headers }, (reply) => {
      reply.resume().on('end', () => { resolve(reply.statusCode ?? 0) })
    })
    request.on('error', reject).end(body)
  })
  const ready = async (): Promise<number> => await status('/health/ready')
  const post = async (): Promise<number> => await status('/messages?sessionId=unknown', 'POST', '{"jsonrpc":"2.0","method":"x"}')
  assert.deepEqual([await ready(), await post()], [200, 404])
  const session = await Session.open(`${hub.url}/mcp`)
  const stream = await session.listen()
  const call = callByRest()
  const message = session.request('tools/call', { name: 'held-echo', arguments: { message: 'as well' } })
  await until(() => open() === 2, 'the calls never came')
  const ended = end()
  await until(async () => await ready() === 503, 'never 503 while draining')
  assert.equal(await post(), 503, 'an SSE client whose stream has ended comes back later')
  answer()
  assert.equal(text(fine(await call)), 'finished')
  assert.equal(text((await message).result), 'as well')
  await within('the end of the stream', stream.done)
  await ended
})

test('draining: a call by REST alone is finished as well', async (t) => {
  const { open, answer, ...upstream } = await holding(t)
  const { hub, call: callByRest, end } = await started(t, upstream)
  const call = callByRest()
  await until(() => open() === 1, 'the call never came')
  const ended = end()
  const ready = async (): Promise<number> => await fetch(`${hub.url}/health/ready`).then(({ status }) => status, () => 0)
  await until(async () => await ready() !== 200, 'still ready')
  answer()
  assert.equal(text(fine(await call)), 'finished')
  await ended
})
