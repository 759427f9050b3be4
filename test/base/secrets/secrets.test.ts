import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { StorageError, type Vault } from '../../../db/store.ts'
import { rotateEncryptionKey } from '../../../plugins/settings/key-rotation.ts'
import { containsMask, mask, maskUrl } from '../../../plugins/base/secrets/mask.ts'
import { maskConfig } from '../../../plugins/base/secrets/mask-config.ts'
import { unmask } from '../../../plugins/base/secrets/unmask.ts'
import { maskLikelyCredentials } from '../../../plugins/base/secrets/own-credentials.ts'
import { createConfigRedactor } from '../../../plugins/base/secrets/redact.ts'
import { openKeyRing } from '../../../plugins/base/secrets/key-ring.ts'
import { seal, unseal } from '../../../plugins/base/secrets/seal.ts'
import { openVault } from '../../../plugins/base/secrets/vault.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)

const HEX = 'ab'.repeat(32)
const OTHER = 'cd'.repeat(32)
const MASK = '••••'
/** A folder that is not there: with a key given, nothing is written. */
const nowhere = '/nonexistent/tool-hub'
const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777
const withKey = async (encryptionKey = HEX): Promise<Vault> => await openVault({ dataDir: nowhere, encryptionKey })
const sealedBy = async (encryptionKey: string): Promise<string> => seal(await openKeyRing({ dataDir: nowhere, encryptionKey }), 'x', 'p')
const keyIdOf = (sealed: string | null): string => sealed?.split('.')[1] ?? assert.fail('nothing is sealed')
/** As a database gives it back: through JSON. */
const stored = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value

// The one file with the real cost of scrypt: keys and hashes that are stored depend on it.
process.env.TEST_REAL_HASHES = '1'

void test('ENCRYPTION_KEY: the forms of a key, and what is none', async () => {
  const bytes = Buffer.from(HEX, 'hex')
  const passphrase = 'correct horse battery staple'
  const ids = new Map<string, string>()
  for (const [what, key] of Object.entries({
    hex: HEX,
    upper: HEX.toUpperCase(),
    base64: bytes.toString('base64'),
    base64url: bytes.toString('base64url'),
    spaces: ` ${HEX} ,`,
    passphrase,
    again: passphrase,
    other: OTHER,
    folded: 'ﬁfteen letters and more',
    plain: 'fifteen letters and more'
  })) { ids.set(what, keyIdOf(await sealedBy(key))) }
  const id = (what: string): string => ids.get(what) ?? assert.fail(what)
  for (const same of ['upper', 'base64', 'base64url', 'spaces']) assert.equal(id(same), id('hex'), same)
  assert.equal(id('again'), id('passphrase'))
  assert.equal(id('folded'), id('plain'), 'two ways to write one passphrase')
  assert.equal(new Set(['hex', 'passphrase', 'other', 'plain'].map(id)).size, 4)
  // What these keys once sealed must open for ever: the derivation is part of the format.
  assert.deepEqual([id('hex'), id('passphrase')], ['2ff87bd0', '740e4785'])
  const ring = await openKeyRing({ dataDir: nowhere, encryptionKey: `${HEX},${passphrase}` })
  for (const known of [
    'v1.2ff87bd0.8lzEYYGe6tlDzapMlKFjhW64_zzfhIcCuqE2SLiZgdE3q6g3SLRNm1VeBQ',
    'v1.740e4785.luHc5AzjJGHa_WcBuvDZkHHwEFguzVj2yIf3eSRIVfOvUlVJ4eTHgnA0Tg'
  ]) { assert.equal(unseal(ring, known, 'mcpServers/x'), 'sealed long ago') }
  assert.ok(!inspect(ring, { depth: 9, showHidden: true }).includes('abab'), 'keys do not print')
  for (const bad of ['short', '0123456789abcde', `${HEX},short`, 'changeme,please']) {
    await assert.rejects(
      openKeyRing({ dataDir: nowhere, encryptionKey: bad }),
      (error: Error) =>
        error.message.includes('openssl rand -hex 32') &&
        error.message.includes(bad.startsWith(HEX) ? 'Key 2' : 'Key 1') &&
        !error.message.includes('short,') &&
        !error.message.includes('changeme') &&
        !error.message.includes('abab')
    )
  }
  await assert.rejects(openKeyRing({ dataDir: nowhere, encryptionKey: ' , ' }), /contains no key.*openssl rand -hex 32/)
})

