// The settings file of a gateway process: nothing acknowledged is lost by kill -9, and one file serves one process.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { manage, managed, parked } from '../fakes/replica.ts'
import { at, names, settings, within, type Json } from '../helpers/client.ts'
import { spawnHub, startHub, until, type Hub } from '../helpers/hub.ts'

const rounds = Number(process.env.KILL_ROUNDS ?? 3)

/** A folder that outlives the gateways started in it. */
async function folderFor (t: Test, content?: object): Promise<{ folder: string, file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-hub-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const file = join(folder, 'mcp_settings.json')
  if (content !== undefined) await writeFile(file, JSON.stringify(content, null, 2), { mode: 0o600 })
  return { folder, file }
}

/** A gateway process that ends by itself, with words and not with code 0; what it has printed. */
async function refused (t: Test, folder: string): Promise<string> {
  const hub = await spawnHub(t, { folder, wait: false })
  if (hub.child.exitCode === null) await within('the exit', once(hub.child, 'exit'))
  await until(() => hub.output().includes('mcp_settings.json'), () => `the file is not named: ${hub.output()}`)
  assert.ok(hub.child.exitCode !== null && hub.child.exitCode !== 0, `exit code ${hub.child.exitCode}`)
  assert.doesNotMatch(hub.output(), /^\s+at .+:\d+:\d+\)?$/m)
  return hub.output()
}

/** What may be stored: of each entity the last acknowledged state, and those never answered; undefined: it is not there. */
class Written {
  readonly possible = new Map<string, Set<string | undefined>>()
  readonly tokens: string[] = []
  acknowledged = 0
  /** Runs with each acknowledged change. */
  onAcknowledged = (): void => {}

