// What is configured, without a running gateway where none is needed; GitHub by a fake of its endpoints; what file mode says.
import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'tap'
import { Outbound } from '../../../plugins/base/outbound/outbound.ts'
import { cookieSettingsFor, parseOrigins, readSocialSettings } from '../../../plugins/identity/social/settings.ts'
import { GithubProvider } from '../../../plugins/identity/social/providers/github.ts'
import { OidcProvider, googleSettings } from '../../../plugins/identity/social/providers/oidc.ts'
import { json, restApi } from '../../fakes/rest-api.ts'
import { appFor } from '../../helpers/app.ts'
import { startHub, type Cleanup } from '../../helpers/hub.ts'
import { settings } from '../../helpers/client.ts'
import { identityLimits } from '../../../plugins/identity/limits.ts'

const oidc = { OIDC_CLIENT_ID: 'id', OIDC_CLIENT_SECRET: 'secret', SOCIAL_AUTH_OIDC_DISCOVERY_URL: 'https://id.example/.well-known/openid-configuration' }
type Env = Parameters<typeof readSocialSettings>[0]
const made = (env: Env, stored?: unknown, hasDatabase = true) =>
  readSocialSettings(env, stored === undefined ? {} : { auth: { betterAuth: stored } }, hasDatabase)

test('what is on', async () => {
  const rows: Array<[what: string, env: Env, stored: unknown, off: RegExp | undefined, warnings: RegExp[]]> = [
    ['nothing is set', {}, undefined, /no provider/, []],
    ['a provider with all it needs', oidc, undefined, undefined, []],
    ['the master switch', { ...oidc, SOCIAL_AUTH_ENABLED: false }, undefined, /turned off/, []],
    ['the stored master switch', oidc, { enabled: false }, /turned off/, []],
    ['which the variable precedes', { ...oidc, SOCIAL_AUTH_ENABLED: true }, { enabled: false }, undefined, []],
    ['a provider that is switched off', { ...oidc, SOCIAL_AUTH_OIDC_ENABLED: false }, undefined, /no provider/, []],
    ['in the stored configuration', oidc, { providers: { oidc: { enabled: false } } }, /no provider/, []],
    ['a secret is missing', { IDP_CLIENT_ID: 'x' }, undefined, /no provider/, [/IDP is off: IDP_CLIENT_SECRET is not set/]],
    ['a provider that is only switched on', { SOCIAL_AUTH_CODEHOST_ENABLED: true }, undefined, /no provider/, [/CODEHOST_CLIENT_ID and CODEHOST_CLIENT_SECRET are/]],
    ['switched on, with no provider', { SOCIAL_AUTH_ENABLED: true }, undefined, /no provider/, [/although SOCIAL_AUTH_ENABLED/]]
  ]
  for (const [what, env, stored, off, warnings] of rows) {
    const found = made(env, stored)
    assert.ok(off ? off.test(found.offReason ?? '') : found.offReason === undefined, `${what}: ${found.offReason}`)
    assert.equal(found.warnings.length, warnings.length, `${what}: ${found.warnings.join()}`)
    warnings.forEach((words, at) => { assert.match(found.warnings[at] ?? '', words) })
  }
  const inFile = made(oidc, undefined, false)
  assert.match(inFile.offReason ?? '', /requires a database/)
  assert.match(inFile.warnings[0] ?? '', /DB_URL/)
})

