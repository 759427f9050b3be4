// Gateways on a database that goes away and comes back, and two of them on one.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { Client } from '@modelcontextprotocol/client'
import { test, type Test } from 'tap'
import { change } from '../contracts/store.ts'
import { ChangeFeed } from '../../db/postgres/settings/change-feed.ts'
import { assertNoCanary } from '../fakes/canaries.ts'
import { startUpstream, type Upstream } from '../fakes/fault-http.ts'
import { startModern } from '../fakes/modern-server.ts'
import { login, loggedIn, manage, managed, parked, serverNames, startReplica, type Answer } from '../fakes/replica.ts'
import { openPostgres } from '../fakes/store-database.ts'
import { assertPlain, at, connected, initialize, send, Session, settings, silence, text, within, type Json } from '../helpers/client.ts'
import { cluster, database, passwordCanary, type Cluster } from '../helpers/database.ts'
import { path, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { modernAgent } from '../helpers/modern-client.ts'
import { setLimits } from '../helpers/patient.ts'
import { settingsLimits } from '../../plugins/settings/limits.ts'

/** Stores opened from now on do not poll in the time of a test: what they know of each other they were told. */
function pollNever (t: Cleanup): void {
  const { schedulePoll: schedule } = ChangeFeed.prototype
  t.after(() => { ChangeFeed.prototype.schedulePoll = schedule })
  ChangeFeed.prototype.schedulePoll = function (delay) { schedule.call(this, delay < 3_000 ? delay : 3_600_000) }
}

// ---- away and back --------------------------------------------------------------------------------

/** What may not be told: neither the database's password, in any spelling, nor SQL or a stack. */
function assertDiscreet (said: string): void {
  assertPlain(said)
  for (const secret of [passwordCanary, encodeURIComponent(passwordCanary), 'canary']) {
    assert.ok(!said.includes(secret), `tells ${secret}: ${said.slice(0, 3_000)}`)
  }
  assert.doesNotMatch(said, /\b(select|insert into|update) .+ (from|values|set)\b/i)
}

const assertAway = (answer: Answer): void => {
  assert.equal(answer.status, 503, answer.text)
  assert.equal(at(answer.body, 'success'), false)
  assert.ok(answer.headers.has('retry-after'), 'no Retry-After')
  assertDiscreet(answer.text)
}

/** Writes servers and reads the list without end; what was acknowledged, what may have been stored, and every status there was. */
class Load {
  readonly acknowledged = new Set<string>()
  readonly unknown = new Set<string>()
  readonly wrong: string[] = []
  readonly away: Answer[] = []
  #going = true
  readonly #workers: Array<Promise<void>>

  constructor (t: Cleanup, hub: Hub, headers: Record<string, string>) {
    t.after(async () => { await this.end() })
    const write = async (name: string): Promise<void> => {
      this.unknown.add(name)
      const answer = await manage(hub, 'POST', '/servers', { name, config: parked(name) })
      if (answer.status === 200) { this.unknown.delete(name); this.acknowledged.add(name) }
      this.#look(`POST ${name}`, answer)
    }
    const look = async (headers?: Record<string, string>): Promise<void> => {
      this.#look('GET', await manage(hub, 'GET', '/servers?limit=1', undefined, headers))
    }
    this.#workers = [0, 1, 2, 3, 4, 5].map(async (worker) => {
      for (let n = 0; this.#going; n++) {
        await (worker < 4 ? write(`w${worker}-${n}`) : look(worker === 4 ? undefined : headers)).catch((error: unknown) => {
          this.wrong.push(String(error))
        })
        // A pause, so that refusals at once do not take all of the machine.
        await silence(50)
      }
    })
  }

  #look (what: string, answer: Answer): void {
    if (answer.status === 503) this.away.push(answer)
    else if (answer.status !== 200) this.wrong.push(`${what}: ${answer.status} ${answer.text}`)
  }

  async end (): Promise<void> {
    this.#going = false
    await Promise.all(this.#workers)
  }
}

