// The ports where their data comes from a settings file: its entries, edits of it, what a database takes from it, and keys that change.
import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { sql } from 'drizzle-orm'
import postgres from 'postgres'
import { test } from 'tap'
import type { OAuthClient } from '../../db/ports/clients.ts'
import { endStuckConnections } from '../../db/postgres/connection/stuck.ts'
import { exportDocument, importDocument } from '../../db/postgres/settings/transfer.ts'
import { StorageError, type Vault } from '../../db/store.ts'
import { openVault } from '../../plugins/base/secrets/vault.ts'
import { activity, authorization, client, consent, hashOf, issued, race, soon } from '../contracts/ports-data.ts'
import { at } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { assertNoCanary, canary } from '../fakes/canaries.ts'
import { vault } from '../fakes/replica.ts'
import { driverOf, openPorts as open } from '../fakes/store-ports.ts'
import { until } from '../helpers/hub.ts'

// ---- the settings file ----------------------------------------------------------------------------

const document = async (path: string): Promise<{ oauthTokens: Array<Record<string, unknown>>; [name: string]: unknown }> =>
  JSON.parse(await readFile(path, 'utf8'))

void test(
  'file: tokens stand under oauthTokens as hashes; foreign entries stay; readers keep their version, and are told nothing',
  async (t) => {
    const foreign = [{ accessToken: 'plain', refreshToken: 'of another program', clientId: 'c1' }, 'odd', null]
    const {
      path,
      storage: { store, tokens },
      another
    } = await open(t, undefined, { mcpServers: { a: { command: 'node' } }, oauthTokens: foreign, 'x-more': 1 })
    const snapshot = await store.load()
    let told = 0
    store.onChange(() => { told++ })
    const secret = canary('token')
    const [own, access, refresh] = [authorization(), issued('access', { hash: hashOf(secret) }), issued('refresh')]
    await tokens.put(own, [access, refresh])
    await tokens.rotate(refresh.hash, [issued('refresh')])
    const { oauthTokens, ...rest } = await document(path)
    assert.deepEqual(rest, { mcpServers: { a: { command: 'node' } }, 'x-more': 1 })
    assert.deepEqual(oauthTokens.slice(0, 3), foreign)
    assert.deepEqual(oauthTokens[3]?.value, { ...own, ...access })
    assert.deepEqual(oauthTokens[4]?.value, { ...own, ...refresh, used: true })
    assertNoCanary([await readFile(path, 'utf8')], 'the settings file')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.equal(await store.load(), snapshot)
    assert.equal(
      (await store.commit([{ entity: 'mcpServers', key: 'b', value: { command: 'node' } }], snapshot.version)).version,
      snapshot.version + 1
    )
    await tokens.revoke({ username: 'ann' })
    assert.deepEqual((await document(path)).oauthTokens.slice(0, 3), foreign)
    assert.equal(told, 0)
    await store.close()
    await assert.rejects(tokens.put(own, [access]), StorageError)
    assert.deepEqual((await document(path)).mcpServers, { a: { command: 'node' }, b: { command: 'node' } })
    await (await another()).tokens.put(own, [issued('access')])
    assert.deepEqual((await document(path)).oauthTokens.slice(0, 3), foreign)
  }
)

void test('file: an edit can take tokens away, and brings none back', async (t) => {
  const { path, storage: { store, tokens } } = await open(t)
  const [first, second, access] = [issued('refresh'), issued('refresh'), issued('access')]
  await tokens.put(authorization(), [first])
  const before = await readFile(path, 'utf8')
  await tokens.rotate(first.hash, [second, access])
  // An editor that was open meanwhile, with something else changed, too.
  await writeFile(path, JSON.stringify({ ...JSON.parse(before), mcpServers: { edited: { command: 'node' } } }))
  await until(async () => (await store.load()).servers.has('edited'))
  assert.deepEqual([await tokens.find(first.hash), await tokens.find(second.hash)], [undefined, undefined])
  assert.equal(await tokens.rotate(first.hash, []), 'reused')
  const [kept, dropped] = [issued('access'), issued('access')]
  await tokens.put(authorization(), [kept])
  await tokens.put(authorization(), [dropped])
  const edited = await document(path)
  await writeFile(path, JSON.stringify({ ...edited, oauthTokens: edited.oauthTokens.filter(({ key }) => key !== dropped.hash) }))
  await until(async () => { await store.load(); return await tokens.find(dropped.hash) === undefined })
  assert.ok(await tokens.find(kept.hash))
})