test('variables precede what is stored, which precedes the defaults', async () => {
  const stored = {
    basePath: '/login/',
    url: 'https://stored.example',
    trustedOrigins: ['https://a.example'],
    unknown: 1,
    providers: { oidc: { providerId: 'work', discoveryUrl: 'https://stored.example/d', scopes: 'email groups', pkce: false, prompt: 'login' } }
  }
  const { SOCIAL_AUTH_OIDC_DISCOVERY_URL: _, ...credentials } = oidc
  const byStored = made(credentials, stored)
  assert.deepEqual([byStored.path, byStored.url, byStored.trustedOrigins], ['/login', 'https://stored.example', ['https://a.example']])
  assert.deepEqual(byStored.oidc, {
    clientId: 'id',
    clientSecret: 'secret',
    id: 'work',
    discoveryUrl: 'https://stored.example/d',
    scopes: ['openid', 'email', 'groups'],
    pkce: false,
    prompt: 'login'
  })
  const byEnv = made({
    ...credentials,
    OIDC_DISCOVERY_URL: 'https://legacy.example/d',
    SOCIAL_AUTH_BASE_PATH: '/auth',
    SOCIAL_AUTH_URL: 'https://env.example',
    SOCIAL_AUTH_TRUSTED_ORIGINS: 'https://b.example',
    SOCIAL_AUTH_OIDC_PROVIDER_ID: 'home',
    SOCIAL_AUTH_OIDC_SCOPES: 'openid,email',
    SOCIAL_AUTH_OIDC_PKCE: true,
    SOCIAL_AUTH_OIDC_PROMPT: 'select_account'
  }, stored)
  assert.deepEqual([byEnv.path, byEnv.url, byEnv.trustedOrigins], ['/auth', 'https://env.example', ['https://b.example']])
  const { id, discoveryUrl, scopes, pkce, prompt } = byEnv.oidc ?? {}
  assert.deepEqual([id, discoveryUrl, scopes, pkce, prompt], ['home', 'https://legacy.example/d', ['openid', 'email'], true, 'select_account'])
  assert.equal(made({ ...oidc, OIDC_DISCOVERY_URL: 'https://legacy.example/d' }).oidc?.discoveryUrl, oidc.SOCIAL_AUTH_OIDC_DISCOVERY_URL)
  const byDefault = made(oidc)
  assert.deepEqual([byDefault.path, byDefault.oidc?.id, byDefault.oidc?.pkce], ['/api/auth/better', 'oidc', true])
  assert.deepEqual(byDefault.oidc?.scopes, ['openid', 'profile', 'email'])
  assert.throws(() => made({ ...oidc, SOCIAL_AUTH_OIDC_PROVIDER_ID: 'idp' }), /another provider/)
  assert.throws(() => made({ ...oidc, SOCIAL_AUTH_OIDC_DISCOVERY_URL: 'file:///etc/passwd' }), /expected an address/)
  assert.throws(() => made(oidc, { trustedOrigins: 5 }), /systemConfig\.auth\.betterAuth\.trustedOrigins/)
})

test('trusted origins in three formats', async () => {
  const expected = ['https://a.example', 'http://b.example:8080']
  for (const text of [
    'https://a.example,http://b.example:8080', ' https://A.example/\n http://b.example:8080 ',
    '["https://a.example", "http://b.example:8080"]'
  ]) assert.deepEqual(parseOrigins(text), expected, text)
  for (const text of ['https://a.example/path', '*', 'https://*.example', 'a.example', '["https://a.example"', '[1]', 'null']) {
    assert.throws(() => parseOrigins(text), /SOCIAL_AUTH_TRUSTED_ORIGINS/, text)
  }
})

test('the names of cookies', async () => {
  for (const [base, session, path, isSecure] of [
    ['http://127.0.0.1:3000', 'tool-hub-social', '/', false],
    ['https://hub.example', '__Host-tool-hub-social', '/', true],
    ['https://hub.example/', '__Host-tool-hub-social', '/', true],
    ['https://hub.example/hub', '__Secure-tool-hub-social', '/hub', true]
  ] as const) {
    const { state, ...names } = cookieSettingsFor(base)
    assert.deepEqual(names, { session, path, isSecure })
    assert.equal(state, `${session}-state`)
  }
})

test('GitHub: the number of an account, and its primary address', async (t) => {
  const { url, seen: asked, answer } = await restApi(t)
  const answers: Record<string, unknown> = {
    '/token': { access_token: 'gho_1', token_type: 'bearer' },
    '/user': { id: 42, login: 'ada', name: 'Ada Lovelace', email: 'public@example.com' },
    '/user/emails': [{ email: 'old@example.com', verified: true }, { email: 'ada@example.com', primary: true, verified: true }]
  }
  answer((request, reply) => { json(reply, answers[request.url]) })
  const outbound = new Outbound({ allow: '' })
  t.after(async () => { await outbound.close() })
  const endpoints = { authorize: `${url}/authorize`, token: `${url}/token`, api: url }
  const github = new GithubProvider({ clientId: 'id', clientSecret: 'secret' }, outbound, endpoints)
  const login = { state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43), redirectUri: 'https://hub.example/callback' }
  const { searchParams } = await github.authorizationUrl(login)
  assert.deepEqual(['client_id', 'scope', 'state', 'code_challenge_method'].map((name) => searchParams.get(name)),
    ['id', 'read:user user:email', 's', 'S256'])
  const identify = async () => await github.identify({ ...login, code: 'c' })
  const person = { provider: 'codehost', subject: '42', name: 'ada' }
  assert.deepEqual(await identify(), { ...person, email: 'ada@example.com', isEmailVerified: true })
  assert.match(String(asked[0]?.body), /code_verifier=v+/)
  assert.equal(asked.find((each) => each.url === '/user')?.headers.authorization, 'Bearer gho_1')
  answers['/user/emails'] = [{ email: 'ada@example.com', primary: true, verified: false }]
  assert.deepEqual(await identify(), { ...person, email: 'ada@example.com', isEmailVerified: false })
  answers['/user/emails'] = []
  assert.deepEqual(await identify(), { ...person, email: undefined, isEmailVerified: false })
  answers['/user'] = { login: 'ada' }
  await assert.rejects(identify(), { statusCode: 502 })
  answers['/token'] = { error: 'bad_verification_code' }
  await assert.rejects(identify(), { statusCode: 403 })
})