/** MCP goes on: a list and a call, in a session and in a new one. */
async function assertMcp (hub: Hub, session: Session): Promise<void> {
  const fresh = await Session.open(`${hub.url}/mcp`)
  for (const each of [session, fresh]) {
    assert.ok((await each.tools()).includes('fake-echo'))
    assert.equal(text(await each.call('fake-echo', { message: 'on' })), 'on')
  }
  await fresh.end()
  // Another replica may have stored it: whether it is wrong cannot be told now.
  const unknown = await send(`${hub.url}/mcp`, { key: 'thk_wrong', body: initialize() })
  assert.deepEqual([unknown.status, unknown.headers.get('retry-after')], [503, '5'])
}

/** Whoever has the right password is not told that it is wrong; whoever guesses is not let guess uncounted. */
async function assertGuarded (hub: Hub): Promise<void> {
  const right = await login(hub)
  assert.ok(right.status === 200 || right.status === 503, right.text)
  const guesses = await Promise.all(Array.from({ length: 12 }, async () => await login(hub, 'nobody', 'Wrong-Guess-1')))
  assert.ok(guesses.some(({ status }) => status === 503 || status === 429), 'twelve guesses, none of them counted')
  for (const guess of guesses) assert.ok([401, 429, 503].includes(guess.status), guess.text)
}

const isReady = async (hub: Hub): Promise<number> => (await fetch(`${hub.url}/health/ready`)).status
/** Writes until it is not refused as away any more. */
async function isBack (hub: Hub, name: string): Promise<void> {
  await until(async () => (await manage(hub, 'POST', '/servers', { name, config: parked() })).status !== 503, 'still away')
  assert.ok((await serverNames(hub)).includes(name))
}

/** A gateway on a new database of the cluster, with the server `fake`; and a session there. */
async function startOn (t: Test, server: Cluster, env: Record<string, string> = {}): Promise<{ hub: Hub, session: Session, url: string }> {
  const { url } = await database(t, server)
  const upstream = await startUpstream(t)
  const hub = await startReplica(t, url, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }), env })
  await connected(hub, 1)
  return { hub, session: await Session.open(`${hub.url}/mcp`), url }
}

/** PostgreSQL goes away in this way and comes back, under load. */
async function goAndComeBack (server: Cluster, mode: 'immediate' | 'fast', hub: Hub, session: Session, load: Load): Promise<void> {
  const before = load.acknowledged.size
  await until(() => load.acknowledged.size > before + 8, () => `no writes: ${load.wrong.join('\n')}`)
  const headers = await loggedIn(hub)
  await server.stop(mode)
  const answers = await Promise.all([
    manage(hub, 'POST', '/servers', { name: `away-${mode}`, config: parked() }),
    manage(hub, 'DELETE', '/servers/fake'),
    manage(hub, 'POST', '/auth/keys', { name: 'k', accessType: 'all', owner: 'admin' }),
    manage(hub, 'POST', '/groups', { name: 'g' }),
    manage(hub, 'POST', '/groups', { name: 'g' }, headers)
  ])
  answers.forEach(assertAway)
  await assertMcp(hub, session)
  if (mode === 'immediate') await assertGuarded(hub)
  // It is not ready only once that has lasted for a minute.
  const statuses = ['/health', '/health/live', '/health/ready'].map(async (route) => (await fetch(`${hub.url}${route}`)).status)
  assert.deepEqual(await Promise.all(statuses), [200, 200, 200])
  await server.start()
  await isBack(hub, `back-${mode}`)
  await until(async () => await isReady(hub) === 200, 'not ready again')
  assert.equal((await login(hub)).status, 200)
}

