import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Value } from '@sinclair/typebox/value'
import Fastify from 'fastify'
import { assetPath, readAsset } from '../../plugins/config/assets.ts'
import config from '../../plugins/config/index.ts'
import { Env } from '../../schemas/env.ts'
import { path } from '../helpers/hub.ts'

const env = { ...(Value.Default(Env, {}) as Env), BASE_PATH: '/hub/', ENCRYPTION_KEY: 'a key', DB_URL: 'postgres://a:b@c/d' }

test('app.config has what plugins need, and no more of the environment', async (t) => {
  const app = Fastify()
  t.after(async () => { await app.close() })
  await app.register(config, { version: '1.2.3', env })
  assert.deepEqual([app.config.version, app.config.basePath, app.config.env.HOST], ['1.2.3', '/hub', '127.0.0.1'])
  for (const name of ['ENCRYPTION_KEY', 'DB_URL', 'ADMIN_PASSWORD', 'PORT']) assert.equal(name in app.config.env, false, name)
})

test('app.config cannot be changed, and does not follow what it was made from', async (t) => {
  const app = Fastify()
  t.after(async () => { await app.close() })
  const given = { ...env }
  await app.register(config, { version: '1.2.3', env: given })
  given.HOST = '0.0.0.0'
  assert.equal(app.config.env.HOST, '127.0.0.1')
  assert.throws(() => { Object.assign(app.config, { version: '2' }) }, TypeError)
  assert.throws(() => { Object.assign(app.config.env, { READONLY: true }) }, TypeError)
})

test('assets are found from the package, wherever the process runs', async () => {
  assert.equal(assetPath('icons/tool-hub.svg'), path('assets/icons/tool-hub.svg'))
  assert.match(await readAsset('icons/tool-hub.svg'), /^<svg /)
  await assert.rejects(readAsset('icons/none.svg'), { code: 'ENOENT' })
})