void test('sealing: any text opens at its place, and nowhere else', async () => {
  const ring = await openKeyRing({ dataDir: nowhere, encryptionKey: HEX })
  fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.string(), fc.string(), (text, place, elsewhere) => {
    const sealed = seal(ring, text, place)
    assert.match(sealed, /^v1\.[0-9a-f]{8}\.[\w-]+$/)
    assert.equal(unseal(ring, sealed, place), text)
    assert.notEqual(seal(ring, text, place), sealed, 'a nonce of its own each time')
    if (elsewhere !== place) assert.throws(() => unseal(ring, sealed, elsewhere), /belongs elsewhere/)
  }), { seed })
})

void test('sealing: a text that was changed anywhere is refused, and the sentence holds nothing of it', async () => {
  const ring = await openKeyRing({ dataDir: nowhere, encryptionKey: `${HEX},${OTHER}` })
  // Each length has other spare bits behind its last byte.
  for (const text of ['hunter22hunter22', 'hunter22hunter22+', 'hunter22hunter22++', '']) {
    const sealed = seal(ring, text, 'mcpServers/a')
    const refused = (changed: string): void => {
      assert.throws(
        () => unseal(ring, changed, 'mcpServers/a'),
        (error: Error) =>
          /[.]$/.test(error.message) && error.message.includes('"mcpServers/a"') && !error.message.includes('hunter') &&
          !error.message.includes(sealed.slice(12, 24)),
        changed
      )
    }
    for (let at = 0; at < sealed.length; at++) {
      for (const other of 'AQgw-_09af.= \n') if (other !== sealed[at]) refused(sealed.slice(0, at) + other + sealed.slice(at + 1))
      const last = sealed.charCodeAt(at)
      for (const bit of [1, 2, 4]) refused(sealed.slice(0, at) + String.fromCharCode(last ^ bit) + sealed.slice(at + 1))
      refused(sealed.slice(0, at) + sealed.slice(at + 1))
      refused(sealed.slice(0, at))
    }
    for (const end of ['=', 'A', '\n', '.']) refused(sealed + end)
    // The id of the other key at hand does not make it open.
    refused(sealed.replace(keyIdOf(sealed), keyIdOf(await sealedBy(OTHER))))
  }
})

void test('rotation: the first key seals, all open, and what an older one sealed is outdated', async () => {
  const [one, two, both] = [await withKey(HEX), await withKey(OTHER), await withKey(`${OTHER},${HEX}`)]
  const value = { env: { TOKEN: 'the-secret-itself' } }
  const old = one.encryptSecrets(value, 'p')
  const sealed = old.sealed ?? assert.fail()
  assert.equal(one.isSealedWithFormerKey(sealed), false)
  assert.deepEqual(both.decryptSecrets(old.value, sealed, 'p'), value)
  assert.equal(both.isSealedWithFormerKey(sealed), true)
  const anew = both.encryptSecrets(both.decryptSecrets(old.value, sealed, 'p'), 'p')
  assert.equal(both.isSealedWithFormerKey(anew.sealed ?? assert.fail()), false)
  assert.deepEqual(two.decryptSecrets(anew.value, anew.sealed, 'p'), value, 'then the old key can go')
  assert.throws(
    () => two.decryptSecrets(old.value, sealed, 'mcpServers/x'),
    (error: Error) =>
      error.message.includes(`encrypted with key ${keyIdOf(sealed)}, which is neither in ENCRYPTION_KEY`) &&
      error.message.includes('"mcpServers/x"') &&
      !error.message.includes('secret-itself')
  )
  assert.equal(two.isSealedWithFormerKey(sealed), false, 'what cannot be opened cannot be sealed anew, and must stay')
  // Replicas that go on meanwhile, as SECURITY.md says: at each step, each opens what those of the step before and after seal.
  const steps = [one, await withKey(`${HEX},${OTHER}`), both, two]
  for (const [at, step] of steps.entries()) {
    for (const other of steps.slice(at, at + 2)) {
      for (const [from, to] of [[step, other], [other, step]] as const) {
        const hidden = from.encryptSecrets(value, 'p')
        assert.deepEqual(to.decryptSecrets(hidden.value, hidden.sealed, 'p'), value, `step ${at}`)
      }
    }
  }
})