void test('a database that goes away and comes back', async (t) => {
  const server = await cluster(t, { log_statement: 'all', log_line_prefix: '' })
  // A look-up of an unknown key fails sooner.
  setLimits(t, settingsLimits.freshLookUps, { timeout: 500 })

  await t.test('an authenticated tools/call makes no query', async (t) => {
    pollNever(t)
    // Without the record of calls, which is written beside them.
    const { hub, session } = await startOn(t, server, { ACTIVITY_RETENTION: '0' })
    await session.call('fake-echo', { message: 'warm' })
    const statements = (): string[] =>
      [...server.log().matchAll(/^LOG: {2}(?:execute [^:]*|statement): (.*)$/gm)].map(([, statement = '']) => statement)
    assert.ok(statements().length > 5, 'statements are not logged')
    // The start goes on in the background for a while: it looks for what a former key has sealed.
    await until(async () => {
      const before = statements().length
      for (let round = 0; round < 10; round++) {
        await Promise.all(Array.from({ length: 10 }, async (_, n) => {
          assert.equal(text(await session.call('fake-echo', { message: String(n) })), String(n))
        }))
      }
      await session.tools()
      await Session.open(`${hub.url}/mcp`)
      return statements().length === before
    }, 'calls make queries')
    assert.equal(await hub.stop(), 0)
  })

  await t.test('a crash under load: 503 meanwhile, MCP goes on, nothing acknowledged is lost', async (t) => {
    const { hub, session, url } = await startOn(t, server)
    const load = new Load(t, hub, await loggedIn(hub))
    for (const mode of ['immediate', 'fast'] as const) await goAndComeBack(server, mode, hub, session, load)
    await load.end()
    assert.deepEqual(load.wrong, [])
    const lines = (pattern: RegExp): number => hub.output().split('\n').filter((line) => pattern.test(line)).length
    const away = (): number => lines(/nothing can be changed until this is resolved/)
    assert.ok(away() > 0)
    await until(() => lines(/The database is available again/) === away(), 'for each time that it was away, one line when it is back')
    load.away.forEach(assertAway)
    const tried = ['back-immediate', 'back-fast', 'away-immediate', 'away-fast']
    const possible = new Set(['fake', ...tried, ...load.acknowledged, ...load.unknown])
    // What this gateway says, what the next one says, and what is stored are one thing.
    const told = await serverNames(hub)
    assert.equal(await hub.stop(), 0)
    const stored = await serverNames(await startReplica(t, url))
    t.comment(`${load.acknowledged.size} acknowledged, ${load.unknown.size} unknown, ${stored.length} stored, ${load.away.length} times 503`)
    assert.deepEqual(stored, told)
    for (const name of load.acknowledged) assert.ok(stored.includes(name), `${name} was acknowledged and is lost`)
    for (const name of stored) assert.ok(possible.has(name), `nobody wrote ${name}`)
    assertNoCanary([hub.output()], 'the output')
  })

  await t.test('PostgreSQL that does not answer is given up on, and neither MCP nor the end waits for it', async (t) => {
    const { hub, session } = await startOn(t, server)
    await managed(hub, 'POST', '/servers', { name: 'before', config: parked() })
    const write = async (name: string, count: number): Promise<Answer[]> => await Promise.all(
      Array.from({ length: count }, async (_, n) => await manage(hub, 'POST', '/servers', { name: `${name}-${n}`, config: parked() }))
    )
    const thaw = server.freeze()
    try {
      const answers = write('frozen', 20)
      await assertMcp(hub, session);
      (await answers).forEach(assertAway)
      await assertMcp(hub, session)
    } finally { thaw() }
    await isBack(hub, 'thawed')
    assertNoCanary([hub.output()], 'the output')
    const thawAgain = server.freeze()
    try {
      const waiting = write('last', 3)
      waiting.catch(() => {})
      await assertMcp(hub, session)
      assert.equal(await within('the end', hub.stop()), 0, hub.output().slice(-2_000));
      (await waiting).forEach(assertAway)
    } finally { thawAgain() }
  })
})

// ---- two gateways on one database -----------------------------------------------------------------

/** Two gateways, started at once. */
async function pair (t: Test, url: string, content?: object): Promise<[Hub, Hub]> {
  return await Promise.all([startReplica(t, url, { settings: content }), startReplica(t, url, { settings: content })])
}