void test('file: where tokens cannot be written, nothing is changed, and the reason is told', async (t) => {
  const { path, storage: { tokens } } = await open(t)
  const [own, access, refresh] = [authorization(), issued('access'), issued('refresh')]
  await tokens.put(own, [access, refresh])
  const good = await readFile(path, 'utf8')
  await writeFile(path, '{"cut off')
  const next = issued('refresh')
  await assert.rejects(
    tokens.rotate(refresh.hash, [next]),
    (error: Error) => error instanceof StorageError && error.message.includes('edited')
  )
  assert.deepEqual(await tokens.find(access.hash), { ...own, ...access })
  await writeFile(path, good)
  assert.equal(await tokens.find(next.hash), undefined)
  assert.equal(await tokens.rotate(refresh.hash, [next]), 'swapped')

  const odd = await open(t, undefined, { oauthTokens: { of: 'another kind' } })
  await assert.rejects(
    odd.storage.tokens.put(own, [access]),
    (error: Error) => error instanceof StorageError && error.message.includes('oauthTokens')
  )
  assert.equal(await odd.storage.tokens.find(access.hash), undefined)
  assert.deepEqual((await document(odd.path)).oauthTokens, { of: 'another kind' })
})

interface ClientDocument { oauthClients: unknown[], oauthConsents?: unknown[], oauthTokens?: unknown[] }
const clientDocument = async (path: string): Promise<ClientDocument> => JSON.parse(await readFile(path, 'utf8'))

/** Entries as MCPHub writes them: of an admin, and of a client that registered itself. */
const mcphubEntries = (): { admins: Record<string, unknown>, registered: Record<string, unknown> } => ({
  admins: {
    clientId: 'mcphub-1',
    clientSecret: canary('client-secret'),
    name: 'an app',
    redirectUris: ['https://app.example.com/callback'],
    grants: ['authorization_code'],
    scopes: ['read', 'mcp'],
    owner: 'admin',
    'x-note': { by: 'hand' }
  },
  registered: {
    clientId: 'mcphub-2',
    name: 'an agent',
    redirectUris: ['http://localhost/cb'],
    grants: ['authorization_code', 'refresh_token'],
    scopes: ['mcp'],
    owner: 'dynamic-registration',
    metadata: {
      application_type: 'native',
      client_uri: 'https://agent.example.com',
      token_endpoint_auth_method: 'none',
      contacts: ['a@example.com'],
      jwks_uri: 'https://agent.example.com/jwks'
    }
  }
})
/** Those entries as clients. */
const mcphubClients = ({ clientSecret }: Record<string, unknown>): { admins: OAuthClient, registered: OAuthClient } => ({
  admins: {
    clientId: 'mcphub-1',
    secretHash: hashOf(String(clientSecret)),
    name: 'an app',
    redirectUris: ['https://app.example.com/callback'],
    grantTypes: ['authorization_code'],
    scope: 'read mcp',
    origin: 'admin',
    createdAt: 0
  },
  registered: {
    clientId: 'mcphub-2',
    name: 'an agent',
    redirectUris: ['http://localhost/cb'],
    grantTypes: ['authorization_code', 'refresh_token'],
    tokenEndpointAuthMethod: 'none',
    scope: 'mcp',
    clientUri: 'https://agent.example.com',
    contacts: ['a@example.com'],
    applicationType: 'native',
    origin: 'registered',
    createdAt: 0
  }
})