void test('rotation: what the log says of it, with the right number', async () => {
  const cases: Array<[counts: number[], anew: number, said: RegExp[]]> = [
    [[2, 0], 2, [/: secrets encrypted with former keys are being/, /: 2 secrets were re-encrypted with the first key\. No stored secret/]],
    [[1, 0], 1, [/are being re-encrypted/, /: 1 secret was re-encrypted with the first key\. No stored secret/]],
    [[1, 1], 0, [/are being re-encrypted/, /: 0 secrets were re-encrypted; 1 still uses a former key: .*Keep the former keys/]],
    [[2, 2], 0, [/are being re-encrypted/, /: 0 secrets were re-encrypted; 2 still use a former key: .*Keep the former keys/]],
    [[0], 0, []],
    [[], 0, [/could not be re-encrypted \(away\)\. Keep the former keys\. The next start tries again/]]
  ]
  for (const [counts, anew, expected] of cases) {
    const said: string[] = []
    const left = [...counts]
    const say = (sentence: unknown): void => { said.push(String(sentence)) }
    await rotateEncryptionKey({
      countOutdatedSeals: async () => ({ former: left.shift() ?? await Promise.reject(new StorageError('away', false)), locked: [] }),
      resealAll: async () => ({ anew })
    }, { info: say, warn: say }, new AbortController().signal)
    assert.equal(said.length, expected.length, said.join('\n'))
    for (const [at, pattern] of expected.entries()) assert.match(said[at] ?? '', pattern)
  }
})

void test('key file: made by the first secret, private, and the same at the next start', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'a', 'data')
  const path = join(dataDir, 'encryption.key')
  const vault = await openVault({ dataDir })
  const early = await openVault({ dataDir })
  assert.deepEqual(vault.encryptSecrets({ command: 'node', env: {} }, 'p'), { value: { command: 'node', env: {} }, sealed: null })
  assert.deepEqual(vault.decryptSecrets({ env: { A: 'b' } }, null, 'p'), { env: { A: 'b' } })
  assert.equal(vault.isSealedWithFormerKey(await sealedBy(HEX)), false)
  assert.throws(() => vault.decryptSecrets({}, 'v1.00000000.' + 'A'.repeat(40), 'p'), /encrypted with key 00000000/)
  assert.equal(existsSync(dataDir), false, 'nothing to seal, nothing made')

  const value = { env: { TOKEN: 'x' } }
  const hidden = vault.encryptSecrets(value, 'p')
  assert.deepEqual([await modeOf(path), await modeOf(dataDir)], [0o600, 0o700])
  assert.deepEqual(await readdir(dataDir), ['encryption.key'])
  assert.match(await readFile(path, 'utf8'), /^[0-9a-f]{64}\n$/)
  assert.deepEqual(vault.decryptSecrets(hidden.value, hidden.sealed, 'p'), value)
  assert.deepEqual(early.decryptSecrets(hidden.value, hidden.sealed, 'p'), value, 'a process that was there before the file finds it')
  const before = await readFile(path, 'utf8')
  const later = await openVault({ dataDir })
  assert.equal(later.isSealedWithFormerKey(hidden.sealed ?? assert.fail()), false)
  assert.deepEqual(later.decryptSecrets(hidden.value, later.encryptSecrets(value, 'p').sealed, 'p'), value)
  assert.equal(await readFile(path, 'utf8'), before)

  // From the file to the environment: with the same key nothing changes, with another one it is a rotation.
  const same = await openVault({ dataDir, encryptionKey: before.trim() })
  assert.equal(same.isSealedWithFormerKey(hidden.sealed ?? assert.fail()), false)
  const moved = await openVault({ dataDir, encryptionKey: HEX })
  assert.deepEqual(moved.decryptSecrets(hidden.value, hidden.sealed, 'p'), value)
  assert.equal(moved.isSealedWithFormerKey(hidden.sealed ?? assert.fail()), true)
  assert.equal(keyIdOf(moved.encryptSecrets(value, 'p').sealed), keyIdOf(await sealedBy(HEX)))
})

void test('key file: processes that start at once have one key', async (t) => {
  const dataDir = await temporaryFolder(t)
  const script = `
    const { openVault } = await import(${JSON.stringify(new URL('../../../plugins/base/secrets/vault.ts', import.meta.url).href)})
    const vault = await openVault({ dataDir: ${JSON.stringify(dataDir)} })
    console.log('ready')
    process.stdin.once('data', () => {
      console.log(JSON.stringify(vault.encryptSecrets({ env: { TOKEN: String(process.pid) } }, 'p')))
      process.exit()
    })`
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  )
  t.after(() => { for (const child of children) child.kill('SIGKILL') })
  const lines = children.map(({ stdout }) => createInterface(stdout)[Symbol.asyncIterator]())
  for (const line of lines) assert.equal((await line.next()).value, 'ready')
  for (const { stdin } of children) stdin.write('go')
  const vault = await openVault({ dataDir })
  for (const [at, line] of lines.entries()) {
    const { value, sealed } = JSON.parse(String((await line.next()).value)) as { value: unknown, sealed: string }
    assert.deepEqual(vault.decryptSecrets(value, sealed, 'p'), { env: { TOKEN: String(children[at]?.pid) } })
  }
  await Promise.all(children.map(async (child) => { if (child.exitCode === null) await once(child, 'exit') }))
  assert.deepEqual(await readdir(dataDir), ['encryption.key'])
})