void test('two gateways that start at once on an empty database: migrated once, one admin', async (t) => {
  const { url, query } = await database(t, undefined, { tables: false })
  const hubs = await pair(t, url)
  for (const hub of hubs) {
    const headers = await loggedIn(hub)
    for (const other of hubs) {
      assert.equal((await manage(other, 'GET', '/servers', undefined, headers)).status, 200, 'a login counts on both')
    }
  }
  const journal = JSON.parse(await readFile(path('db/migrations/meta/_journal.json'), 'utf8')) as { entries: unknown[] }
  const [table] = await query<{ schema: string, name: string }>(
    "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables WHERE table_name LIKE '%migrations%'"
  )
  assert.ok(table)
  assert.equal((await query(`SELECT * FROM "${table.schema}"."${table.name}"`)).length, journal.entries.length)
  assert.equal((await query('SELECT * FROM users')).length, 1)
  for (const hub of hubs) {
    const users = await managed(hub, 'GET', '/users', undefined, await loggedIn(hub)) as unknown as Json[]
    assert.deepEqual(users.map(({ username }) => username), ['admin'])
    assert.doesNotMatch(hub.output(), /error|already exists|duplicate/i)
    assert.equal(await hub.stop(), 0)
  }
})

/** The status of a new session by this key. */
const opened = async (hub: Hub, key: string): Promise<number> => (await send(`${hub.url}/mcp`, { key, body: initialize() })).status

async function startPair (t: Test): Promise<{ a: Hub, b: Hub, url: string, upstream: Upstream }> {
  pollNever(t)
  const { url } = await database(t)
  const upstream = await startUpstream(t)
  const content = settings({ fake: { type: 'streamable-http', url: upstream.url, visibility: 'public' } })
  const [a, b] = await pair(t, url, content)
  for (const hub of [a, b]) await connected(hub, 1)
  return { a, b, url, upstream }
}

