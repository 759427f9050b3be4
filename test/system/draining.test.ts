// SIGTERM: what was taken on is answered, new work is not taken.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { assertPlain, KEY, Session, settings, text, within } from '../helpers/client.ts'
import { spawnHub, until, type Cleanup, type ProcessHub } from '../helpers/hub.ts'
import { Api, fine, PASSWORD } from '../helpers/management-client.ts'

interface Draining {
  hub: ProcessHub
  admin: Api
  /** How many calls are at the server. */
  open: () => number
  /** Lets the server answer all calls. */
  answer: () => void
  /** Sends one SIGTERM: a second one, as `stop` would send, ends everything at once. @returns the exit */
  terminate: () => Promise<unknown>
}

/** A gateway with a server whose calls wait. */
async function started (t: Cleanup, timeout: string): Promise<Draining> {
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
  const env = { ADMIN_PASSWORD: PASSWORD, DRAIN_TIMEOUT: timeout }
  const hub = await spawnHub(t, { env, settings: settings({ held: { url: upstream.url } }) })
  t.after(() => { answer() })
  const admin = await Api.login(hub)
  await admin.has('held', 'connected')
  const terminate = async (): Promise<unknown> => {
    const exit = once(hub.child, 'exit')
    hub.child.kill('SIGTERM')
    return await within('the exit', exit)
  }
  return { hub, admin, open: () => open, answer: () => { answer() }, terminate }
}

test('draining: not ready, but still answering what it took on', async (t) => {
  const { hub, admin, open, answer, terminate } = await started(t, '60s')
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
  const call = admin.run('held', 'echo', { message: 'finished' })
  const message = session.request('tools/call', { name: 'held-echo', arguments: { message: 'as well' } })
  await until(() => open() === 2, 'the calls never came')
  const exit = terminate()
  await until(async () => await ready() === 503, 'never 503 while draining')
  assert.equal(await post(), 503, 'an SSE client whose stream has ended comes back later')
  answer()
  assert.equal(text(fine(await call)), 'finished')
  assert.equal(text((await message).result), 'as well')
  await within('the end of the stream', stream.done)
  assert.deepEqual(await exit, [0, null])
})

test('draining: a call by REST alone is finished as well', async (t) => {
  const { hub, admin, open, answer, terminate } = await started(t, '60s')
  const call = admin.run('held', 'echo', { message: 'finished' })
  await until(() => open() === 1, 'the call never came')
  const exit = terminate()
  const ready = async (): Promise<number> => await fetch(`${hub.url}/health/ready`).then(({ status }) => status, () => 0)
  await until(async () => await ready() !== 200, 'still ready')
  answer()
  assert.equal(text(fine(await call)), 'finished')
  assert.deepEqual(await exit, [0, null])
})

test('draining has an end: a call that takes longer gets an error, and the exit is 0', async (t) => {
  const { admin, open, terminate } = await started(t, '1s')
  const call = admin.run('held', 'echo').catch((error: unknown) => ({ status: 0, text: String(error) }))
  await until(() => open() === 1, 'the call never came')
  assert.deepEqual(await terminate(), [0, null])
  const answer = await within('the answer', call)
  assert.ok(answer.status >= 500, `${answer.status} ${answer.text}`)
  assertPlain(answer.text)
})
