import assert from 'node:assert/strict'
import { generateKeyPairSync, verify } from 'node:crypto'
import { test } from 'tap'
import { parseChallenge } from '../../plugins/upstream/login/challenge.ts'
import { authenticate, methodOf } from '../../plugins/upstream/login/client-authentication.ts'
import { chooseScopes } from '../../plugins/upstream/login/scopes.ts'

const none = { configured: undefined, challenged: undefined, ofResource: undefined, ofServer: undefined, former: undefined }

void test('the challenge of a server', async () => {
  const rows: Array<[string | undefined, string | undefined, readonly string[] | undefined]> = [
    [undefined, undefined, undefined],
    ['Basic realm="x"', undefined, undefined],
    ['Bearer', undefined, undefined],
    ['Bearer scope="a b a"', undefined, ['a', 'b']],
    ['bearer resource_metadata="https://m.example/x", scope=a', 'https://m.example/x', ['a']],
    ['Basic realm="x", Bearer realm="r \\" scope=z", resource_metadata="nowhere", scope="b"', undefined, ['b']]
  ]
  for (const [header, address, scopes] of rows) {
    const { resourceMetadata, scopes: found } = parseChallenge(header)
    assert.deepEqual([resourceMetadata?.href, found], [address, scopes], header)
  }
})

void test('the scopes to ask for', async () => {
  assert.deepEqual(chooseScopes(none), [])
  assert.deepEqual(chooseScopes({ ...none, ofServer: ['offline_access'] }), [])
  assert.deepEqual(chooseScopes({ ...none, ofResource: ['a'], ofServer: ['offline_access'] }), ['a', 'offline_access'])
  assert.deepEqual(chooseScopes({ ...none, challenged: ['c'], ofResource: ['a'] }), ['c'])
  assert.deepEqual(chooseScopes({ ...none, configured: ['d'], challenged: ['c'] }), ['d'])
  assert.deepEqual(chooseScopes({ ...none, configured: ['d'], challenged: ['c'], former: ['d', 'e'] }), ['d', 'e', 'c'])
})

void test('how the gateway authenticates', async () => {
  const client = { id: 'c', secret: 's' }
  assert.equal(methodOf({ id: 'c' }, undefined), 'none')
  assert.equal(methodOf(client, undefined), 'client_secret_basic')
  assert.equal(methodOf(client, ['client_secret_post']), 'client_secret_post')
  assert.equal(methodOf({ ...client, method: 'client_secret_post' }, ['client_secret_basic', 'client_secret_post']), 'client_secret_post')
  assert.equal(methodOf(client, undefined, { tokenEndpointAuthMethod: 'client_secret_post' }), 'client_secret_post')
  const server = { url: 'https://as.example', metadata: undefined }
  const headers = new Headers()
  authenticate(headers, new URLSearchParams(), { id: 'a b', secret: 'p:q' }, server)
  assert.equal(headers.get('authorization'), `Basic ${Buffer.from('a+b:p%3Aq').toString('base64')}`)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  for (const text of [privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), JSON.stringify(privateKey.export({ format: 'jwk' }))]) {
    const params = new URLSearchParams()
    authenticate(new Headers(), params, { id: 'c' }, server, { clientId: 'c', privateKey: text, keyId: 'k' })
    const [header = '', claims = '', signature = ''] = params.get('client_assertion')?.split('.') ?? []
    const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
    assert.ok(verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url')))
    assert.equal((JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }).kid, 'k')
    assert.equal((JSON.parse(Buffer.from(claims, 'base64url').toString()) as { aud: string }).aud, 'https://as.example')
  }
  assert.throws(() => { authenticate(new Headers(), new URLSearchParams(), { id: 'c' }, server, { clientId: 'c', privateKey: 'x' }) }, /privateKey/)
})