void test('what one of two gateways on a database stores, the other is told at once', async (t) => {
  const { a, b, upstream } = await startPair(t)

  await t.test('a server added, changed and removed, and its clients hear of it', async () => {
    const listener = await Session.open(`${b.url}/mcp`)
    const stream = await listener.listen()
    const heard = (): number => stream.messages.filter(({ method }) => method === 'notifications/tools/list_changed').length
    const config = { type: 'streamable-http', url: upstream.url }
    for (const [what, change, expected] of [
      ['added', async () => await managed(a, 'POST', '/servers', { name: 'added', config }), ['added-echo', 'fake-echo']],
      ['renamed', async () => await managed(a, 'PUT', '/servers/added', { config, newName: 'other' }), ['fake-echo', 'other-echo']],
      ['removed', async () => await managed(a, 'DELETE', '/servers/other'), ['fake-echo']]
    ] as const) {
      // Whoever has just read the list is told of what comes after that.
      await listener.tools()
      const before = heard()
      await change()
      await until(() => heard() > before, `no list_changed: ${what}`)
      await until(async () => (await listener.tools()).sort().join() === expected.join(), `not ${what} on the other`)
    }
    assert.deepEqual(await serverNames(b), await serverNames(a))
    stream.close()
  })

  await t.test('a key, a user and a login that were made on one count on the other', async () => {
    for (let round = 0; round < 4; round++) {
      const { token } = await managed(a, 'POST', '/auth/keys', { name: `new ${round}`, accessType: 'all', owner: 'admin' })
      assert.equal(await opened(b, String(token)), 200, `key ${round}`)
      const username = `new-${round}`
      await managed(a, 'POST', '/users', { username, password: 'Long-enough-1' })
      const headers = await loggedIn(round % 2 === 0 ? a : b, username, 'Long-enough-1')
      assert.equal((await manage(b, 'GET', '/auth/user', undefined, headers)).status, 200, `login ${round}`)
    }
  })

  await t.test('a key disabled on one is refused on the other, and its session ends there', async () => {
    const { id, token: given } = await managed(a, 'POST', '/auth/keys', { name: 'leaves', accessType: 'all', owner: 'admin' })
    const token = String(given)
    await until(async () => await opened(b, token) === 200, 'a new key is unknown on the other')
    const session = await Session.open(`${b.url}/mcp`, { key: token })
    const stream = await session.listen()
    await managed(a, 'PUT', `/auth/keys/${String(id)}`, { enabled: false })
    assert.equal(await opened(a, token), 401)
    await until(async () => await opened(b, token) === 401, 'still accepted on the other')
    await within('the end of its stream', stream.done)
    assert.equal((await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status, 401)
  })
})

void test('two gateways on one database', async (t) => {
  const { a, b } = await startPair(t)
  const either = (n: number): Hub => n % 2 === 0 ? a : b

  await t.test('20 same-name creates across both: one success, 19 times 400', async () => {
    for (const [route, body, status] of [
      ['/servers', { name: 'race', config: parked() }, 200],
      ['/groups', { name: 'race', servers: [] }, 201]
    ] as const) {
      const answers = await Promise.all(Array.from({ length: 20 }, async (_, n) => await manage(either(n), 'POST', route, body)))
      assert.deepEqual(answers.map((answer) => answer.status).sort(), [status, ...Array<number>(19).fill(400)].sort(), route)
    }
  })

  await t.test('failed logins count together: 10 across both, then 429 on either', async () => {
    for (let n = 0; n < 10; n++) assert.equal((await login(either(n), 'admin', 'Wrong-Guess-1')).status, 401, `guess ${n}`)
    for (const hub of [a, b]) {
      const answer = await login(hub)
      assert.equal(answer.status, 429, answer.text)
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
    // Somebody else is not locked out by it.
    assert.equal((await login(b, 'somebody', 'Wrong-Guess-1')).status, 401)
  })

  for (const hub of [a, b]) {
    assertNoCanary([hub.output()], 'the output')
    assert.equal(await hub.stop(), 0)
  }
})

void test('a request state that one gateway answered is used on the other, too', async (t) => {
  const { url } = await database(t)
  const upstream = await startModern(t, { modern: true })
  const hubs = await pair(t, url, settings({ asks: { type: 'streamable-http', url: upstream.url } }))
  for (const hub of hubs) await connected(hub, 1)
  const [a, b] = await Promise.all(hubs.map(
    async (hub) => (await modernAgent(t, `${hub.url}/mcp/asks`, { autoFulfill: false })).client
  )) as [Client, Client]
  const answers = (name: string): Json => ({ inputResponses: { elicitation: { action: 'accept', content: { name } } } })
  const ask = async (client: Client, more: Json = {}): Promise<Json> =>
    await client.callTool({ name: 'ask', arguments: { kinds: ['elicitation'] }, ...more } as never, { allowInputRequired: true })
  const asked = await ask(a)
  assert.equal(asked.resultType, 'input_required')
  const { requestState } = asked
  assert.match(text(await ask(b, { requestState, ...answers('Ann') })), /state of ask.*Ann/)
  assert.match(text(await ask(a, { requestState, ...answers('Ann') })), /Ann/, 'the same answers again are good for a while')
  for (const client of [a, b]) await assert.rejects(ask(client, { requestState, ...answers('Eve') }), /already answered/)
})

void test('a listener that was lost is replaced while changes go on', async (t) => {
  pollNever(t)
  const { store, another, query } = await openPostgres(t)
  const other = (await another()).store
  await other.load()
  const seen = new Set<string>()
  other.onChange(({ servers }) => { for (const name of servers.keys()) seen.add(name) })
  const make = async (name: string): Promise<void> => { await change(store, () => [{ entity: 'mcpServers', key: name, value: parked() }]) }
  const isSeen = async (name: string): Promise<void> => { await until(() => seen.has(name), `${name} is not seen`) }
  await make('before')
  await isSeen('before')
  const those = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tool-hub listener'"
  const lost = (await query<{ pid: number }>(`SELECT pid, pg_terminate_backend(pid) ${those}`)).map(({ pid }) => pid)
  assert.equal(lost.length, 2)
  await make('meanwhile')
  const isListening = `${those} AND query ILIKE 'listen%' AND pid NOT IN (${lost.join()})`
  await until(async () => (await query(`SELECT pid ${isListening}`)).length === 2, 'they are not replaced')
  for (const name of ['after-1', 'after-2']) {
    await make(name)
    await isSeen(name)
  }
  await isSeen('meanwhile')
})
