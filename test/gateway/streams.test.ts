// Streams of clients and of servers: what they carry is whole, and none is kept when it has ended.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'tap'
import { startUpstream, tool, type Call } from '../fakes/fault-http.ts'
import { at, KEY, Session, text } from '../helpers/client.ts'
import { served } from '../helpers/served.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { answerAndStay, call, gate, log, methods, type Gate } from '../helpers/wire.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'

const MiB = 1024 * 1024

interface World { url: string, answer: Gate, ended: () => boolean }

/** A server whose tool `big` sends a message, and answers so many characters once the gate is open. */
async function start (t: Cleanup): Promise<World> {
  const answer = gate()
  let isEnded = false
  const server = await startUpstream(t, {
    tools: [tool('big')],
    on: async (one: Call) => {
      if (one.method !== 'tools/call') return undefined
      one.notify(...log('soon'))
      one.res.once('finish', () => { isEnded = true })
      await answer.promise
      return { content: [{ type: 'text', text: 'x'.repeat(Number(at(one.params, 'arguments', 'size') ?? 1)) }] }
    }
  })
  const hub = await served(t, { large: { url: server.url } })
  return { url: `${hub.url}/mcp/large`, answer, ended: () => isEnded }
}

test('an answer of 9 MiB that follows a message arrives whole', async (t) => {
  const { url, answer } = await start(t)
  answer.open()
  const reply = await (await Session.open(url)).post(call('big', { size: 9 * MiB }))
  assert.deepEqual(methods(reply.messages), ['notifications/message', 'response'], `${reply.body.length} characters`)
  assert.equal(text(reply.messages[1]?.result).length, 9 * MiB)
})

test('an answer of 2 MiB that came while the client was away can be fetched by Last-Event-ID', async (t) => {
  const { url, answer, ended } = await start(t)
  const session = await Session.open(url)
  const broken = await session.start(call('big', { size: 2 * MiB }))
  await broken.wait(({ method }) => method === 'notifications/message')
  const last = broken.events.at(-1)?.id
  assert.ok(last !== undefined, 'events carry no id')
  broken.close()
  await broken.done
  answer.open()
  await until(ended, 'the answer is not read')
  const resumed = await session.listen(last)
  assert.equal(text((await resumed.wait(({ id }) => id === 'call')).result).length, 2 * MiB)
  resumed.close()
})

test('neither GET streams that have ended nor streams that a server leaves open are kept', async (t) => {
  const server = await startUpstream(t, {
    tools: [tool('stay')],
    on: (one) => one.method === 'tools/call' ? answerAndStay(one) : undefined
  })
  const hub = await served(t, { s: { url: server.url } })
  const session = await Session.open(`${hub.url}/mcp/s`)
  const headers = { ...session.headers, authorization: `Bearer ${KEY}`, accept: 'text/event-stream' }

  await t.test('GET streams count in the bound of their session while they are open', async () => {
    for (let n = 0; n < 5 * downstreamLimits.streamsPerSession; n++) {
      let response: IncomingMessage | undefined
      // The gateway may see a moment later that the stream before it has ended.
      await until(async () => {
        [response] = await once(get(session.url, { agent: false, headers }), 'response') as [IncomingMessage]
        if (response.statusCode !== 200) response.destroy()
        return response.statusCode === 200
      }, 'streams that have ended are counted')
      response?.on('error', () => {}).destroy()
    }
  })

  await t.test('an answered call costs no connection, though its server does not end the stream', async () => {
    for (let n = 0; n < 5; n++) await session.call('stay')
    const before = await server.connections()
    for (let n = 0; n < 5; n++) await Promise.all(Array.from({ length: 20 }, async () => await session.call('stay')))
    await until(async () => (await server.connections()) <= before, `more than ${before} connections`)
  })
})
