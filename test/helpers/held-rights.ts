// What hangs on the rights of an admin: keys of every kind, what they hold open, and servers that run. Held at one gateway, while the
// admin is demoted, given another password and removed at another, which may be the same.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import bcrypt from 'bcryptjs'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { manage, type Answer } from '../fakes/replica.ts'
import { at, initialize, open, send, Session, settings, within, type Json, type Message, type Stream } from './client.ts'
import { path, until, type Hub } from './hub.ts'
import { modernRequest } from './modern-request.ts'
import { Connection } from './sse.ts'

const password = 'Same-1234'

/** `lent`: servers that she stores for another admin. */
export interface Files {
  readonly content: Json
  readonly upstream: Upstream
  readonly log: string
  readonly lent: Record<string, Json>
}

/** Settings with an admin `ann`, whose servers run a command, call an API, and are remote. */
export async function settingsOfAnn (t: Test): Promise<Files> {
  const upstream = await startUpstream(t, { tools: [tool('wait')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-rights-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const log = join(folder, 'log')
  const hash = bcrypt.hashSync(password, 4)
  const content = settings({
    plain: { url: upstream.url, visibility: 'public', owner: 'root' },
    hidden: { url: upstream.url, owner: 'root' },
    run: { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')], env: { FAULT_LOG: log }, owner: 'ann', visibility: 'public' },
    rest: {
      type: 'openapi',
      url: upstream.url,
      openapi: { schema: { openapi: '3.0.0', info: { title: 'x', version: '1' }, paths: { '/x': { get: { operationId: 'x' } } } } },
      owner: 'ann',
      visibility: 'public'
    }
  }, { users: ['root', 'ann'].map((username) => ({ username, password: hash, isAdmin: true, createdAt: '2026-01-01T00:00:00.000Z' })) })
  const command = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
  const lent = { lentRun: command, lentRemote: { url: upstream.url } }
  return { content, upstream, log, lent }
}

const login = async (hub: Hub, username: string): Promise<Record<string, string>> => {
  const answer = await manage(hub, 'POST', '/auth/login', { username, password }, {})
  assert.equal(answer.status, 200, answer.text)
  return { 'x-auth-token': String(at(answer.body, 'token')) }
}

const isAlive = (pid: number): boolean => { try { return process.kill(pid, 0) } catch { return false } }

/** The gateway at which things are held, and the one at which rights change. */
export class HeldRights {
  readonly hold: Hub
  readonly change: Hub
  readonly #files: Files

  constructor (hold: Hub, change: Hub, files: Files) {
    this.hold = hold
    this.change = change
    this.#files = files
  }

  /** The processes of the server `run` that were started. */
  async pids (): Promise<number[]> {
    const lines = (await readFile(this.#files.log, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line) as { pid: number, event?: string }).filter(({ event }) => event === 'start').map(({ pid }) => pid)
  }

  async #made (headers: Record<string, string>, body: Json): Promise<{ id: string, token: string }> {
    const { status, body: answer, text } = await manage(this.change, 'POST', '/auth/keys', { name: randomUUID(), ...body }, headers)
    assert.equal(status, 201, text)
    return { id: String(at(answer, 'data', 'id')), token: String(at(answer, 'data', 'token')) }
  }

  async #key (headers: Record<string, string>, body: Json): Promise<string> {
    return (await this.#made(headers, body)).token
  }

  /** A key that one admin has made, and to which another one gives more. */
  async #widened (
    maker: Record<string, string>, giver: Record<string, string>, made: Json, change: Json
  ): Promise<string> {
    const { id, token } = await this.#made(maker, made)
    const { status, body, text } = await manage(this.change, 'PUT', `/auth/keys/${id}`, change, giver)
    assert.deepEqual([status, at(body, 'data', 'createdBy')], [200, 'ann'], text)
    return token
  }

  async #status (token: string, route: string): Promise<number> {
    return (await send(`${this.hold.url}/mcp${route}`, { key: token, body: initialize() })).status
  }

  async #discover (token: string): Promise<number> {
    return (await send(`${this.hold.url}/mcp`, modernRequest('server/discover', { key: token }))).status
  }

  async #run (token: string, server: string): Promise<Answer> {
    return await manage(this.hold, 'POST', `/tools/call/${server}`, { toolName: server === 'run' ? 'echo' : 'x', arguments: {} },
      { authorization: `Bearer ${token}` })
  }

  async #records (): Promise<Json[]> {
    const { body } = await manage(this.hold, 'GET', '/servers', undefined, await login(this.hold, 'root'))
    return at(body, 'data') as Json[]
  }

  async #serverStatus (name: string): Promise<unknown> {
    return (await this.#records()).find((each) => each.name === name)?.status
  }

  /** Everything that a key holds open. */
  async #open (t: Test, token: string): Promise<{ ends: Array<[string, Promise<unknown>]>, call: Promise<Message> }> {
    const { upstream } = this.#files
    const session = await Session.open(`${this.hold.url}/mcp`, { key: token })
    const news = await session.listen()
    const before = upstream.count('tools/call')
    const call = session.request('tools/call', { name: 'plain-wait', arguments: {} })
    call.catch(() => {})
    await until(() => upstream.count('tools/call') > before, 'the call never came')
    const params = { notifications: { toolsListChanged: true } }
    const listening = await open(`${this.hold.url}/mcp`, modernRequest('subscriptions/listen', { key: token, params }))
    await listening.wait(() => true)
    const sse = await Connection.open(t, `${this.hold.url}/sse`, { key: token })
    const streams: Array<[string, Stream]> = [['a legacy stream', news], ['a subscription', listening], ['an SSE stream', sse.stream]]
    return { ends: streams.map(([what, stream]) => [what, stream.done]), call }
  }

  /** The whole story: each step is what a former admin could have gone on with. */
  async tell (t: Test): Promise<void> {
    const { hold, change } = this
    for (const name of ['plain', 'run', 'rest']) await until(async () => await this.#serverStatus(name) === 'connected', `${name} never connected`)
    const [root, ann] = [await login(change, 'root'), await login(change, 'ann')]
    // A database takes the servers of a file as private.
    const { config } = (await this.#records()).find(({ name }) => name === 'plain') ?? {}
    assert.equal((await manage(change, 'PUT', '/servers/plain', { config: { ...config as Json, visibility: 'public' } }, root)).status, 200)
    const full = await this.#key(ann, { accessType: 'all' })
    const past = '2020-01-01T00:00:00Z'
    const tokens = {
      full,
      scoped: await this.#key(ann, { allowedServers: ['plain', 'run'] }),
      'made by the full key': await this.#key({ authorization: `Bearer ${full}` }, { accessType: 'all', owner: 'root' }),
      'owned by her': await this.#key(root, { kind: 'system', accessType: 'all', owner: 'ann' }),
      'widened by her': await this.#widened(root, ann, { allowedServers: ['plain'] }, { accessType: 'all' }),
      'prolonged by her': await this.#widened(root, ann, { accessType: 'all', expiresAt: past }, { expiresAt: null }),
      'enabled by her': await this.#widened(root, ann, { accessType: 'all', enabled: false }, { enabled: true })
    }
    // What she stores in the name of another admin rests on her rights, too.
    for (const [name, config] of Object.entries(this.#files.lent)) {
      const body = { name, config: { ...config, owner: 'root', visibility: 'public' } }
      const { status, text } = await manage(change, 'POST', '/servers', body, ann)
      assert.equal(status, 200, text)
      await until(async () => await this.#serverStatus(name) === 'connected', `${name} never connected`)
    }
    const mine = await this.#key(ann, {})
    const forRoot = await this.#key(ann, { kind: 'user', owner: 'root' })
    const ofRoot = await this.#key(root, { accessType: 'all' })
    const opens = async (token: string): Promise<number> => await this.#status(token, '/plain')
    for (const token of [...Object.values(tokens), mine, forRoot, ofRoot]) await until(async () => await opens(token) === 200)
    assert.equal((await this.#run(full, 'run')).status, 200)
    const [first = 0] = (await this.pids()).slice(-1)
    const held = await this.#open(t, full)
    const put = async (body: Json): Promise<void> => {
      const { status, text } = await manage(change, 'PUT', '/users/ann', body, root)
      assert.equal(status, 200, text)
    }

    await t.test('a new password ends logins, and neither bearer keys nor processes', async () => {
      const session = await login(hold, 'ann')
      await put({ newPassword: 'Another-1234' })
      await until(async () => (await manage(hold, 'GET', '/auth/user', undefined, session)).status === 401, 'the login goes on')
      for (const [name, token] of Object.entries({ ...tokens, mine })) assert.equal(await opens(token), 200, name)
      assert.ok(isAlive(first))
      await put({ newPassword: password })
    })

    await t.test('a demotion ends what her keys hold open', async () => {
      await put({ isAdmin: false })
      for (const [what, end] of held.ends) await within(`the end of ${what}`, end)
      assert.match((await within('the answer to the call', held.call)).error?.message ?? '', /access was withdrawn/)
    })

    await t.test('her system keys open nothing, on any way in', async () => {
      for (const [name, token] of Object.entries(tokens)) {
        await until(async () => await opens(token) === 401, `${name} opens MCP`)
        assert.equal(await this.#discover(token), 401, name)
        assert.equal((await send(`${hold.url}/sse`, { method: 'GET', key: token, headers: { accept: 'text/event-stream' } })).status, 401, name)
        for (const hub of [hold, change]) {
          const promotion = await manage(hub, 'PUT', '/users/ann', { isAdmin: true }, { authorization: `Bearer ${token}` })
          assert.equal(promotion.status, 401, `${name}: ${promotion.text}`)
        }
        assert.equal((await this.#run(token, 'hidden')).status, 401, `${name} runs tools`)
        const opened = await manage(hold, 'POST', '/tools/hidden/wait', {}, { authorization: `Bearer ${token}` })
        assert.equal(opened.status, 404, `${name} runs tools that nobody may without credentials`)
      }
      assert.equal(await this.#status(ofRoot, '/hidden'), 200, 'keys of others go on')
    })

    await t.test('a change of such a key says that it opens nothing', async () => {
      const { body } = await manage(hold, 'GET', '/auth/keys', undefined, root)
      const { id } = (at(body, 'data') as Json[]).find((each) => each.createdBy === 'ann' && each.accessType === 'all' && each.kind === 'system') ?? {}
      const answer = await manage(hold, 'PUT', `/auth/keys/${String(id)}`, { enabled: true }, root)
      assert.deepEqual(at(answer.body, 'warnings'), ['"ann" is not an admin, so this system key is not valid'])
    })

    await t.test('her own key sees what she sees now; the one that she made for root opens nothing', async () => {
      assert.equal(await opens(mine), 200)
      await until(async () => await this.#status(mine, '/run') === 404)
      assert.equal(await this.#status(mine, '/hidden'), 404)
      await until(async () => await opens(forRoot) === 401)
    })

    await t.test('her servers that run commands or call APIs are stopped, and told why', async () => {
      await until(() => !isAlive(first), 'the process goes on')
      for (const name of ['run', 'rest']) {
        await until(async () => await this.#serverStatus(name) === 'disconnected')
        const record = (await this.#records()).find((each) => each.name === name)
        assert.match(String(record?.error), /owner "ann" is not an admin.*ALLOW_USER_STDIO/)
        assert.equal((await this.#run(ofRoot, name)).status, 404, name)
        assert.equal(await this.#status(ofRoot, `/${name}`), 404, name)
      }
      await manage(hold, 'POST', '/servers/run/reload', undefined, root)
      await manage(hold, 'POST', '/servers/run/toggle', { enabled: true }, root)
      assert.equal(await this.#serverStatus('run'), 'disconnected')
    })

    await t.test('what she stored for root: a command stops, and a remote server has a user\'s reach', async () => {
      const reasons = [['lentRun', /"ann", who stored it, is not an admin/], ['lentRemote', /must be public/]] as const
      for (const [name, why] of reasons) {
        const record = async (): Promise<Json> => (await this.#records()).find((each) => each.name === name) ?? {}
        await until(async () => why.test(String((await record()).error)), `${name} goes on`)
        assert.equal((await record()).status, 'disconnected')
        assert.ok((await this.#run(ofRoot, name)).status >= 400, name)
      }
    })

    await t.test('who is an admin again has it all again', async () => {
      await put({ isAdmin: true })
      for (const [name, token] of Object.entries(tokens)) await until(async () => await opens(token) === 200, name)
      for (const name of ['run', ...Object.keys(this.#files.lent)]) {
        await until(async () => await this.#serverStatus(name) === 'connected', name)
      }
    })

    await t.test('a removed admin\'s servers pass to admin first, private; her keys go', async () => {
      const [now = 0] = (await this.pids()).slice(-1)
      assert.ok(isAlive(now) && now !== first)
      assert.equal((await manage(change, 'DELETE', '/users/ann', undefined, root)).status, 200)
      for (const [name, token] of Object.entries({ ...tokens, mine, forRoot })) {
        await until(async () => await opens(token) === 401, name)
      }
      const record = async (): Promise<Json | undefined> => (await this.#records()).find((each) => each.name === 'run')
      await until(async () => at(await record(), 'config', 'owner') === 'admin')
      assert.deepEqual([at(await record(), 'config', 'visibility'), (await record())?.status], ['private', 'connected'])
      assert.ok(isAlive(now), 'it goes on')
    })

    await t.test('what she stored for another admin waits until an admin saves or enables it', async () => {
      const names = Object.keys(this.#files.lent)
      for (const name of names) await until(async () => await this.#serverStatus(name) === 'disconnected', name)
      const recreated = await manage(change, 'POST', '/users', { username: 'ann', password, isAdmin: true }, root)
      assert.equal(recreated.status, 201, recreated.text)
      // A later account of her name inherits nothing.
      for (const name of names) assert.equal(await this.#serverStatus(name), 'disconnected', name)
      for (const name of names) {
        assert.equal((await manage(change, 'POST', `/servers/${name}/toggle`, { enabled: true }, root)).status, 200)
        await until(async () => await this.#serverStatus(name) === 'connected', name)
      }
    })
  }
}