void test('key file: one that cannot be used is refused with a sentence, and stays', async (t) => {
  const dataDir = await temporaryFolder(t)
  const path = join(dataDir, 'encryption.key')
  for (const [content, mode, word] of [
    ['', 0o600, 'is empty'],
    ['\n', 0o600, 'is empty'],
    ['secret-garbage', 0o600, '64 hexadecimal digits'],
    [HEX.slice(1), 0o600, '64 hexadecimal digits'],
    [HEX + HEX, 0o600, '64 hexadecimal digits'],
    ['a'.repeat(5_000), 0o600, '64 hexadecimal digits'],
    [HEX, 0o640, 'chmod 600'],
    [HEX, 0o604, 'chmod 600']
  ] as const) {
    const opened = await openVault({ dataDir })
    await writeFile(path, content)
    await chmod(path, mode)
    const sentence = (error: Error): boolean =>
      error.message.includes(path) && error.message.includes(word) && !error.message.includes('garbage') && !error.message.includes('abab')
    await assert.rejects(openVault({ dataDir }), sentence)
    await assert.rejects(openVault({ dataDir, encryptionKey: OTHER }), sentence)
    assert.throws(() => opened.encryptSecrets({ env: { TOKEN: 'x' } }, 'p'), sentence)
    assert.equal(await readFile(path, 'utf8'), content)
    assert.equal(await modeOf(path), mode)
    await rm(path)
  }
  await mkdir(path)
  await assert.rejects(openVault({ dataDir }), /is not a regular file/)
  await rm(path, { recursive: true })
  // Where no key can be made a secret is refused, in words that a client may read: without a path.
  const file = join(dataDir, 'file')
  await writeFile(file, '')
  for (const folder of [file, join(file, 'deeper')]) {
    const vault = await openVault({ dataDir: folder })
    assert.deepEqual(vault.encryptSecrets({ command: 'node' }, 'p').sealed, null)
    assert.throws(
      () => vault.encryptSecrets({ env: { TOKEN: 'x' } }, 'p'),
      (error) => error instanceof StorageError && error.message.includes('set ENCRYPTION_KEY') && !error.message.includes(dataDir)
    )
  }
  assert.deepEqual(await readdir(dataDir), ['file'])
})

/** Keys of configs, and such as break careless code. */
const memberName = fc.oneof(
  fc.constantFrom(
    'env', 'headers', 'args', 'url', 'dbUrl', 'proxy', 'oauth', 'apiKey', 'clientSecret', 'token', 'value', 'openapi',
    'schema', 'tools', 'description', '__proto__', 'constructor', 'toString', '0', '1', 'length', ''
  ),
  fc.string()
)
const word = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    MASK,
    `${MASK}abcd`,
    `--key=${MASK}`,
    '--token',
    '--api-key=aaaaaaaaaaaaaaaa',
    '-H',
    'Authorization: Bearer abcdefghijklm',
    'https://user:pa:ss@host/x?key=abcdefghijklmnop&plain#f',
    `https://${MASK}@host/?a=${MASK}`,
    'postgres://u:p@one:1,two:2/db',
    'a=b=c=d',
    '{"apiKey":"xyz"}',
    '\ud800',
    '\u0000'
  )
)
const { tree } = fc.letrec<{ tree: unknown; leaf: unknown }>((tie) => ({
  leaf: fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null), fc.double({ noNaN: true, noDefaultInfinity: true })),
  tree: fc.oneof({ depthSize: 'small', withCrossShrink: true }, tie('leaf'), fc.array(tie('tree'), { maxLength: 5 }),
    fc.dictionary(memberName, tie('tree'), { maxKeys: 6 }))
}))

void test('vault: what is revealed is what was hidden, member for member, in its order', async () => {
  const vault = await withKey()
  let sealed = 0
  fc.assert(fc.property(fc.dictionary(memberName, tree, { maxKeys: 8 }), (made) => {
    const value = stored(made)
    const text = JSON.stringify(value)
    const hidden = vault.encryptSecrets(value, 'mcpServers/x')
    assert.equal(JSON.stringify(value), text, 'what is hidden is not changed')
    const shown = stored(hidden.value)
    const revealed = vault.decryptSecrets(shown, hidden.sealed, 'mcpServers/x')
    assert.deepEqual(revealed, value)
    assert.equal(JSON.stringify(revealed), text)
    assert.deepEqual(shown, stored(hidden.value), 'nor is what is revealed')
    assert.deepEqual(hidden.value, maskConfig(value), 'a table shows what the API shows')
    if (hidden.sealed !== null) {
      sealed++
      const { sealed: text } = hidden
      assert.throws(() => vault.decryptSecrets(shown, text, 'mcpServers/y'), /belongs elsewhere/)
    }
  }), { seed, numRuns: 1_000 })
  assert.ok(sealed > 100, `${sealed} of them had secrets`)
  for (const value of ['text', 7, null, ['token']]) assert.deepEqual(vault.encryptSecrets(value, 'p'), { value, sealed: null })
})