void test(
  'file: clients of MCPHub count as they are; a plain secret becomes a hash when its entry is written; the rest of an entry stays',
  async (t) => {
    const { admins, registered } = mcphubEntries()
    const wanted = mcphubClients(admins)
    const foreign = ['odd', { clientId: 7 }, null]
    const bare = { clientId: 'bare', clientSecret: canary('client-secret') }
    const again = { ...bare, name: 'the same id again' }
    const { path, storage: { clients, store } } = await open(t, undefined, {
      mcpServers: { a: { command: 'node' } },
      oauthClients: [admins, ...foreign, registered, bare, again],
      'x-more': 1
    })
    assert.deepEqual(await clients.find('mcphub-1'), wanted.admins)
    assert.deepEqual(await clients.find('mcphub-2'), wanted.registered, 'its age is not known: it is not idle')
    const { name, redirectUris, grantTypes, scope, secretHash } = await clients.find('bare') ?? client()
    assert.deepEqual(
      [name, redirectUris, grantTypes, scope, secretHash],
      ['bare', [], ['authorization_code', 'refresh_token'], 'mcp profile', hashOf(bare.clientSecret)]
    )
    const snapshot = await store.load()
    const own = client()
    await clients.create(own)
    assert.deepEqual((await clientDocument(path)).oauthClients.slice(0, 7), [admins, ...foreign, registered, bare, again])

    await clients.replace('mcphub-1', (former) => ({ ...former, name: 'renamed' }))
    await clients.replace('mcphub-2', ({ clientUri, ...former }) => former)
    const { clientSecret, ...kept } = admins
    const { oauthClients } = await clientDocument(path)
    assert.deepEqual(oauthClients.slice(0, 5), [
      { ...kept, name: 'renamed', secretHash: hashOf(String(clientSecret)), origin: 'admin' },
      ...foreign,
      {
        ...registered,
        tokenEndpointAuthMethod: 'none',
        contacts: ['a@example.com'],
        applicationType: 'native',
        origin: 'registered'
      }
    ])
    assert.deepEqual(await clients.find('mcphub-1'), { ...wanted.admins, name: 'renamed' })
    const { clientUri, ...without } = wanted.registered
    assert.deepEqual(await clients.find('mcphub-2'), without, 'a member that was taken away does not come back from the metadata')
    await clients.remove('bare')
    assert.equal(await clients.find('bare'), undefined, 'not the second one of its id')
    for (const each of [path, `${path}.bak`]) assertNoCanary([await readFile(each, 'utf8')], each)
    assert.equal(await store.load(), snapshot, 'readers of the settings keep their version')
  }
)

void test('file: an edit adds, changes and removes clients; of consents it only removes some', async (t) => {
  const { path, storage: { clients, consents, store } } = await open(t)
  const [kept, dropped] = [client(), client()]
  const added = { clientId: 'added', clientSecret: 'by hand', name: 'n', redirectUris: ['https://x/'] }
  for (const each of [kept, dropped]) await clients.create(each)
  const [withdrawn, stays] = [consent(), consent()]
  for (const each of [withdrawn, stays]) await consents.put(each)
  const edited = await clientDocument(path)
  assert.equal(edited.oauthConsents?.length, 2)
  await consents.remove(withdrawn.username, withdrawn.clientId)
  await writeFile(path, JSON.stringify({
    ...edited,
    oauthClients: [{ ...edited.oauthClients[0] as object, name: 'edited' }, added],
    mcpServers: { edited: { command: 'node' } }
  }))
  await until(async () => (await store.load()).servers.has('edited'))
  assert.deepEqual(await clients.find(kept.clientId), { ...kept, name: 'edited' })
  assert.deepEqual(
    [await clients.find(dropped.clientId), (await clients.find('added'))?.secretHash],
    [undefined, hashOf('by hand')]
  )
  assert.equal(await consents.find(withdrawn.username, withdrawn.clientId), undefined, 'an old file brings back what was withdrawn')
  assert.deepEqual(await consents.find(stays.username, stays.clientId), stays)
  await consents.put(consent())
  assert.equal((await clientDocument(path)).oauthConsents?.length, 2)
  await writeFile(path, JSON.stringify({ oauthClients: [] }))
  await until(async () => { await store.load(); return await consents.find(stays.username, stays.clientId) === undefined })
  assert.deepEqual(await clients.list(), [])
})

