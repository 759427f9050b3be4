// The settings file of a gateway process: nothing acknowledged is lost by kill -9, and one file serves one process.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { manage, managed, parked } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { at, names, settings, within, type Json } from '../helpers/client.ts'
import { spawnHub, startHub, until, type Hub } from '../helpers/hub.ts'

const rounds = Number(process.env.KILL_ROUNDS ?? 3)

/** A folder that outlives the gateways started in it. */
async function folderFor (t: Test, content?: object): Promise<{ folder: string, file: string }> {
  const folder = await temporaryFolder(t)
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

/** What may be stored: of each server the last acknowledged description, and those never answered; undefined: it is not there. */
class Written {
  readonly possible = new Map<string, Set<string | undefined>>()
  acknowledged = 0
  /** Runs with each acknowledged change. */
  onAcknowledged = (): void => {}

  /** Sends a change; false: the gateway is gone. */
  async #change (hub: Hub, name: string, state: string | undefined, method: string, route: string, body?: unknown): Promise<boolean> {
    this.possible.set(name, new Set([...this.possible.get(name) ?? [undefined], state]))
    const answer = await manage(hub, method, route, body).catch(() => undefined)
    if (answer === undefined) return false
    assert.equal(answer.status, 200, `${method} ${route}: ${answer.text}`)
    this.possible.set(name, new Set([state]))
    this.acknowledged++
    this.onAcknowledged()
    return true
  }

  /** Makes, changes and removes servers until the gateway is gone. */
  async write (hub: Hub, mark: string): Promise<void> {
    for (let n = 0; ; n++) {
      const name = `${mark}-${n}`
      if (!await this.#change(hub, name, 'one', 'POST', '/servers', { name, config: parked('one') })) return
      if (n % 2 === 0 && !await this.#change(hub, name, 'two', 'PUT', `/servers/${name}`, { config: parked('two') })) return
      if (n % 5 === 0 && !await this.#change(hub, name, undefined, 'DELETE', `/servers/${name}`)) return
    }
  }

  /** What a gateway serves is what was acknowledged, or may have been stored. From now on it is known. */
  async compare (hub: Hub, round: number): Promise<void> {
    const shown = await managed(hub, 'GET', '/servers') as unknown as Json[]
    const stored = new Map(shown.map(({ name, config }) => [String(name), String(at(config, 'description'))]))
    for (const [name, states] of this.possible) {
      const is = stored.get(name)
      assert.ok(states.has(is), `round ${round}: ${name} is ${is}, not one of ${[...states].join()}`)
      this.possible.set(name, new Set([is]))
    }
    for (const name of stored.keys()) assert.ok(this.possible.has(name), `round ${round}: nobody made ${name}`)
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

test('a file that is broken, and its .bak as well: the process ends with a sentence, and both stay as they are', async (t) => {
  const { folder, file } = await folderFor(t)
  const broken = { [file]: '{"mcpServers": {"a": {', [`${file}.bak`]: '{"mcpServers": ' }
  for (const [name, content] of Object.entries(broken)) await writeFile(name, content)
  await refused(t, folder)
  for (const [name, content] of Object.entries(broken)) assert.equal(await readFile(name, 'utf8'), content)
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