/** Every place where SECURITY says that a secret may stand. */
const configWith = (next: () => string, query: () => string): Record<string, unknown> => ({
  command: 'npx',
  args: [
    '-y', 'some-server', '--api-key', next(), `--token=${next()}`, '--client-secret', next(), `--db-password=${next()}`,
    '--verbose', `API_KEY=${next()}`, '-e', `GITHUB_TOKEN=${next()}`, `--env=MY_SECRET=${next()}`, '--header',
    `X-Anything: ${next()}`, '-H', `Authorization: Bearer ${next()}`, `--header=X-Other:${next()}`,
    `Authorization: ${next()}`, `postgresql://user:${next()}@host/db`, `--db=postgres://user:${next()}@host/db`,
    `https://host/mcp?key=${query()}`, JSON.stringify({ apiKey: next() })
  ],
  env: { ANYTHING: next(), __proto: next(), constructor: next() },
  headers: { Authorization: `Bearer ${next()}`, 'X-Anything': next() },
  url: `https://user:${next()}@host.example/mcp?api_key=${query()}&${query()}`,
  proxy: { url: `http://${query()}:${next()}@proxy.example:3128` },
  oauth: {
    clientId: 'me',
    clientSecret: next(),
    accessToken: next(),
    refreshToken: next(),
    codeVerifier: next(),
    tokenEndpoint: `https://user:${next()}@idp.example/token`,
    deeper: [{ secrets: [next(), next()] }]
  },
  openapi: {
    url: `https://host.example/v1?token=${query()}`,
    security: {
      type: 'apiKey',
      apiKey: { name: 'X-Api-Key', in: 'header', value: next() },
      http: { scheme: 'basic', credentials: next() },
      oauth2: { token: next(), tokenUrl: `https://u:${next()}@idp.example` }
    }
  },
  routing: { bearerAuthKey: next() },
  smartRouting: {
    llmProviderApiKey: next(),
    openaiApiKey: next(),
    dbUrl: `postgres://user:${next()}@one:5432,two:5432/db`,
    llmProviderBaseUrl: `https://api.example/v1?key=${query()}`
  },
  mcpRouter: { apiKey: next() },
  install: { npmRegistry: `https://user:${next()}@npm.example/` },
  auth: { betterAuth: { secret: next(), providers: { oidc: { clientSecret: next() } } } }
})

void test('vault: no secret is left in what a table shows, wherever it stood', async () => {
  const vault = await withKey()
  const odd = fc.array(fc.constantFrom(...'ABCDEFGHJKLM23456789@:/?#%&=+ $é😀'), { minLength: 6, maxLength: 40 })
    .map((each) => `Z${each.join('')}`)
  fc.assert(fc.property(fc.infiniteStream(odd), (stream) => {
    const secrets: string[] = []
    const next = (): string => {
      const secret = String(stream.next().value)
      secrets.push(secret)
      return secret
    }
    const config = configWith(next, () => {
      const secret = encodeURIComponent(next())
      secrets.push(secret)
      return secret
    })
    const hidden = vault.encryptSecrets(config, 'systemConfig')
    const shown = JSON.stringify(hidden.value)
    for (const secret of secrets) assert.ok(!shown.includes(JSON.stringify(secret).slice(1, -1)), secret)
    assert.deepEqual(vault.decryptSecrets(stored(hidden.value), hidden.sealed, 'systemConfig'), config)
  }), { seed, numRuns: 300 })
})

void test('vault: addresses that hold more than a place are sealed, also where all else is plain', async () => {
  const vault = await withKey(HEX)
  const value = {
    install: {
      npmRegistry: 'https://npm.example.com/PATHTOKEN0123456789abcdef/',
      pythonIndexUrl: 'https://pypi.org/simple',
      baseUrl: 'https://hub.example.com'
    },
    nameSeparator: '::'
  }
  const { value: shown, sealed } = vault.encryptSecrets(value, 'systemConfig', new Set(['install', 'nameSeparator']))
  assert.deepEqual(shown, { install: { ...value.install, npmRegistry: '••••def/' }, nameSeparator: '::' })
  assert.deepEqual(vault.decryptSecrets(shown, sealed, 'systemConfig'), value)
})