/** A provider with the discovery document and the tokens that Google has, on loopback; its issuer is Google's. */
async function startGoogle (t: Cleanup) {
  const keys = ['one', 'two', 'three'].map((kid) => ({ kid, ...generateKeyPairSync('rsa', { modulusLength: 2_048 }) }))
  const world = {
    published: ['one', 'two'], signedWith: 'one', claims: {} as Record<string, unknown>, fields: new URLSearchParams(), keyRequests: 0
  }
  const publicKeys = (): object => ({
    keys: keys.filter(({ kid }) => world.published.includes(kid))
      .map(({ kid, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }))
  })
  const idToken = (): string => {
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const now = Math.floor(Date.now() / 1_000)
    const text = `${encode({ alg: 'RS256', kid: world.signedWith, typ: 'JWT' })}.${encode({
      iss: 'https://accounts.google.com',
      azp: 'id',
      aud: 'id',
      sub: '110169484474386276334',
      at_hash: 'HK6E_P6Dh8Y93mRNtsDB1Q',
      iat: now,
      exp: now + 3_600,
      nonce: 'n',
      ...world.claims
    })}`
    const key = keys.find(({ kid }) => kid === world.signedWith)
    assert.ok(key)
    return `${text}.${sign('sha256', Buffer.from(text), key.privateKey).toString('base64url')}`
  }
  const api = await restApi(t)
  const { url } = api
  api.at('/.well-known/openid-configuration', (_request, reply) => {
    json(reply, {
      issuer: 'https://accounts.google.com',
      authorization_endpoint: `${url}/o/oauth2/v2/auth`,
      device_authorization_endpoint: `${url}/device/code`,
      token_endpoint: `${url}/token`,
      userinfo_endpoint: `${url}/v1/userinfo`,
      revocation_endpoint: `${url}/revoke`,
      jwks_uri: `${url}/certs`,
      response_types_supported: ['code', 'token', 'id_token', 'none'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      scopes_supported: ['openid', 'email', 'profile'],
      token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
      claims_supported: ['aud', 'email', 'email_verified', 'exp', 'iat', 'iss', 'name', 'picture', 'sub'],
      code_challenge_methods_supported: ['plain', 'S256']
    })
  })
  api.at('/token', ({ body }, reply) => {
    world.fields = new URLSearchParams(String(body))
    json(reply, { access_token: 'ya29.a0', expires_in: 3_599, scope: 'openid https://www.googleapis.com/auth/userinfo.email', token_type: 'Bearer', id_token: idToken() })
  })
  api.at('/certs', (_request, reply) => { world.keyRequests++; json(reply, publicKeys()) })
  const outbound = new Outbound({ allow: '' })
  t.after(async () => { await outbound.close() })
  const settings = { ...googleSettings({ clientId: 'id', clientSecret: 'secret' }), discoveryUrl: `${url}/.well-known/openid-configuration` }
  const login = { state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43), redirectUri: 'https://hub.example/callback' }
  const provider = new OidcProvider(settings, outbound, 'Google')
  return { world, provider, login, identify: async () => await provider.identify({ ...login, code: '4/0A' }) }
}