void test(
  'file: a client goes in one write with all that it has; where that cannot be written, all of it stays',
  async (t) => {
    const { path, storage: { clients, consents, tokens } } = await open(t)
    const own = client()
    const [token, given] = [issued('refresh'), consent({ clientId: own.clientId })]
    await clients.create(own)
    await tokens.put(authorization({ clientId: own.clientId }), [token])
    await consents.put(given)
    const good = await readFile(path, 'utf8')
    await writeFile(path, '{"cut off')
    const isEdited = (error: Error): boolean => error instanceof StorageError && error.message.includes('edited')
    await assert.rejects(clients.remove(own.clientId), isEdited)
    await assert.rejects(clients.create(client()), isEdited)
    await assert.rejects(clients.replace(own.clientId, (former) => former), isEdited)
    await assert.rejects(consents.put(consent()), isEdited)
    await clients.touch(own.clientId, Date.now())
    assert.deepEqual(await clients.find(own.clientId), own)
    assert.deepEqual(await consents.list(given.username), [given])
    await writeFile(path, good)
    assert.ok(await tokens.find(token.hash))
    // The file as it is after each write: there is none with a part of it.
    const states = new Set<string>()
    const removal = { isDone: false }
    const watching = (async () => {
      while (!removal.isDone) {
        const { oauthClients, oauthConsents, oauthTokens } = await clientDocument(path)
        states.add([oauthClients, oauthConsents, oauthTokens].map((list) => list?.length).join())
      }
    })()
    assert.equal(await clients.remove(own.clientId), true)
    removal.isDone = true
    await watching
    const { oauthClients, oauthConsents, oauthTokens } = await clientDocument(path)
    assert.deepEqual([oauthClients, oauthConsents, oauthTokens], [[], [], []])
    assert.ok([...states].every((state) => state === '1,1,1' || state === '0,0,0'), [...states].join(' '))

    const odd = await open(t, undefined, { oauthClients: { of: 'another kind' }, oauthConsents: 1, oauthTokens: '' })
    const says = (section: string) => (error: Error): boolean => error instanceof StorageError && error.message.includes(`"${section}"`)
    await assert.rejects(odd.storage.clients.create(own), says('oauthClients'))
    await assert.rejects(odd.storage.consents.put(given), says('oauthConsents'))
    assert.deepEqual([await odd.storage.clients.list(), await odd.storage.consents.list(given.username)], [[], []])
    assert.deepEqual((await clientDocument(odd.path)).oauthClients, { of: 'another kind' })
    const half = await open(t, undefined, { oauthClients: [], oauthConsents: 1, oauthTokens: '' })
    await half.storage.clients.create(own)
    assert.equal(await half.storage.clients.remove(own.clientId), true, 'what cannot be read holds nothing of it')
  }
)

// ---- clients of a settings file in a database -----------------------------------------------------

