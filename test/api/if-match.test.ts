// If-Match on the management API: a change of a record that somebody has changed meanwhile is refused, atomically.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { itemKinds } from '../../plugins/settings/index.ts'
import { revisionOfServerConfig } from '../../routes/entity-tag.ts'
import { appFor } from '../helpers/app.ts'
import { admin, key } from '../helpers/doors.ts'

const config = { command: 'node', args: ['-e', '0'], enabled: false, owner: 'admin', visibility: 'private' }

void test('PUT with the ETag of GET is refused once the entry has been changed', async (t) => {
  const app = await appFor(t, {
    users: [admin], mcpServers: { mine: config }, groups: [{ id: key.id, name: 'office', servers: [] }]
  })
  const token = app.auth.createLoginToken(admin)
  const ask = async (method: 'GET' | 'PUT', url: string, payload?: object, tag?: string) => await app.inject({
    method,
    url: `/api${url}`,
    headers: { 'x-auth-token': token, ...tag !== undefined && { 'if-match': tag } },
    ...payload && { payload }
  })
  const cases: ReadonlyArray<readonly [url: string, change: (n: number) => object]> = [
    ['/servers/mine', (n) => ({ config: { ...config, description: `change ${n}` } })],
    [`/groups/${key.id}`, (n) => ({ description: `change ${n}` })],
    ['/system-config', (n) => ({ routing: { jsonBodyLimit: `${n}mb` } })]
  ]
  for (const [url, change] of cases) {
    const tag = String((await ask('GET', url)).headers.etag)
    // Both are read before either is stored: one of them loses.
    const both = await Promise.all([ask('PUT', url, change(2), tag), ask('PUT', url, change(3), tag)])
    assert.deepEqual(both.map(({ statusCode }) => statusCode).toSorted(), [200, 412], url)
    const refused = both.find(({ statusCode }) => statusCode === 412)?.json<{ code: string, success: boolean }>()
    assert.deepEqual([refused?.success, refused?.code], [false, 'TH_CHANGED_MEANWHILE'])
    const next = String((await ask('GET', url)).headers.etag)
    assert.notEqual(next, tag)
    assert.equal((await ask('PUT', url, change(4), `"other", ${next}`)).statusCode, 200)
    assert.equal((await ask('PUT', url, change(5), '*')).statusCode, 200)
    assert.equal((await ask('PUT', url, change(6))).statusCode, 200)
    assert.equal((await ask('PUT', url, change(7), `W/${String((await ask('GET', url)).headers.etag)}`)).statusCode, 412)
  }
})

void test('the state of a server does not count, and what it lists', async (t) => {
  const app = await appFor(t, { users: [admin], mcpServers: { mine: { ...config, enabled: true } } })
  const headers = { 'x-auth-token': app.auth.createLoginToken(admin) }
  const tagOf = async (): Promise<string> =>
    String((await app.inject({ url: '/api/servers/mine', headers })).headers.etag)
  const tag = await tagOf()
  await app.inject({ method: 'POST', url: '/api/servers/mine/reload', headers })
  assert.equal((await tagOf()).split('.')[0], tag.split('.')[0])
  const { statusCode } = await app.inject({
    method: 'PUT', url: '/api/servers/mine', headers: { ...headers, 'if-match': tag }, payload: { config }
  })
  assert.equal(statusCode, 200)
})

void test('overrides of no kind of items count, since they stay where a new config omits them', async () => {
  for (const kind of itemKinds) {
    assert.equal(revisionOfServerConfig({ ...config, [kind]: { one: { enabled: false } } }), revisionOfServerConfig(config), kind)
  }
  assert.notEqual(revisionOfServerConfig({ ...config, description: 'another' }), revisionOfServerConfig(config))
})
