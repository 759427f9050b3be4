// A later account of the same name inherits nothing of what the gateway or servers keep for the former one.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { appFor } from '../../helpers/app.ts'
import { KEY, settings, type Json } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'

const long = Array.from({ length: 9_000 }, (_, n) => `line ${n}: as long as ${n * 7}`).join('\n')

test('a later account of the same name gets neither the connection nor the originals of the former one', async (t) => {
  const sessions: unknown[] = []
  const upstream = await startUpstream(t, {
    tools: [tool('long')],
    on: ({ method, session }) => {
      if (method !== 'tools/call') return undefined
      sessions.push(session.id)
      return { content: [{ type: 'text', text: long }] }
    }
  })
  const app = await appFor(t, settings(
    { own: { type: 'streamable-http', url: upstream.url, visibility: 'public', isolation: 'user' } },
    { systemConfig: { toolResultCompression: { enabled: true } } }
  ))
  await until(() => app.upstreams.get('own')?.status === 'connected')
  const ask = async (method: 'POST' | 'DELETE', path: string, headers: Record<string, string>, payload?: object): Promise<Json> => {
    const answer = await app.inject({ method, url: `/api${path}`, headers, ...(payload && { payload }) })
    return { status: answer.statusCode, ...answer.json<Json>() }
  }
  const admin = { authorization: `Bearer ${KEY}` }
  const account = { username: 'eve', password: 'Eve-has-1-too' }
  const enter = async (): Promise<Record<string, string>> => {
    assert.equal((await ask('POST', '/users', admin, account)).success, true)
    const { token } = await ask('POST', '/auth/login', {}, account)
    return { 'x-auth-token': String(token) }
  }
  const call = async (headers: Record<string, string>): Promise<string> => {
    const { data } = await ask('POST', '/tools/call/own', headers, { toolName: 'long', arguments: {} })
    const { content } = data as { content: Json[] }
    return String(content.find(({ type }) => type === 'resource_link')?.uri)
  }

  const former = await enter()
  const uri = await call(former)
  await call(former)
  assert.equal(new Set(sessions).size, 1, 'a user has one connection')
  assert.equal((await ask('POST', '/resources/read', former, { uri })).status, 200)
  const before = app.upstreams.linkCount

  assert.equal((await ask('DELETE', '/users/eve', admin)).status, 200)
  await until(() => app.upstreams.linkCount < before)
  const later = await enter()
  assert.equal((await ask('POST', '/resources/read', later, { uri })).status, 404)
  await call(later)
  assert.equal(new Set(sessions).size, 2, 'another account has another connection')
})
