// The audit log of writes.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at, type Json } from '../helpers/client.ts'
import { AuditLog, type ShownAuditEntry } from '../../plugins/settings/audit/audit.ts'
import { MemoryAuditTrail } from '../../plugins/settings/audit/memory-trail.ts'
import type { Author } from '../../plugins/settings/access/author.ts'
import type { CommitEvent } from '../../plugins/settings/settings.ts'
import type { Snapshot } from '../../db/store.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { Api, canary, enc, fine, list, MASK, offers, refused, started, WORDS } from '../helpers/management.ts'

/** A trail that cannot be written while it is away. */
const unreliable = (bounds: ConstructorParameters<typeof MemoryAuditTrail>[0], isAway: () => boolean): Pick<MemoryAuditTrail, 'append' | 'list' | 'trim'> => {
  const memory = new MemoryAuditTrail(bounds)
  const append: MemoryAuditTrail['append'] = async (entries) => {
    if (isAway()) throw new Error('away')
    await memory.append(entries)
  }
  return { append, list: memory.list.bind(memory), trim: memory.trim.bind(memory) }
}

test('the audit of writes', async (t) => {
  const fake = await startUpstream(t, offers)
  const secret = { first: canary('first'), second: canary('second'), router: canary('router'), password: 'Canary-Pass-word-1' }
  const { hub, admin, bob } = await started(t)
  const entries = async (): Promise<Json[]> => list(await admin.ask('GET', '/audit?limit=100'))
  /** What a write leaves in the audit, oldest first. */
  const left = async (write: () => Promise<unknown>): Promise<Json[]> => {
    const before = new Set((await entries()).map(({ id }) => id))
    await write()
    return (await entries()).filter(({ id }) => !before.has(id)).reverse()
  }
  const one = async (write: () => Promise<unknown>): Promise<Json> => {
    const found = await left(write)
    assert.equal(found.length, 1, JSON.stringify(found))
    const entry = found[0] ?? {}
    assert.equal(new Date(String(entry.timestamp)).toISOString(), entry.timestamp)
    return entry
  }
  const said = (entry: Json): unknown[] => [entry.username, entry.action, entry.entity, entry.name]

  await t.test('servers: made, changed, toggled, renamed, removed', async () => {
    const made = await one(async () => await admin.add('alpha', { url: fake.url, headers: { 'X-Key': secret.first } }))
    assert.deepEqual(said(made), ['admin', 'create', 'server', 'alpha'])
    assert.equal(made.before ?? null, null)
    assert.deepEqual([at(made, 'after', 'config', 'url'), at(made, 'after', 'config', 'headers', 'X-Key')],
      [fake.url, MASK + secret.first.slice(-4)])

    const changed = await one(
      async () =>
        await admin.ok('PUT', '/servers/alpha', { config: { url: fake.url, headers: { 'X-Key': secret.second }, description: 'changed' } })
    )
    assert.deepEqual(said(changed), ['admin', 'update', 'server', 'alpha'])
    assert.deepEqual([at(changed, 'before', 'config', 'description'), at(changed, 'after', 'config', 'description')],
      [undefined, 'changed'])
    assert.deepEqual(
      [at(changed, 'before', 'config', 'headers', 'X-Key'), at(changed, 'after', 'config', 'headers', 'X-Key')],
      [MASK + secret.first.slice(-4), MASK + secret.second.slice(-4)]
    )
    await admin.has('alpha', 'connected')

    const toggled = await one(async () => await admin.ok('POST', '/servers/alpha/toggle', { enabled: false }))
    assert.deepEqual([at(toggled, 'before', 'config', 'enabled') ?? true, at(toggled, 'after', 'config', 'enabled')], [true, false])
    await admin.ok('POST', '/servers/alpha/toggle', { enabled: true })
    await admin.has('alpha', 'connected')

    const tooled = await one(async () => await admin.ok('POST', '/servers/alpha/tools/echo/toggle', { enabled: false }))
    assert.deepEqual(
      [at(tooled, 'before', 'config', 'tools', 'echo', 'enabled') ?? true, at(tooled, 'after', 'config', 'tools', 'echo', 'enabled')],
      [true, false]
    )

    const renamed = await left(async () => await admin.ok('PUT', '/servers/alpha', { config: { url: fake.url }, newName: 'omega' }))
    assert.deepEqual(
      renamed.map((entry) => [entry.username, entry.action, entry.entity, at(entry, 'before', 'name'), at(entry, 'after', 'name')]),
      [['admin', 'update', 'server', 'alpha', 'omega']]
    )

    const removed = await one(async () => await admin.ok('DELETE', '/servers/omega'))
    assert.deepEqual([...said(removed), removed.after ?? null], ['admin', 'delete', 'server', 'omega', null])
    assert.equal(at(removed, 'before', 'config', 'url'), fake.url)
  })

  await t.test('a batch: an entry for each that was stored', async () => {
    const config = { url: fake.url, enabled: false }
    const found = await left(
      async () => await admin.ask('POST', '/servers/batch', {
        servers: [{ name: 'one', config }, { name: 'call', config }, { name: 'two', config }]
      })
    )
    assert.deepEqual(found.map(said).sort(), [['admin', 'create', 'server', 'one'], ['admin', 'create', 'server', 'two']])
  })

  await t.test('groups, keys, users, system configuration', async () => {
    const group = await one(async () => await bob.ok('POST', '/groups', { name: 'bobs', description: 'first' }, 201))
    assert.deepEqual(said(group), ['bob', 'create', 'group', 'bobs'])
    const grown = await one(async () => await admin.ok('POST', '/groups/bobs/servers', { serverName: 'one' }))
    assert.deepEqual(
      [...said(grown), JSON.stringify(grown.before).includes('one'), JSON.stringify(grown.after).includes('"one"')],
      ['admin', 'update', 'group', 'bobs', false, true]
    )
    assert.deepEqual(said(await one(async () => await bob.ok('DELETE', '/groups/bobs'))), ['bob', 'delete', 'group', 'bobs'])

    let token = ''
    const key = await one(async () => { token = String((await admin.ok('POST', '/auth/keys', { name: 'k', accessType: 'all' }, 201)).token) })
    assert.deepEqual([key.username, key.action], ['admin', 'create'])
    assert.ok(!JSON.stringify(key).includes(token) && !/[0-9a-f]{64}/.test(JSON.stringify(key)),
      `neither the token nor its hash: ${JSON.stringify(key)}`)

    const byKey = await one(async () => {
      await new Api(hub, { authorization: `Bearer ${token}` }).ok('POST', '/groups', { name: 'by key', servers: [] }, 201)
    })
    assert.deepEqual([byKey.keyName, byKey.keyId, said(byKey)], ['k', at(key, 'after', 'id'), ['system', 'create', 'group', 'by key']])
    assert.ok(hub.output().includes('system by key \\"k\\": create group'), 'and in the log')
    await admin.ok('DELETE', '/groups/by%20key')

    const exported = await one(async () => { fine(await admin.ask('GET', '/mcp-settings/export?includeSecrets=true')) })
    assert.deepEqual([...said(exported), exported.after], ['admin', 'create', 'export', 'settings', { includeSecrets: true }])
    assert.deepEqual(await left(async () => await admin.ask('GET', '/mcp-settings/export')), [], 'without secrets it tells nothing new')

    const user = await one(async () => await admin.ok('POST', '/users', { username: 'eve', password: secret.password }, 201))
    assert.deepEqual([user.username, user.action, user.name], ['admin', 'create', 'eve'])
    const promoted = await one(async () => await admin.ok('PUT', '/users/eve', { isAdmin: true }))
    assert.deepEqual(
      [at(promoted, 'before', 'isAdmin'), at(promoted, 'after', 'isAdmin'), at(promoted, 'after', 'passwordChanged')],
      [false, true, undefined]
    )
    const rekeyed = await one(async () => await admin.ok('PUT', '/users/eve', { newPassword: 'Another-Canary-1' }))
    assert.equal(at(rekeyed, 'after', 'passwordChanged'), true)
    const gone = await left(async () => await admin.ok('DELETE', '/users/eve'))
    assert.ok(gone.some((entry) => entry.action === 'delete' && entry.name === 'eve'), JSON.stringify(gone))

    const system = await one(
      async () => await admin.ok('PUT', '/system-config', { mcpRouter: { apiKey: secret.router }, nameSeparator: '_' })
    )
    assert.deepEqual(
      [system.username, system.action, at(system, 'after', 'mcpRouter', 'apiKey'), at(system, 'after', 'nameSeparator')],
      ['admin', 'update', MASK + secret.router.slice(-4), '_']
    )
    await admin.ok('PUT', '/system-config', { nameSeparator: null })
  })

  await t.test('of what is too large: that it was written', async () => {
    const config = { url: fake.url, enabled: false, notes: 'x'.repeat(100_000) }
    const made = await one(async () => await admin.ok('POST', '/servers', { name: 'large', config }))
    assert.deepEqual([...said(made), made.after], ['admin', 'create', 'server', 'large', { name: 'large', truncated: true }])
    const cut = await one(async () => await admin.ok('PUT', '/servers/large', { config: { url: fake.url }, newName: 'small' }))
    assert.deepEqual([cut.before, at(cut, 'after', 'name'), at(cut, 'after', 'config', 'url')],
      [{ name: 'large', truncated: true }, 'small', fake.url])
  })

  await t.test('has a bound in entries, and in what they hold', async () => {
    const bounds = { entries: 50, part: 2_000, size: 10_000, stored: 50 }
    const audit = new AuditLog({ trail: new MemoryAuditTrail(bounds), bounds, notify: () => {}, warn: () => {} })
    const current = { users: new Map() } as unknown as Snapshot
    const write = (name: string, length: number): void => {
      audit.addCommit({
        by: { username: 'bob' },
        changes: [{ entity: 'users', key: name, value: { username: name } }],
        former: current,
        next: { ...current, users: new Map([[name, { username: name, note: 'x'.repeat(length) }]]) }
      } as unknown as CommitEvent)
    }
    for (let at = 0; at < 60; at++) write(`u${at}`, 10)
    const list = async (limit: number): Promise<ShownAuditEntry[]> => (await audit.list({ limit })).data
    assert.deepEqual([(await list(100)).length, (await list(1))[0]?.name], [50, 'u59'])
    for (let at = 0; at < 20; at++) write(`v${at}`, 1_000)
    assert.deepEqual((await list(100)).map(({ name }) => name), Array.from({ length: 9 }, (_, at) => `v${19 - at}`))
    for (let at = 0; at < 20; at++) write(`ж${at}`, 1_000)
    assert.equal((await list(100)).length, 4, 'texts beyond Latin-1 count twice')
    for (let at = 0; at < 60; at++) write(`w${at}`, 5_000)
    assert.deepEqual([(await list(100)).length, (await list(1))[0]?.after], [50, { truncated: true }])
  })

  await t.test('who makes changes without end removes his own entries, and nobody else\'s', async () => {
    const bounds = { entries: 1_000, part: 32_000, size: 1_000_000, stored: 1_000 }
    let isAway = false
    const trail = unreliable(bounds, () => isAway)
    const audit = new AuditLog({ trail, bounds, notify: () => {}, warn: () => {} })
    const names = async (username: string): Promise<string[]> => (await audit.list({ username, limit: 2_000 })).data.map(({ name }) => name)
    const note = (by: Author, name: string, size = 0): void => {
      audit.addChange(by, { entity: 'key', name, after: { name, note: 'x'.repeat(size) } })
    }
    const eve = (n: number): Author => ({ username: 'eve', keyId: `k${n % 100}`, keyName: 'k' })
    const others: Author[] = [{ username: 'ann' }, { username: 'system', keyId: 'one', keyName: 'one' }]
    note({ username: 'ann' }, 'first')
    for (let n = 0; n < 1_050; n++) note(eve(n), `toggled ${n}`)
    assert.deepEqual(await names('ann'), ['first'])
    assert.deepEqual(await names('eve'), Array.from({ length: 999 }, (_, at) => `toggled ${1_049 - at}`), 'the newest of his own')
    for (const by of others) note(by, 'later')
    for (let n = 0; n < 1_050; n++) note({ username: 'system', keyId: 'two', keyName: 'two' }, `by key ${n}`)
    assert.deepEqual([await names('ann'), (await names('eve')).length], [['later', 'first'], 498], 'who had most')
    assert.ok((await names('system')).includes('later'), 'system keys are actors of their own')
    for (let n = 0; n < 100; n++) note(eve(n), `large ${n}`, 30_000)
    assert.deepEqual(await names('ann'), ['later', 'first'], 'by size as well')
    assert.ok((await names('system')).includes('by key 1049'))
    isAway = true
    note({ username: 'ann' }, 'while it was away')
    for (let n = 0; n < 1_050; n++) note(eve(n), `toggled again ${n}`)
    await assert.rejects(audit.list({}))
    isAway = false
    assert.deepEqual(await names('ann'), ['while it was away', 'later', 'first'], 'what waits, too')
  })

  await t.test('of a trail that cannot be written the log is told once, and once more when it can', async () => {
    const bounds = { entries: 50, part: 2_000, size: 10_000, stored: 50 }
    const told: string[] = []
    let isAway = true
    const trail = unreliable(bounds, () => isAway)
    const audit = new AuditLog({ trail, bounds, notify: () => {}, warn: (sentence) => { told.push(sentence) } })
    for (let n = 0; n < 3; n++) {
      audit.addChange('bob', { entity: 'server', name: `s${n}`, after: { name: `s${n}` } })
      await assert.rejects(audit.list({}))
    }
    isAway = false
    assert.equal((await audit.list({})).data.length, 3)
    assert.deepEqual(told, ['the audit log cannot be written now: away', 'the audit log can be written again'])
  })

  await t.test('what is refused, read or run leaves nothing', async () => {
    assert.deepEqual(await left(async () => {
      await admin.ask('POST', '/servers', { name: 'call', config: { url: fake.url } })
      await bob.ask('PUT', '/system-config', { nameSeparator: '_' })
      await admin.ask('DELETE', '/servers/nope')
      await admin.ask('GET', '/servers')
      await admin.ask('POST', '/tools/call/one', { toolName: 'echo' })
    }), [])
  })

  await t.test('for admins only, newest first, in pages, without a secret', async () => {
    refused(await bob.ask('GET', '/audit'), 403)
    refused(await new Api(hub).ask('GET', '/audit'), 401)
    const all = await entries()
    const times = all.map(({ timestamp }) => String(timestamp))
    assert.deepEqual(times, [...times].sort().reverse())
    const seen: unknown[] = []
    let cursor: unknown
    do {
      const answer = await admin.ask('GET', `/audit?limit=3${cursor === undefined ? '' : `&cursor=${enc(String(cursor))}`}`)
      seen.push(...list(answer).map(({ id }) => id))
      cursor = at(answer.body, 'nextCursor')
    } while (cursor !== undefined && seen.length < 500)
    assert.deepEqual(seen, all.map(({ id }) => id))
    assert.equal(at((await admin.ask('GET', `/audit?limit=1&cursor=${String(seen.at(-2))}`)).body, 'nextCursor'),
      undefined, 'a page that ends with the last entry is the last')
    refused(await admin.ask('GET', '/audit?cursor=forgotten'), 400)
    const whole = JSON.stringify(all)
    for (const [what, value] of Object.entries({ ...secret, ...WORDS })) assert.ok(!whole.includes(value), `${what} in the audit`)
    assert.doesNotMatch(whole, /\$2[aby]\$|scrypt|argon2|"password"|"tokenHash"/)
  })
})