void test('a database that begins with a settings file takes its clients, and gives them back', async (t) => {
  const { admins, registered } = mcphubEntries()
  const wanted = mcphubClients(admins)
  const foreign = { name: 'without an id' }
  const { url, query } = await database(t)
  const { storage, another } = await open(t, url, {
    mcpServers: { a: { command: 'node' } },
    oauthClients: [admins, foreign, registered, { ...registered, name: 'the same id again' }],
    oauthConsents: [entryOf('consent', consent()), 'odd']
  })
  assert.deepEqual(await storage.clients.list(), [wanted.admins, wanted.registered])
  assert.deepEqual(await query('SELECT count(*)::int AS n FROM records'), [{ n: 0 }], 'as with tokens: one may be withdrawn')
  assert.equal((await query("SELECT 1 FROM sections WHERE name = 'oauthClients'")).length, 1, 'the entry of another shape')
  const { clientSecret, ...kept } = admins
  const driver = await driverOf(t, url)
  assert.deepEqual((await exportDocument(driver, await vault()))?.document.oauthConsents, ['odd'])
  const exported = async (): Promise<unknown> => (await exportDocument(driver, await vault()))?.document.oauthClients
  const hashed = { ...kept, secretHash: hashOf(String(clientSecret)), origin: 'admin' }
  const own = { ...registered, tokenEndpointAuthMethod: 'none', clientUri: 'https://agent.example.com', contacts: ['a@example.com'] }
  assert.deepEqual(await exported(), [foreign, hashed, { ...own, applicationType: 'native', origin: 'registered' }])
  await storage.clients.replace('mcphub-1', (former) => ({ ...former, name: 'renamed' }))
  await storage.clients.remove('mcphub-2')
  await (await another()).store.close()
  assert.deepEqual(await exported(), [foreign, { ...hashed, name: 'renamed' }])

  // A settings file that replaces all replaces the clients, and those that it does not have lose what they had.
  const [gone, stays] = [{ token: issued('access'), id: randomUUID() }, { token: issued('access'), id: 'mcphub-1' }]
  await storage.clients.create(client({ clientId: gone.id }))
  for (const { token, id } of [gone, stays]) await storage.tokens.put(authorization({ clientId: id }), [token])
  await assert.rejects(importDocument(driver, await vault(), {}, false), /already contains settings/)
  await importDocument(driver, await vault(), { oauthClients: [admins] }, true)
  assert.deepEqual(await storage.clients.list(), [wanted.admins])
  assert.deepEqual(
    [await storage.tokens.find(gone.token.hash), (await storage.tokens.find(stays.token.hash))?.clientId],
    [undefined, 'mcphub-1']
  )
  await assert.rejects(
    importDocument(driver, await vault(), { oauthClients: [{ ...admins, clientSecret: '••••abcd' }] }, true),
    /mask.*clientSecret of oauthClients\/mcphub-1/
  )
  assert.deepEqual(await storage.clients.list(), [wanted.admins])

  // An account of another time does not revive the logins of that time.
  const ada = { username: 'ada', password: '$2b$04$former', createdAt: '2026-01-01T00:00:00.000Z' }
  const importUser = async (): Promise<unknown> => {
    await importDocument(driver, await vault(), { users: [ada] }, true)
    return at((await exportDocument(driver, await vault()))?.document, 'users', 0, 'restoredAt')
  }
  const mark = await importUser()
  assert.equal(typeof mark, 'string')
  assert.equal(await importUser(), mark, 'an account that is the same')
})

/** A record as it stands in a settings file. */
const entryOf = (key: string, value: object): object => ({ key, version: 'v', labels: [], at: 1, changedAt: 1, value })

/** A vault with these keys, as ENCRYPTION_KEY has them. */
const vaultWith = (encryptionKey: string) => async (): Promise<Vault> => await openVault({ dataDir: tmpdir(), encryptionKey })

void test('unknown members of clients are sealed again with a new key', async (t) => {
  const [former, newest] = ['a'.repeat(64), 'b'.repeat(64)]
  const { url, query } = await database(t)
  const { admins } = mcphubEntries()
  const sealed = async (): Promise<unknown> => (await query('SELECT sealed FROM oauth_clients'))[0]?.sealed
  await open(t, url, { oauthClients: [admins] }, vaultWith(former))
  const before = await sealed()
  const both = await open(t, url, undefined, vaultWith(`${newest},${former}`))
  assert.deepEqual(await both.storage.resealing.resealAll(new AbortController().signal), { anew: 1 })
  assert.notEqual(await sealed(), before)
  const driver = await driverOf(t, url)
  const { document, locked } = await exportDocument(driver, await vaultWith(newest)()) ?? {}
  assert.deepEqual([(document?.oauthClients as Array<Record<string, unknown>>)[0]?.['x-note'], locked], [{ by: 'hand' }, []])
  // With another key a client works as it did, and its export says what is left out.
  const other = await open(t, url, undefined, vaultWith('c'.repeat(64)))
  assert.equal((await other.storage.clients.find('mcphub-1'))?.name, 'an app')
  await other.storage.clients.replace('mcphub-1', (client) => ({ ...client, name: 'renamed' }))
  const withoutKey = await exportDocument(driver, await vaultWith('c'.repeat(64))())
  assert.match(String(withoutKey?.locked), /The client "mcphub-1" cannot be decrypted: .*ENCRYPTION_KEY/)
  const again = await exportDocument(driver, await vaultWith(newest)())
  const [entry] = again?.document.oauthClients as Array<Record<string, unknown>>
  assert.deepEqual([entry?.name, entry?.['x-note']], ['renamed', { by: 'hand' }])
})