void test('masks: what is no secret is shown as it is', async () => {
  const open = {
    type: 'streamable-http',
    command: 'npx',
    args: [
      '-y', '--port', '3000', '--verbose', '/path/to:file', 'C:\\x', 'a=b', '--mode=fast', '--no-auth', '--other', 7,
      'https://host/path/@scope'
    ],
    url: 'https://host.example:8443/a/@b/mcp#part',
    description: 'see https://host.example, or write to me@host.example',
    owner: 'admin',
    passthroughHeaders: ['Authorization', 'X-Api-Key'],
    oauth: {
      clientId: 'me',
      scopes: ['a'],
      authorizationEndpoint: 'https://idp.example/authorize',
      tokenEndpoint: 'https://idp.example/token',
      tokenEndpointAuthMethod: 'none',
      redirectUri: 'http://127.0.0.1/callback'
    },
    openapi: {
      url: 'https://host.example',
      schema: { components: { token: 'text', headers: { a: 'b' } } },
      security: { type: 'apiKey', apiKey: { name: 'X-Api-Key', in: 'header' } }
    },
    tools: { get_token: { enabled: false, description: 'https://user@host' } },
    enableKeepAlive: true,
    routing: { bearerAuthHeaderName: 'X-Key', enableBearerAuth: true, jsonBodyLimit: '1mb' },
    toolResultCompression: { minTokens: 2000, maxOutputTokens: 1200 },
    oauthServer: { accessTokenLifetime: 3600, requireClientSecret: true },
    tokenHash: 'abc',
    tokenMask: 'abc',
    smartRouting: { embeddingModel: 'm', llmProviderBaseUrl: 'https://api.example/v1' },
    empty: { env: {}, headers: null, apiKey: null }
  }
  assert.deepEqual(maskConfig(open), open)
})

void test('masks: of an OpenAPI document the addresses are looked at, and nothing else', async () => {
  const described = (server: string, token: string): object => ({
    openapi: {
      schema: {
        servers: [{ url: server }],
        paths: { '/a': { servers: [{ url: server }], get: { description: 'https://u:p@h/?key=value' } } },
        components: { securitySchemes: { o: { flows: { password: { tokenUrl: token, scopes: {} } } } } }
      }
    }
  })
  assert.deepEqual(
    maskConfig(described('https://u:password1@h.example/v1', 'https://h.example/token?key=0123456789abcdef') as Record<string, unknown>),
    described(`https://${MASK}@h.example/v1`, `https://h.example/token?key=${MASK}cdef`)
  )
  const harmless = described('https://h.example/v1', 'https://h.example/token') as { openapi: { schema: object } }
  assert.equal((maskConfig(harmless).openapi as typeof harmless.openapi).schema, harmless.openapi.schema, 'not even copied')
  assert.deepEqual(maskConfig({ openapi: { schema: { swagger: '2.0', host: 'u:password1@h.example' } } }), {
    openapi: { schema: { swagger: '2.0', host: `${MASK}mple` } }
  })
  for (const [text, shown] of [
    ['servers:\n  - url: https://u:password1@h.example/v1', `servers:\n  - url: https://${MASK}@h.example/v1`],
    [
      '{"servers":[{"url":"https://h.example/?key=0123456789abcdef"},{"url":"https://u:password1@b"}]}',
      `{"servers":[{"url":"https://h.example/?key=${MASK}cdef"},{"url":"https://${MASK}@b"}]}`
    ],
    [
      "tokenUrl: 'https://h.example/token?key=short'\ndescription: see https://h.example/?q=words",
      `tokenUrl: 'https://h.example/token?key=${MASK}'\ndescription: see https://h.example/?q=words`
    ]
  ]) { assert.deepEqual(maskConfig({ openapi: { schema: text } }), { openapi: { schema: shown } }) }
  const document =
    'openapi: 3.0.3\nservers:\n  - url: "https://user:password1@h.example/v1"\npaths:\n  /animals:\n    get:\n      description: ' +
    'Many animals at once\n'
  const redact = createConfigRedactor({ openapi: { schema: document } })
  assert.equal(redact('line 6: description: Many animals at once: no answer'),
    'line 6: description: Many animals at once: no answer', 'the words of a document are no secrets')
  for (const leak of ['https://user:password1@h.example/v1 is away', 'wrong password: password1']) {
    assert.ok(!redact(leak).includes('password1'), redact(leak))
  }
})