  /** Sends a change; false: the gateway is gone. */
  async #change (
    hub: Hub, entity: string, state: string | undefined, method: string, route: string, body?: unknown
  ): Promise<Json | false> {
    const before = this.possible.get(entity) ?? new Set([undefined])
    this.possible.set(entity, new Set([...before, state]))
    const answer = await manage(hub, method, route, body).catch(() => undefined)
    if (answer === undefined) return false
    assert.ok(answer.status === 200 || answer.status === 201, `${method} ${route}: ${answer.status} ${answer.text}`)
    this.possible.set(entity, new Set([state]))
    this.acknowledged++
    this.onAcknowledged()
    return (at(answer.body, 'data') ?? {}) as Json
  }

  /** Makes, changes and removes servers, groups and keys until the gateway is gone. */
  async write (hub: Hub, mark: string): Promise<void> {
    for (let n = 0; ; n++) {
      const name = `${mark}-${n}`
      const [server, group, key] = [`server ${name}`, `group ${name}`, `key ${name}`]
      if (await this.#change(hub, server, 'one', 'POST', '/servers', { name, config: parked('one') }) === false) return
      if (n % 2 === 0 && await this.#change(hub, server, 'two', 'PUT', `/servers/${name}`, { config: parked('two') }) === false) return
      if (n % 3 === 0) {
        if (await this.#change(hub, group, 'a', 'POST', '/groups', { name, description: 'a', servers: [] }) === false) return
        if (await this.#change(hub, group, 'b', 'PUT', `/groups/${name}`, { description: 'b' }) === false) return
      }
      if (n % 4 === 0) {
        const made = await this.#change(hub, key, 'made', 'POST', '/auth/keys', { name })
        if (made === false) return
        this.tokens.push(String(made.token))
      }
      if (n % 5 === 0 && await this.#change(hub, server, undefined, 'DELETE', `/servers/${name}`) === false) return
      if (n % 6 === 0 && await this.#change(hub, group, undefined, 'DELETE', `/groups/${name}`) === false) return
    }
  }

  /** What a gateway serves is what was acknowledged, or may have been stored. From now on it is known. */
  async compare (hub: Hub, round: number): Promise<void> {
    const list = async (route: string): Promise<Json[]> => await managed(hub, 'GET', `${route}?limit=500`) as unknown as Json[]
    const stored = new Map<string, string>()
    for (const { name, config } of await list('/servers')) stored.set(`server ${String(name)}`, String(at(config, 'description')))
    for (const { name, description } of await list('/groups')) stored.set(`group ${String(name)}`, String(description))
    for (const { name } of await list('/auth/keys')) if (name !== 'test') stored.set(`key ${String(name)}`, 'made')
    for (const [entity, states] of this.possible) {
      const is = stored.get(entity)
      assert.ok(states.has(is), `round ${round}: ${entity} is ${is}, not one of ${[...states].join()}`)
      this.possible.set(entity, new Set([is]))
    }
    for (const entity of stored.keys()) assert.ok(this.possible.has(entity), `round ${round}: nobody made ${entity}`)
    const token = this.tokens.at(-1)
    if (token === undefined) return
    const { status } = await fetch(`${hub.url}/api/auth/user`, { headers: { authorization: `Bearer ${token}` } })
    assert.equal(status, 200, 'an acknowledged key works')
  }
}

/** Reads a file again and again: it must parse whenever it is looked at. @returns ends it, and tells how often it was read */
function watch (file: string): () => Promise<number> {
  const stopped = new AbortController()
  const done = (async () => {
    let looks = 0
    for (; !stopped.signal.aborted; looks++) {
      const content = await readFile(file, 'utf8')
      try { JSON.parse(content) } catch {
        assert.fail(`look ${looks}: ${content.length} characters that do not parse: …${content.slice(-100)}`)
      }
      await new Promise((resolve) => { setImmediate(resolve) })
    }
    return looks
  })()
  done.catch(() => {})
  return async () => { stopped.abort(); return await done }
}

test(`${rounds} rounds of kill -9 under continuous writes: acknowledged ⊆ stored ⊆ acknowledged ∪ unknown`, async (t) => {
  const { folder, file } = await folderFor(t, settings({}))
  const written = new Written()
  const end = watch(file)
  for (let round = 0; round <= rounds; round++) {
    const hub = await spawnHub(t, { folder, env: { ADMIN_PASSWORD: 'x', LOG_LEVEL: 'error' } })
    await written.compare(hub, round)
    if (round === rounds) { await hub.stop(); break }
    const last = written.acknowledged + randomInt(1, 40)
    written.onAcknowledged = () => { if (written.acknowledged === last) hub.child.kill('SIGKILL') }
    await Promise.all([0, 1, 2, 3].map(async (writer) => { await written.write(hub, `r${round}w${writer}`) }))
    await hub.stop()
  }
  t.comment(`${written.acknowledged} writes acknowledged, the file read ${await end()} times`)
  const left = await readdir(folder)
  assert.ok(left.length < 8, `temporary files stay behind: ${left.join(' ')}`)
})

test('a file that cannot be read is refused with a sentence', async (t) => {
  await t.test('broken, and its .bak as well: the process ends, and both stay as they are', async (t) => {
    const { folder, file } = await folderFor(t)
    const broken = { [file]: '{"mcpServers": {"a": {', [`${file}.bak`]: '{"mcpServers": ' }
    for (const [name, content] of Object.entries(broken)) await writeFile(name, content)
    await refused(t, folder)
    for (const [name, content] of Object.entries(broken)) assert.equal(await readFile(name, 'utf8'), content)
  })
})

test('a second process on the same file refuses to start', async (t) => {
  const { folder, file } = await folderFor(t, settings({}))
  const first = await startHub(t, { folder })
  const before = await readFile(file)
  assert.match(await refused(t, folder), new RegExp(`process|already|${process.pid}`, 'i'))
  assert.deepEqual(await readFile(file), before)
  await managed(first, 'POST', '/servers', { name: 'still', config: parked() })
  assert.equal(await first.stop(), 0)
  const third = await startHub(t, { folder })
  assert.deepEqual(names(await managed(third, 'GET', '/servers')), ['still'])
})