void test('a client whose unknown members cannot be opened does not stop a rotation of the key', async (t) => {
  const [former, newest] = ['a'.repeat(64), 'b'.repeat(64)]
  const { url, query } = await database(t)
  const { admins } = mcphubEntries()
  await open(t, url, { oauthClients: [{ ...admins, clientId: 'broken' }, admins] }, vaultWith(former))
  const sealed = async (): Promise<unknown[]> => (await query('SELECT sealed FROM oauth_clients ORDER BY key')).map((row) => row.sealed)
  await query("UPDATE oauth_clients SET sealed = (SELECT sealed FROM oauth_clients WHERE key = 'mcphub-1') WHERE key = 'broken'")
  const [broken, whole] = await sealed()
  const { storage } = await open(t, url, undefined, vaultWith(`${newest},${former}`))
  await storage.resealing.resealAll(new AbortController().signal)
  assert.deepEqual((await sealed()).map((text, at) => text === [broken, whole][at]), [true, false])
  assert.equal((await storage.resealing.countOutdatedSeals()).former, 1)
})

/** Whose values for which server. */
const ofAnn = { server: 'guarded', user: 'ann', account: 'a', target: 't' }

for (const kind of ['file', 'PostgreSQL']) {
  void test(`${kind}: a login, or values of a user, that cannot be opened count as none, and others take their place, once`, async (t) => {
    const [former, newest] = ['a'.repeat(64), 'b'.repeat(64)]
    const dbUrl = kind === 'file' ? undefined : (await database(t)).url
    const first = await open(t, dbUrl, {}, vaultWith(former))
    await first.storage.upstreamTokens.swap('guarded', 'client', undefined, 'lost')
    await first.storage.userValues.swap(ofAnn, undefined, { TOKEN: 'lost' })
    const document = kind === 'file' ? JSON.parse(await readFile(first.path, 'utf8')) as object : undefined
    const { storage: { upstreamTokens, userValues } } = await open(t, dbUrl, document, vaultWith(newest))
    assert.equal(await upstreamTokens.find('guarded', 'client'), undefined)
    const stored = await race(5, async (n) => await upstreamTokens.swap('guarded', 'client', undefined, n))
    assert.equal(stored.filter((version) => version !== undefined).length, 1)
    assert.equal((await upstreamTokens.find('guarded', 'client'))?.value, stored.findIndex((version) => version !== undefined))
    assert.deepEqual([await userValues.find('guarded', 'ann'), await userValues.list('guarded')], [undefined, []])
    assert.equal(await userValues.swap(ofAnn, undefined, { TOKEN: 'given anew' }), true)
    assert.deepEqual((await userValues.find('guarded', 'ann'))?.values, { TOKEN: 'given anew' })
  })
}

/** An approval and a webhook, which a settings file contains encrypted, and a message for the webhook that failed. */
const approvalAndWebhook = () => {
  const approval = {
    id: randomUUID(),
    state: 'pending',
    digest: 'd',
    principal: 'user ann',
    owner: 'ann',
    callers: ['ann'],
    username: 'ann',
    server: 'guarded',
    tool: 'delete',
    kind: 'tool',
    arguments: '{"secret":1}',
    policy: { id: 'p', name: 'p' },
    createdAt: Date.now(),
    expiresAt: soon()
  } as const
  const webhook = {
    id: 'sub',
    owner: 'user ann',
    user: 'ann',
    credential: { keyId: 'k' },
    route: {},
    name: 'paged',
    event: { provider: 'pager', server: 's', key: 'paged' },
    argumentsText: '{}',
    url: 'https://hooks.test/in',
    secrets: [{ secret: 'whsec_kept' }],
    own: { token: 't', secret: 's' },
    expiresAt: soon()
  } as const
  const message = {
    key: 'sub m', subscription: 'sub', owner: 'user ann', messageId: 'm', body: '{}', attempts: 1, dueAt: 0, version: 'v'
  } as const
  const failure = {
    subscription: 'sub',
    user: 'ann',
    server: 'pager',
    event: 'paged',
    url: webhook.url,
    messageId: 'm',
    body: '{}',
    attempts: 1,
    reason: 'http_5xx',
    failedAt: new Date().toISOString()
  } as const
  return { approval, webhook, message, failure }
}

