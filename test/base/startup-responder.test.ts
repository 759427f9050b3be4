// While the database is waited for, health checks are answered; the gateway then answers at the same port, which is never closed.
import assert from 'node:assert/strict'
import { Agent, get } from 'node:http'
import { text } from 'node:stream/consumers'
import { Value } from '@sinclair/typebox/value'
import { test } from 'tap'
import { createServer } from '../../plugins/base/index.ts'
import { StartupResponder } from '../../routes/startup-responder.ts'
import { Env } from '../../schemas/env.ts'
import { freePort } from '../helpers/hub.ts'

const logger = { level: 'silent', stream: { write: () => {} } }

test('one listener for those who wait and for the gateway', async (t) => {
  const port = await freePort()
  const env = { ...Value.Default(Env, {}) as Env, HOST: '127.0.0.1', PORT: port }
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => { kept.destroy() })
  const ask = async (path: string, agent: Agent | false = false): Promise<[number | undefined, string]> =>
    await new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, path, agent }, (answer) => {
        text(answer).then((body) => { resolve([answer.statusCode, body]) }, reject)
      }).once('error', reject)
    })
  const room = new StartupResponder({ logger, env })
  assert.equal(await room.listener(), undefined, 'nobody waits yet')
  room.open('the database is waited for')
  const listener = await room.listener()
  assert.ok(listener)
  assert.equal((await ask('/health/live', kept))[0], 200)
  assert.equal((await ask('/health/ready'))[0], 503)

  const app = createServer({ logger: false, env, listener })
  t.after(async () => { await app.close() })
  assert.equal(app.initialConfig.pluginTimeout, 0, 'a start may be slow')
  app.get('/mine', async () => 'the gateway')
  await app.ready()
  await room.close()
  assert.equal((await ask('/mine', kept))[0], 503, 'it does not listen yet')
  assert.equal(await app.listen({ host: '127.0.0.1', port }), `http://127.0.0.1:${port}`)
  assert.deepEqual(await ask('/mine', kept), [200, 'the gateway'], 'on a connection from before')
  assert.deepEqual(await ask('/mine'), [200, 'the gateway'])
  assert.equal((await ask('/health/live'))[0], 404)
  assert.equal(listener.listenerCount('request'), 2, 'the app, and its count of requests')
  await app.close()
  await assert.rejects(ask('/mine'), { code: 'ECONNREFUSED' })
})