void test('masks: what names a user in an odd address is hidden whole where its place cannot be told', async () => {
  for (const url of [
    'http:user:password1@host/', 'http:\\\\user:password1@host/', ' https://user:password1@host/',
    'ht\ntps://user:password1@host', 'user:password1@host/db', 'https://user:pass@word1@host/', '//user:password1@host',
    `https://u:password1@$${'{HOST}'}/x`
  ]) {
    const shown = maskUrl(url)
    assert.ok(containsMask(shown) && !shown.includes('word1'), `${url}: ${shown}`)
  }
  assert.equal(maskUrl('https://user:password@host/mcp?key=0123456789abcdef&v=1#part'),
    `https://${MASK}@host/mcp?key=${MASK}cdef&v=${MASK}#part`)
  // What stands for a value that is to be filled in is none, also where a second look is taken at what was covered.
  for (const name of ['NAME', 'user_config.api_key']) assert.equal(mask(`$${'{'}${name}}`), `$${'{'}${name}}`)
  assert.notEqual(mask(`$${'{a.b}'}`), `$${'{a.b}'}`)
  const cover = (): string => `$${'{USER}'}`
  const covered = maskUrl('http://user:password@host:3128', cover)
  assert.equal(covered, `http://$${'{USER}'}@host:3128`)
  assert.equal(maskUrl(covered, (text) => text), covered)
})

void test('masks: arguments that hold more than one thing', async () => {
  const secret = '0123456789abcdef'
  const masked = `${MASK}cdef`
  for (const [args, shown] of [
    [['--bearer', secret], ['--bearer', masked]],
    [['--jwt', secret, '--pat', secret], ['--jwt', masked, '--pat', masked]],
    [
      ['--pass', secret, '--passphrase', secret, `DB_PASS=${secret}`, '--bypass', 'local', '--compass', 'north'],
      ['--pass', masked, '--passphrase', masked, `DB_PASS=${masked}`, '--bypass', 'local', '--compass', 'north']
    ],
    [
      ['--max-tokens', '4096', '--tokenizer', 'o200k_base', '--max-tokens=100', '--tokens', secret],
      ['--max-tokens', '4096', '--tokenizer', 'o200k_base', '--max-tokens=100', '--tokens', masked]
    ],
    [['--user', `me:${secret}`], ['--user', `me:${masked}`]],
    [['-u', 'me'], ['-u', 'me']],
    [[`Bearer ${secret}`], [`Bearer ${masked}`]],
    [[`host=h password=${secret} user=u`], [`host=h password=${masked} user=u`]],
    [['--connection-string', `Server=x;Password=${secret};`], ['--connection-string', `Server=x;Password=${masked};`]],
    [['-c', `export TOKEN=${secret}; run`], ['-c', `export TOKEN=${masked}; run`]],
    [
      ['-lc', `curl -H 'Authorization: Bearer ${secret}' https://h/`],
      ['-lc', `curl -H 'Authorization: Bearer ${MASK}def' https://h/`]
    ],
    [['-c', `run --api-key ${secret} --port 1`], ['-c', `run --api-key ${masked} --port 1`]],
    [['--config', `[{"apiKey":"${secret}"}]`], ['--config', `${MASK}f"}]`]],
    [['-c', 'echo two words; ls'], ['-c', 'echo two words; ls']]
  ]) { assert.deepEqual(maskConfig({ args }), { args: shown }) }
  // What a JSON column of a database would not take is not in a mask: half a character, a NUL.
  for (const secret of ['aaaaaaaaaaaaaaaaa😀'.slice(0, -1), 'aaaaaaaaaaaaaaa\u0000', 'aaaaaaaaaaaaa😀a']) assert.equal(mask(secret), MASK)
  // Long arguments cost no more than their length.
  assert.equal(maskConfig({ args: ['a='.repeat(500_000), 'a '.repeat(200_000)] }).args instanceof Array, true)
})