for (const kind of ['file', 'PostgreSQL']) {
  void test(`${kind}: all that a former key has sealed is sealed anew, and opens without that key`, async (t) => {
    const [former, newest] = ['a'.repeat(64), 'b'.repeat(64)]
    const dbUrl = kind === 'file' ? undefined : (await database(t)).url
    const state = { kind: 'session', username: 'ann', value: 'state', createdAt: 1 } as const
    const entries = Array.from({ length: 120 }, (_, n) => ({
      id: randomUUID(), timestamp: n, username: 'ann', action: 'create', entity: 'group', name: `g${n}`, after: `{"n":${n}}`
    } as const))
    const first = await open(t, dbUrl, {}, vaultWith(former))
    await first.storage.upstreamTokens.swap('guarded', 'shared', undefined, { token: 'kept' })
    await first.storage.userValues.swap(ofAnn, undefined, { TOKEN: 'kept' })
    await first.storage.grants.put(hashOf('code'), 'family', 'grant', soon())
    await first.storage.loginStates.put(hashOf('cookie'), state, soon())
    const { approval, webhook, message, failure } = approvalAndWebhook()
    await first.storage.approvals.add(approval, soon())
    await first.storage.eventWebhooks.add(webhook)
    await first.storage.eventWebhooks.addDelivery(message)
    await first.storage.eventWebhooks.settle(message, failure)
    await first.storage.auditTrail?.append(entries)
    const calls = Array.from({ length: 60 }, (_, n) => activity({ timestamp: n, input: `{"n":${n}}`, output: '[]' }))
    await first.storage.activities?.append([...calls, activity({ timestamp: 100 })])
    const document = async (path: string): Promise<object | undefined> =>
      kind === 'file' ? JSON.parse(await readFile(path, 'utf8')) as object : undefined
    const lost = await open(t, dbUrl, await document(first.path), vaultWith(newest))
    const expected = kind === 'file' ? 4 : 188
    const { former: none, locked } = await lost.storage.resealing.countOutdatedSeals()
    assert.deepEqual([none, locked.reduce((sum, { count }) => sum + count, 0)], [0, expected])
    const [entry] = await lost.storage.auditTrail?.list({}, 1) ?? []
    assert.deepEqual([entry?.after, entry?.locked], [undefined, kind === 'file' ? undefined : true])
    const [call] = (await lost.storage.activities?.list({}, 2, 1))?.activities ?? []
    assert.deepEqual([call?.input, call?.locked], [undefined, kind === 'file' ? undefined : true])

    const both = await open(t, dbUrl, await document(first.path), vaultWith(`${newest},${former}`))
    const { signal } = new AbortController()
    assert.equal((await both.storage.resealing.countOutdatedSeals()).former, expected)
    // Two replicas at once: each text is sealed anew once.
    const passes = await Promise.all([both, ...kind === 'file' ? [] : [{ storage: await both.another() }]].map(async ({ storage }) =>
      await storage.resealing.resealAll(signal)))
    assert.equal(passes.reduce((sum, { anew }) => sum + anew, 0), expected)
    assert.deepEqual(await both.storage.resealing.countOutdatedSeals(), { former: 0, locked: [] })
    assert.deepEqual(await both.storage.resealing.resealAll(signal), { anew: 0 })

    const { storage } = await open(t, dbUrl, await document(both.path), vaultWith(newest))
    assert.deepEqual(await storage.resealing.countOutdatedSeals(), { former: 0, locked: [] })
    assert.deepEqual((await storage.upstreamTokens.find('guarded', 'shared'))?.value, { token: 'kept' })
    assert.deepEqual((await storage.userValues.find('guarded', 'ann'))?.values, { TOKEN: 'kept' })
    assert.deepEqual((await storage.approvals.find(approval.id))?.approval, approval)
    assert.deepEqual(await storage.eventWebhooks.find('sub'), webhook)
    if (kind === 'file') return
    assert.deepEqual(await storage.loginStates.find(hashOf('cookie')), state)
    assert.deepEqual(await storage.grants.take(hashOf('code')), { first: true, family: 'family', value: 'grant' })
    assert.deepEqual(await storage.eventWebhooks.listFailed('ann'), [failure])
    const recorded = (await storage.activities?.list({}, 1, 100))?.activities.reverse()
    const expectedCalls = [...calls.map(({ input }) => [input, undefined]), [undefined, undefined]]
    assert.deepEqual(recorded?.map(({ input, locked }) => [input, locked]), expectedCalls)
    const listed = await storage.auditTrail?.list({}, 200) ?? []
    assert.deepEqual(listed.map(({ after, locked }) => [after, locked]).reverse(), entries.map(({ after }) => [after, undefined]))
  })
}