test('Google, by what its discovery document and its tokens look like', async (t) => {
  const { world, provider, login, identify } = await startGoogle(t)
  assert.equal(googleSettings({ clientId: 'id', clientSecret: 's' }).discoveryUrl, 'https://accounts.google.com/.well-known/openid-configuration')
  const { searchParams } = await provider.authorizationUrl(login)
  assert.deepEqual(
    ['response_type', 'client_id', 'scope', 'nonce', 'code_challenge_method', 'prompt'].map((name) => searchParams.get(name)),
    ['code', 'id', 'openid profile email', 'n', 'S256', null]
  )
  // It sends `iss` in responses by now, and does not announce that; a foreign one is refused.
  await provider.checkIssuer(undefined)
  await provider.checkIssuer('https://accounts.google.com')
  await assert.rejects(provider.checkIssuer('https://evil.example'), { statusCode: 403 })
  const person = { provider: 'idp', subject: '110169484474386276334', name: 'Ada Lovelace' }
  world.claims = { email: 'ada@example.com', email_verified: true, hd: 'example.com', name: 'Ada Lovelace', picture: 'https://lh3.example/a' }
  assert.deepEqual(await identify(), { ...person, email: 'ada@example.com', isEmailVerified: true })
  assert.deepEqual(
    ['grant_type', 'code', 'client_id', 'client_secret', 'code_verifier'].map((name) => world.fields.get(name)),
    ['authorization_code', '4/0A', 'id', 'secret', 'v'.repeat(43)]
  )
  world.claims = { email: 'ada@example.com', email_verified: false, name: 'Ada Lovelace' }
  assert.equal((await identify()).isEmailVerified, false)
  // Tokens that are not for this login, or not of Google.
  for (const claims of [{ aud: 'other' }, { azp: 'other' }, { iss: 'https://evil.example' }, { nonce: 'other' }, { exp: 1 }, { sub: undefined }]) {
    world.claims = claims
    await assert.rejects(identify(), (error: Error) => 'statusCode' in error && [403, 502].includes(Number(error.statusCode)), JSON.stringify(claims))
  }
})

test('keys of a provider that change', async (t) => {
  const { world, identify } = await startGoogle(t)
  world.claims = { email: 'ada@example.com', email_verified: true }
  let now = Date.now()
  t.intercept(Date, 'now', { value: () => now })
  await identify()
  world.signedWith = 'two'
  await identify()
  assert.equal(world.keyRequests, 1, 'both keys were there')
  // A new key is looked for, though not more often than every `keysAge`: anybody can send a token that names one.
  world.signedWith = 'three'
  for (let times = 0; times < 3; times++) await assert.rejects(identify(), { statusCode: 502 })
  assert.equal(world.keyRequests, 1)
  now += identityLimits.social.keysAge + 1
  for (let times = 0; times < 3; times++) await assert.rejects(identify(), { statusCode: 502 })
  assert.equal(world.keyRequests, 2)
  world.published = ['three']
  now += identityLimits.social.keysAge + 1
  await Promise.all([identify(), identify(), identify()])
  assert.equal(world.keyRequests, 3)
  // One that is not published any more is good no longer.
  world.signedWith = 'one'
  await assert.rejects(identify(), { statusCode: 502 })
})

test('requests to providers keep the outbound rules', async (t) => {
  const outbound = new Outbound({ allow: '' })
  t.after(async () => { await outbound.close() })
  const settings = { ...{ clientId: 'id', clientSecret: 'x', id: 'oidc', scopes: ['openid'], pkce: true }, discoveryUrl: 'http://169.254.169.254/latest' }
  const login = { state: 's', nonce: 'n', codeVerifier: 'v', redirectUri: 'https://hub.example/callback' }
  await assert.rejects(new OidcProvider(settings, outbound).authorizationUrl(login), (error: Error) =>
    'statusCode' in error && error.statusCode === 502 && !error.message.includes('169.254') && /to such addresses only if/.test(String(error.cause)))
})

test('in a settings file: it is off, and says so', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: oidc })
  assert.match(hub.output(), /Social login is configured, but it requires a database/)
  const path = `${hub.url}/api/auth/better`
  for (const [method, url] of [['GET', `${path}/session`], ['POST', `${path}/signOut`], ['GET', `${hub.url}/api/social-auth/user`]] as const) {
    const reply = await fetch(url, { method })
    assert.equal(reply.status, 404)
    assert.match(await reply.text(), /Social login is off: it requires a database.*TH_SOCIAL_LOGIN_OFF/)
  }
  const page = await fetch(`${path}/signIn/social?provider=oidc`, { redirect: 'manual' })
  assert.equal(page.status, 404)
  const shown = await (await fetch(`${hub.url}/public-config`)).json() as { data: { socialAuth: unknown } }
  assert.deepEqual(shown.data.socialAuth, { enabled: false, basePath: '/api/auth/better', providers: [] })
})

test('the configuration is taken from the file, and not from the API', async (t) => {
  const app = await appFor(t, { systemConfig: { auth: { betterAuth: { basePath: '/login' } }, routing: { skipAuth: true } } })
  assert.equal((await app.inject('/login/session')).statusCode, 404)
  assert.match((await app.inject('/login/session')).body, /TH_SOCIAL_LOGIN_OFF/)
  const changed = await app.inject({ method: 'PUT', url: '/api/system-config', payload: { auth: { betterAuth: { basePath: '/other' } } } })
  assert.equal(changed.statusCode, 400)
})