void test('masks: what looks like a token, in arguments', async () => {
  const tokens = [
    'sk-abcdefghijklmnop', 'sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx', 'sk-proj-Zk3_9aBcQ2LmN8pRtU', 'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
    'xoxb-123456789012-1234567890123-AbCdEf', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.abc', '3fa85f64-5717-4562-b3fc-2c963f66afa6',
    '0123456789abcdefghij0', 'AB3D-9F2K-77QX-11ZZ-22', 'hf_abcdefghijklmnopqrstuvwxyzABCD', 'AKIAIOSFODNN7EXAMPLE', 'qwrtzpsdfghjklxcvbnmqwrt',
    'KdJfHgQWeRtYuIoPaSdF', 'tvly-dev-AbC1dEf2GhI3jKl4'
  ]
  for (const token of tokens) {
    const config = { args: ['-y', token, `--id=${token}`, `https://h.example/s/${token}/mcp`] }
    const shown = maskConfig(config)
    assert.ok(!JSON.stringify(shown).includes(token), JSON.stringify(shown))
    assert.deepEqual(unmask(shown, config, shown), { value: config, unknown: [] })
  }
  const words = [
    'mcp-server-kubernetes-k8s', 'modelcontextprotocolserver', 'mcp-server-filesystem-2', 'skyvern-mcp-server', 'sk-learn-mcp-server',
    'npm-registry-mcp-server', 'pkg-config-wrapper-tool', 'getUserByIdAndNameAndCity', 'internationalizationserver',
    '--enable-http2-multiplexing', 'text-embedding-3-large-v2', 'postgresql16-replication-server', 'MY_APPLICATION_ENVIRONMENT',
    'mcp-server-2026-11-24-nightly', 'kubernetes_cluster_admin_v1beta1', '@modelcontextprotocol/server-everything@2026.8.31'
  ]
  for (const word of words) {
    const config = { args: ['-y', word, `--name=${word}`, `https://h.example/${word}/mcp`] }
    assert.deepEqual(maskConfig(config), config)
  }
  const login = { oauth: { clientId: '0oa1b2c3d4e5f6g7h8i9', tokenEndpoint: 'https://login.example/3fa85f64-5717-4562-b3fc-2c963f66afa6/token' } }
  assert.deepEqual(maskConfig(login), login, 'names of clients and tenants are no secrets')
  const long = 'sk-'.concat('a'.repeat(500_000), '!')
  assert.deepEqual(maskConfig({ args: [long] }).args, [long])
  // Who manages a server sees the path of its address (SECURITY T24).
  const address = { url: 'https://h.example/s/3fa85f64-5717-4562-b3fc-2c963f66afa6/mcp' }
  assert.deepEqual(maskConfig(address), address)
})

void test('vault: whoever edits the table by hand is believed', async () => {
  const vault = await withKey()
  const config = {
    url: 'https://host/mcp?key=0123456789abcdef',
    args: ['--token', 'argument-secret'],
    env: { ONE: 'first-secret-1', TWO: 'second-secret-2', PUBLIC: MASK },
    oauth: { clientSecret: 'third-secret-3' }
  }
  const { value, sealed } = vault.encryptSecrets(config, 'p')
  const reveal = (edited: unknown): unknown => vault.decryptSecrets(edited, sealed, 'p')
  assert.deepEqual(reveal(value), config)
  const shown = stored(value)
  assert.deepEqual(reveal({ ...shown, env: { ...shown.env, ONE: 'a new one' } }),
    { ...config, env: { ...config.env, ONE: 'a new one' } }, "a value in a secret's place wins")
  assert.deepEqual(
    reveal({ ...shown, url: 'https://other/mcp?key=••••cdef' }),
    { ...config, url: 'https://other/mcp?key=••••cdef' },
    'also one that still has a mask in it: it is not sent elsewhere'
  )
  assert.deepEqual(reveal({ ...shown, env: { TWO: shown.env.TWO } }), { ...config, env: { TWO: 'second-secret-2' } },
    'a secret whose place is gone is dropped')
  assert.deepEqual(reveal({ ...shown, env: { THREE: shown.env.ONE } }), { ...config, env: { THREE: shown.env.ONE } },
    'a mask under another name stands for nothing')
  assert.deepEqual(reveal({ ...shown, args: ['--token'] }), { ...config, args: ['--token'] })
  for (const [env, oauth] of [
    [null, 'text'], ['text', []], [[], 7]
  ]) { assert.deepEqual(reveal({ ...shown, env, oauth }), { ...config, env, oauth }) }
  assert.deepEqual(reveal({}), {})
  assert.deepEqual(reveal(JSON.parse('{"__proto__":{"env":{"ONE":"••••et-1"}}}')), JSON.parse('{"__proto__":{"env":{"ONE":"••••et-1"}}}'))
  assert.equal(reveal('text'), 'text')
})

test('secrets of a config and what looks like a credential are masked in escapes of JSON, too', async () => {
  const redact = createConfigRedactor({ env: { TOKEN: 'a/secret"of-a-server' } })
  for (const written of ['a\\/secret\\"of-a-server', '\\u0061/secret\\u0022of-a-server', 'a%2Fsecret%22of-a-server', '\\\\u0061/secret\\\\\\"of-a-server']) {
    assert.match(redact(`{"x":"${written}","y":"\\u0062"}`), /^\{"x":"••••[^"]{0,4}","y":"\\u0062"\}$/, written)
  }
  assert.equal(maskLikelyCredentials('{"u":"https:\\/\\/me:pass@host\\/x","b":"Be\\u0061rer abcdefgh12345678","q":"\\u003fkey=abc"}').match(/pass|efgh|=abc/), null)
  for (const kept of ['{"u":"https:\\/\\/host\\/x","b":"\\u0041\\u005c\\u0022"}', 'C:\\\\u0041']) assert.equal(maskLikelyCredentials(kept), kept)
})