void test('what calls say is sealed in the database, and clients are named', async (t) => {
  const { url } = await database(t)
  const { storage: { activities, clients } } = await open(t, url, {}, vaultWith('a'.repeat(64)))
  const driver = await driverOf(t, url)
  assert.ok(activities)
  await clients.create(client({ clientId: 'c1', name: 'An agent' }))
  const canaries = { input: '{"q":"canary-in"}', output: '{"content":"canary-out"}', errorMessage: 'canary-error' }
  const [whole, bare, unknown] = [activity({ ...canaries, clientId: 'c1' }), activity(), activity({ clientId: 'gone', output: 'canary-x' })]
  await activities.append([whole, bare, unknown])
  const rows = JSON.stringify(await driver.db.execute(sql`select * from activities`))
  assert.ok(!rows.includes('canary'), rows)
  assert.deepEqual(await activities.find(whole.id), { ...whole, clientName: 'An agent' })
  assert.deepEqual(await activities.find(bare.id), bare)
  assert.deepEqual(await activities.find(unknown.id), unknown)
  assert.equal((await activities.list({ server: whole.server, status: whole.status }, 1, 10)).total, 3, 'filters need no payload')
  // A sealed text does not open in the row of another call.
  await driver.db.execute(sql`update activities set sealed = other.sealed, data = other.data
    from (select sealed, data from activities where id = ${whole.id}) as other where id = ${unknown.id}`)
  assert.deepEqual([(await activities.find(unknown.id))?.output, (await activities.find(unknown.id))?.locked], [undefined, true])
})

void test(
  'a database that begins with a settings file takes no tokens from it: they would come back by an export after they were revoked',
  async (t) => {
    const foreign = { accessToken: 'of another program' }
    const [own, { url }] = [{ ...authorization(), ...issued('refresh') }, await database(t)]
    const { storage } = await open(t, url, { oauthTokens: [entryOf(own.hash, own), foreign] })
    assert.equal(await storage.tokens.find(own.hash), undefined)
    const driver = await driverOf(t, url)
    assert.deepEqual((await exportDocument(driver, await vault()))?.document.oauthTokens, [foreign])
  }
)

test('a connection whose client stopped in the middle of a statement is ended, and its locks are free', async (t) => {
  const { url, query } = await database(t)
  const driver = await driverOf(t, url)
  const frozen = postgres(url, { max: 1, onnotice: () => {}, connection: { application_name: 'tool-hub' } })
  t.after(async () => { await frozen.end({ timeout: 1 }) })
  await frozen.unsafe('create table held (n int)')
  // The database waits for the rows of the COPY, as it waits for the parameters of a statement.
  const connection = await frozen.reserve()
  await connection.unsafe('begin; lock table held')
  const copying = await connection`copy held from stdin`.writable()
  const broken = once(copying, 'error').catch(() => {})
  assert.equal(await endStuckConnections(driver.db), 0, 'it may still answer')
  await until(async () => await endStuckConnections(driver.db, 0) === 1)
  assert.deepEqual(await query('select * from held'), [])
  copying.destroy(new Error('gone'))
  await broken
})
