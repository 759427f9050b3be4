// Clients in browsers: what pages of other origins may ask of the authorization server, and read of its answers.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { form } from '../helpers/oauth.ts'
import { alice, callback, startWorld, type Answer } from '../helpers/oauth-world.ts'

test('clients in browsers', async (t) => {
  const friend = 'https://inspector.example'
  const stranger = 'https://elsewhere.example'
  const world = await startWorld(t, { env: { ALLOWED_ORIGINS: friend } })
  const { base } = world
  const preflight = async (path: string, origin: string, method: string, headers: string): Promise<Answer> =>
    await world.ask('OPTIONS', path, undefined, {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': headers
    })
  const allows = ({ headers }: Answer | { headers: Headers }, origin: string): boolean =>
    ['*', origin].includes(headers.get('access-control-allow-origin') ?? '')

  const rows: Array<[path: string, method: string, headers: string, forAll: boolean]> = [
    ['/.well-known/oauth-authorization-server', 'GET', 'mcp-protocol-version', true],
    ['/.well-known/oauth-protected-resource', 'GET', 'mcp-protocol-version', true],
    ['/.well-known/oauth-protected-resource/mcp/files', 'GET', 'mcp-protocol-version', true],
    ['/oauth/token', 'POST', 'authorization,content-type', true],
    ['/oauth/revoke', 'POST', 'authorization,content-type', true],
    ['/oauth/userinfo', 'GET', 'authorization', true],
    // As on the MCP routes: pages of elsewhere have nothing to do here.
    ['/oauth/register', 'POST', 'content-type', false],
    ['/mcp', 'POST', 'authorization,content-type,mcp-protocol-version', false]
  ]
  for (const [path, method, headers, forAll] of rows) {
    await t.test(`the preflight of ${method} ${path}`, async () => {
      for (const [origin, isAllowed] of [[friend, true], [stranger, forAll]] as const) {
        const answer = await preflight(path, origin, method, headers)
        assert.equal(answer.status < 300 && allows(answer, origin), isAllowed, `${origin}: ${answer.status}`)
        if (!isAllowed) continue
        assert.ok(answer.headers.get('access-control-allow-methods')?.includes(method))
        for (const header of headers.split(',')) {
          assert.ok(answer.headers.get('access-control-allow-headers')?.toLowerCase().includes(header), `${origin} ${header}`)
        }
        assert.equal(answer.headers.get('access-control-allow-credentials'), null)
      }
    })
  }

  await t.test('answers, and errors, can be read', async () => {
    for (const origin of [friend, stranger]) {
      for (const path of ['/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource/mcp', '/oauth/userinfo']) {
        assert.ok(allows(await world.ask('GET', path, undefined, { origin }), origin), path)
      }
      const code = await world.code(alice)
      for (const fields of [code, { ...code, code_verifier: 'x'.repeat(43) }, { grant_type: 'none' }]) {
        const answer = await form(`${base}/oauth/token`, fields, { origin })
        assert.ok(allows(answer, origin), `${origin}: ${answer.status}`)
      }
    }
  })

  await t.test('a page of elsewhere registers no client, one of a trusted origin and a program do', async () => {
    const body = { redirect_uris: [callback], token_endpoint_auth_method: 'none' }
    const count = async (): Promise<number> => (await world.app.oauth.clients.list(1, 1)).total
    const before = await count()
    for (const origin of [stranger, 'null', `${base}.evil.example`]) {
      const { status, body: { error } } = await world.ask('POST', '/oauth/register', body, { origin })
      assert.deepEqual([status, error], [403, 'access_denied'], origin)
    }
    assert.equal(await count(), before)
    for (const headers of [{ origin: friend }, { origin: world.origin }, {}] as Array<Record<string, string>>) {
      const answer = await world.ask('POST', '/oauth/register', body, headers)
      assert.equal(answer.status, 201)
      if (headers.origin === friend) assert.ok(allows(answer, friend))
    }
    assert.equal(await count(), before + 3)
  })

  await t.test('off, there is nothing for pages either', async () => {
    await world.configure({ enabled: false })
    for (const [path, method, headers, forAll] of rows) {
      if (forAll) assert.equal((await preflight(path, stranger, method, headers)).status, 404, path)
    }
  })
})
