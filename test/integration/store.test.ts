import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import filePromises, { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { test } from 'tap'
import { applyChanges, type SettingsDocument } from '../../db/apply.ts'
import { JsonFileStore } from '../../db/json/file.ts'
import { restoreInterruptedWrite, backUpAndOverwrite } from '../../db/json/recovery.ts'
import { FileRecords } from '../../db/json/records.ts'
import { OAuthTokens } from '../../db/ports/tokens.ts'
import { vault } from '../fakes/replica.ts'
import { FileEditedError } from '../../db/json/write.ts'
import { ConflictError, InvalidChangeError, StorageError, type Change, type Snapshot } from '../../db/store.ts'
import { Settings } from '../../plugins/settings/settings.ts'
import { change, storeContract } from '../contracts/store.ts'
import { startWriter } from '../contracts/store-kill.ts'
import { openFile, temporaryFolder, type OpenedFile } from '../fakes/store-file.ts'
import { silence } from '../helpers/client.ts'
import { until, type Cleanup } from '../helpers/hub.ts'

const server = (key: string, description = ''): Change => ({ entity: 'mcpServers', key, value: { command: 'node', description } })
const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

storeContract('file', openFile)

/** A test on a settings file that holds this. */
function onFile (
  what: string,
  settings: object | string | Buffer | undefined,
  run: (opened: OpenedFile & { t: Cleanup }) => Promise<void>
): void {
  void test(`file: ${what}`, async (t) => { await run({ ...(await openFile(t, settings)), t }) })
}

onFile('a refusal names a whole backup, and no other', '{"mcpServers": {"a"', async ({ store, path }) => {
  const refused = async (): Promise<string> => await store.load().then(() => 'loaded', ({ message }: Error) => message)
  await writeFile(`${path}.bak`, '{"mcpServers"')
  assert.doesNotMatch(await refused(), /backup/)
  await writeFile(`${path}.bak`, '{"mcpServers": {}}')
  assert.match(await refused(), /not valid JSON.* valid backup, \S+\.bak, was written at \S+Z: to return to it, .*copy it to \S+ and start again\.$/)
  assert.equal(await readFile(path, 'utf8'), '{"mcpServers": {"a"')
})

onFile('a read that the system refuses is no edit: nothing is changed, and the log says what to do', {}, async ({ store, path, warnings, t }) => {
  const { version } = await store.load()
  const { open } = filePromises
  const restore = (): void => {
    filePromises.open = open
    syncBuiltinESMExports()
  }
  t.after(restore)
  for (const code of ['EMFILE', 'ENFILE']) {
    filePromises.open = async () => { throw Object.assign(new Error(`${code}: too many open files, open`), { code }) }
    syncBuiltinESMExports()
    const isAway = (error: unknown): boolean =>
      error instanceof StorageError && !error.isFull && error.message.includes(code) && !error.message.includes(path)
    await assert.rejects(store.commit([server('a')], version), isAway)
    assert.match(store.health(true) ?? '', new RegExp(code))
    restore()
    await store.load()
    assert.equal(store.health(), undefined)
  }
  assert.equal(warnings.filter((line) => /Raise the limit of open files/.test(line)).length, 2, warnings.join('\n'))
  assert.doesNotMatch(warnings.join(), /edited|valid|correct/)
  assert.ok((await store.commit([server('a')], version)).servers.has('a'))
})

for (const [what, content, word] of [
  ['cut off', '{"mcpServers": {"a"', 'not valid JSON'],
  ['an excerpt', '{"token": "secret" oops}', 'not valid JSON'],
  ['empty', '', 'empty'],
  ['only space', ' \n', 'empty'],
  ['binary', Buffer.from([0, 1, 0xff, 0xfe]), 'UTF-8'],
  ['a list', '[]', 'object'],
  ['null', 'null', 'object'],
  ['a number', '1', 'object'],
  ['a system configuration that is wrong', '{"systemConfig":{"routing":{"skipAuth":"yes"}}}', 'systemConfig']
] as const) {
  onFile(`${what} is refused with a sentence, its bytes untouched`, content, async ({ store, path, folder }) => {
    const { mtimeMs } = await stat(path)
    await assert.rejects(
      store.load(),
      (error: Error) =>
        error.message.includes(path) && error.message.includes(word) && !error.message.includes('secret') && !error.message.includes('\n')
    )
    assert.deepEqual(await readFile(path), Buffer.from(content))
    assert.equal((await stat(path)).mtimeMs, mtimeMs)
    assert.deepEqual(await readdir(folder), ['mcp_settings.json'])
  })
}

void test('file: a missing file is made by the first commit, with its folder', async (t) => {
  const path = join(await temporaryFolder(t), 'a', 'b', 'settings.json')
  const store = new JsonFileStore(path, () => {})
  t.after(async () => { await store.close() })
  const { version } = await store.load()
  await assert.rejects(stat(path))
  await store.commit([server('a')], version)
  assert.equal(await mode(path), 0o600)
  await store.close()
  assert.deepEqual(await readdir(join(path, '..')), ['settings.json'])
})

onFile(
  'what we do not know stays, in its place; a lax mode does not; the bytes found are kept as .bak',
  {
    'x-first': { a: [1] },
    prompts: [{ name: 'p' }],
    mcpServers: { a: { command: 'x', odd: 1 } },
    users: [{ username: 'u', email: 'e' }],
    zz: null
  },
  async ({ store, path, document }) => {
    await chmod(path, 0o644)
    const before = await readFile(path)
    await change(store, () => [server('b'), { entity: 'systemConfig', value: {} }])
    assert.deepEqual(Object.keys(await document()), ['x-first', 'prompts', 'mcpServers', 'users', 'zz', 'systemConfig'])
    assert.deepEqual(await document(), {
      'x-first': { a: [1] },
      prompts: [{ name: 'p' }],
      mcpServers: { a: { command: 'x', odd: 1 }, b: { command: 'node', description: '' } },
      users: [{ username: 'u', email: 'e' }],
      zz: null,
      systemConfig: {}
    })
    assert.equal(await mode(path), 0o600)
    assert.equal(await mode(`${path}.bak`), 0o600)
    await change(store, () => [server('c')])
    assert.deepEqual(await readFile(`${path}.bak`), before)
  }
)

/** Servers in the order of this text, whatever JavaScript makes of their names. */
const textOrder = `{
  "0": "kept", "note": {"mcpServers": {"9": 1}, "quoted": "\\"mcpServers\\": {"},
  "mcpServers": {"lost": {}},
  "mcpServers": {
    "b": {"command": "node", "env": {"2": "x", "1": "y"}, "args": ["{", "\\\\", "\\"7\\":"]},
    "1": {"command": "node"}, "\\u0061": {"command": "node"}, "0": {"command": "node"}, "b:1": {"command": "node"},
    "1": {"command": "node", "description": "the last of two"}
  }
}`

onFile(
  'servers are in the order of the text, also those with numbers as names, after each write, edit and restart',
  textOrder,
  async ({ store, path, reopen }) => {
    const order = ({ servers }: Snapshot): string[] => [...servers.keys()]
    const first = await store.load()
    assert.deepEqual(order(first), ['b', '1', 'a', '0', 'b:1'])
    assert.equal(first.servers.get('1')?.config.description, 'the last of two')
    const next = await change(store, () => [server('5'), { entity: 'users', key: 'u', value: { username: 'u' } }])
    assert.deepEqual(order(next), ['b', '1', 'a', '0', 'b:1', '5'])
    assert.equal(next.servers.get('b'), first.servers.get('b'), 'what did not change is the same object')
    const text = await readFile(path, 'utf8')
    assert.match(text, /\n {4}"b": \{\n {6}"command": "node",/, 'as people read it')
    assert.deepEqual([...text.matchAll(/^ {4}"([^"]+)": \{/gm)].map(([, name]) => name), ['mcpServers', 'b', '1', 'a', '0', 'b:1', '5'])
    assert.deepEqual((JSON.parse(text) as SettingsDocument)[0], 'kept', 'what is unknown stays')
    await writeFile(path, text.replace('"1": {', '"8": {').replace('"5": {', '"1": {'))
    assert.deepEqual(order(await store.load()), ['b', '8', 'a', '0', 'b:1', '1'], 'an edit of nothing but their order counts')
    assert.deepEqual(order(await (await reopen()).load()), ['b', '8', 'a', '0', 'b:1', '1'])
  }
)

onFile('others cannot read it once it is loaded', { bearerKeys: [{ id: 'k', name: 'k', token: 'thk_1' }] }, async ({ store, path }) => {
  await chmod(path, 0o644)
  await store.load()
  assert.equal(await mode(path), 0o600)
})

onFile(
  'tokens in plain leave the .bak with the file',
  { bearerKeys: [{ id: 'k', name: 'k', token: 'thk_in-plain' }], systemConfig: { routing: { bearerAuthKey: 'thk_in-plain' } } },
  async ({ store, path }) => {
    const settings = await Settings.open(store)
    await settings.change(() => [server('a')])
    assert.match(await readFile(`${path}.bak`, 'utf8'), /thk_in-plain/)
    await settings.change(({ system }) => [{ entity: 'systemConfig', value: { ...system, routing: {} } }])
    for (const each of [path, `${path}.bak`]) {
      const text = await readFile(each, 'utf8')
      assert.ok(text.includes('"a"') && !text.includes('thk_in-plain'), text)
    }
  }
)

onFile(
  'a .bak that keeps a token in plain is told',
  { systemConfig: { routing: { bearerAuthKey: 'thk_in-plain' } } },
  async ({ store, path, warnings }) => {
    const settings = await Settings.open(store)
    await settings.change(() => [server('a')])
    await rm(`${path}.bak`)
    await mkdir(`${path}.bak`)
    await settings.change(({ system }) => [{ entity: 'systemConfig', value: { ...system, routing: {} } }])
    assert.doesNotMatch(await readFile(path, 'utf8'), /thk_in-plain/)
    assert.match(warnings.join('\n'), /^The backup \(\.bak\).* could not be overwritten \(EISDIR\).*: delete the backup\.$/m)
  }
)

onFile(
  'a change that changes nothing is not written',
  { mcpServers: { a: { command: 'node', description: '' } } },
  async ({ store, path }) => {
    const before = await readFile(path)
    const snapshot = await store.load()
    assert.equal(await store.commit([server('a')], snapshot.version), snapshot)
    assert.deepEqual(await readFile(path), before)
  }
)

onFile(
  'a section of another kind is kept, and not written over',
  { groups: { odd: true }, mcpServers: [1] },
  async ({ store, document }) => {
    const { version, problems } = await store.load()
    assert.equal(problems.length, 2)
    await assert.rejects(store.commit([server('a')], version), InvalidChangeError)
    await assert.rejects(store.commit([{ entity: 'groups', key: 'g', value: { id: 'g', name: 'g', servers: [] } }], version), InvalidChangeError)
    await store.commit([{ entity: 'users', key: 'u', value: { username: 'u' } }], version)
    assert.deepEqual(await document(), { groups: { odd: true }, mcpServers: [1], users: [{ username: 'u' }] })
  }
)

onFile('through symbolic links the real file is written', { mcpServers: {} }, async ({ path, folder, t }) => {
  await mkdir(join(folder, 'links'))
  await symlink('../mcp_settings.json', join(folder, 'links', 'inner.json'))
  const link = join(folder, 'links', 'outer.json')
  await symlink(join(folder, 'links', 'inner.json'), link)
  const store = new JsonFileStore(link, () => {})
  t.after(async () => { await store.close() })
  await change(store, () => [server('a')])
  assert.deepEqual((await readdir(join(folder, 'links'))).sort(), ['inner.json', 'outer.json'])
  assert.match(await readFile(path, 'utf8'), /"a"/)
  await writeFile(path, '{"mcpServers":{"b":{"command":"x"}}}')
  assert.deepEqual([...(await store.load()).servers.keys()], ['b'])
})

onFile(
  'edits are picked up, however they are made; a new format is no edit',
  { mcpServers: { a: { command: 'x' } } },
  async ({ store, path, warnings }) => {
    const before = await store.load()
    const told: Snapshot[] = []
    store.onChange((snapshot) => { told.push(snapshot) })
    await writeFile(path, '{\t"mcpServers":{"a":{"command":"x"}}}')
    await store.load()
    assert.equal(told.length, 0)
    for (const [at, edit] of [
      async (text: string) => { await writeFile(path, text) },
      async (text: string) => {
        await writeFile(`${path}.new`, text)
        await rename(`${path}.new`, path)
      },
      async (text: string) => {
        rmSync(path)
        writeFileSync(path, text)
      },
      // The same size and time as before: only the content tells.
      async (text: string) => {
        const { atime, mtime } = await stat(path)
        await writeFile(path, text)
        await utimes(path, atime, mtime)
      }
    ].entries()) {
      await edit(JSON.stringify({ mcpServers: { a: { command: 'x' }, [`b${at}`]: { command: 'y' } } }))
      await until(() => told.length === at + 1, `edit ${at} was not seen`)
      assert.deepEqual([...(told[at]?.servers.keys() ?? [])], ['a', `b${at}`])
      assert.equal(told[at]?.servers.get('a'), before.servers.get('a'))
    }
    assert.deepEqual(warnings, [])
  }
)

onFile(
  'a bad edit is told once and ignored, and never written over',
  { mcpServers: { a: { command: 'x' } } },
  async ({ store, path, warnings }) => {
    const before = await store.load()
    store.onChange(() => { warnings.push('told') })
    await writeFile(path, '{"mcpServers": {')
    await assert.rejects(
      store.commit([server('b')], before.version),
      (error) => error instanceof ConflictError && error.isFileEdit && !error.message.includes(path)
    )
    await until(() => warnings.length > 0, 'no warning')
    // It looks at the file once a second.
    await silence(1_100)
    assert.equal(warnings.length, 1, warnings.join('\n'))
    assert.ok(warnings[0]?.includes(path))
    assert.ok(store.health() !== undefined && store.health(true) !== undefined)
    assert.equal(await readFile(path, 'utf8'), '{"mcpServers": {')
    await writeFile(path, '{"mcpServers":{"a":{"command":"x"}}}')
    await until(() => store.health() === undefined, 'still bad')
    await store.commit([server('b')], before.version)
  }
)

onFile('a file that an edit leaves open to others is closed, and that is told', {}, async ({ store, path, warnings }) => {
  await store.load()
  const text = '{"mcpServers":{"a":{"command":"x"}}}'
  await writeFile(`${path}.new`, text)
  await chmod(`${path}.new`, 0o666)
  await rename(`${path}.new`, path)
  await until(async () => (await store.load()).servers.has('a'))
  assert.equal(await mode(path), 0o600)
  assert.equal(warnings.filter((sentence) => /could be written by other users/.test(sentence)).length, 1)
})

onFile(
  'a commit on top of an edit tells of the edit first',
  { mcpServers: { a: { command: 'x' } } },
  async ({ store, elsewhere, document }) => {
    const before = await store.load()
    const told: Snapshot[] = []
    store.onChange((snapshot) => { told.push(snapshot) })
    await elsewhere([server('b')])
    const refused = store.commit([server('c')], before.version).catch((error: unknown) => {
      assert.equal(told.length, 1)
      return error
    })
    assert.ok(await refused.then((error) => error instanceof ConflictError && error.isFileEdit))
    await store.commit([server('c')], told[0]?.version ?? 0)
    assert.deepEqual(Object.keys((await document()).mcpServers as object), ['a', 'b', 'c'])
  }
)

for (const [how, edit] of [
  ['renamed into its place', (path: string, text: string) => { writeFileSync(`${path}.new`, text); renameSync(`${path}.new`, path) }],
  ['written into it', (path: string, text: string) => { writeFileSync(path, text) }]
] as const) {
  onFile(`an edit ${how} while changes are written is not lost`, { mcpServers: {} }, async ({ store, path, document, t }) => {
    const settings = await Settings.open(store)
    t.after(async () => { await settings.close() })
    const edits: string[] = []
    const changes: string[] = []
    const count = { begun: 0 }
    const turn = async (): Promise<void> => { await new Promise((resolve) => { setImmediate(resolve) }) }
    const editing = (async () => {
      // An edit during each change, at another moment of it.
      for (let n = 0; edits.length < 15; n++) {
        for (const { begun } = count; count.begun === begun;) await turn()
        for (let turns = 0; turns < n * 10; turns++) await turn()
        // An editor reads and saves; in one go, so that it is not its own doing when something is lost.
        let text: SettingsDocument
        try { text = JSON.parse(readFileSync(path, 'utf8')) as SettingsDocument } catch { continue }
        edit(path, JSON.stringify({ ...text, mcpServers: { ...text.mcpServers as object, [`e${n}`]: { command: 'x' } } }))
        edits.push(`e${n}`)
      }
    })()
    const tokens = new OAuthTokens(new FileRecords(store as JsonFileStore, await vault()))
    for (let n = 0; edits.length < 15; n++) {
      count.begun++
      try {
        await settings.change(() => [server(`c${n}`)])
        changes.push(`c${n}`)
        await tokens.put({ family: `f${n}`, clientId: 'c' }, [
          { hash: `h${n}`, kind: 'refresh', scope: '', expiresAt: Date.now() + 3_600_000 }
        ])
      } catch (error) {
        // Half of an edit that is written into the file is a bad one.
        assert.match(String(error), /edited.* is not valid/)
      }
    }
    await editing
    await settings.change(() => [server('last')])
    const there = Object.keys((await document()).mcpServers as object)
    assert.ok(changes.length > 5, `${changes.length} changes`)
    assert.deepEqual([...edits, ...changes].filter((name) => !there.includes(name)), [])
    assert.deepEqual([...settings.current.servers.keys()].sort(), there.sort())
  })
}

const whole = {
  mcpServers: { a: { command: 'x' } },
  users: [{ username: 'u' }],
  groups: [{ id: 'g', name: 'g', servers: [] }],
  bearerKeys: [{ id: 'k', name: 'k' }],
  oauthClients: [{ clientId: 'c', name: 'c', redirectUris: [] }],
  oauthConsents: [{ username: 'u', clientId: 'c', scope: 'mcp', grantedAt: 1 }],
  oauthTokens: [{ accessToken: 'of another program' }]
}
onFile('an edit that makes another kind of value of a section is a bad one', whole, async ({ store, path }) => {
  const before = await store.load()
  store.onChange(() => { assert.fail('told of a bad edit') })
  for (const [name, value] of [
    ['users', {}], ['groups', 'x'], ['bearerKeys', null], ['mcpServers', []], ['mcpServers', null], ['mcpServers', 5],
    ['oauthClients', {}], ['oauthConsents', null], ['oauthTokens', 'text']
  ] as const) {
    await writeFile(path, JSON.stringify({ ...whole, [name]: value }))
    await assert.rejects(store.load(), new RegExp(`"${name}" is not (a list|an object)\\.`))
    await assert.rejects(store.commit([server('b')], before.version), ConflictError)
    assert.notEqual(store.health(true), undefined)
    await writeFile(path, JSON.stringify(whole))
    await store.load()
    assert.equal(store.health(), undefined)
  }
})

onFile('an edit may leave a section out', whole, async ({ store, path }) => {
  await store.load()
  await writeFile(path, JSON.stringify({ ...whole, users: undefined }))
  assert.equal((await store.load()).users.size, 0)
})

onFile(
  'a file that goes away is told, and written anew by the next commit',
  { mcpServers: { a: { command: 'x' } } },
  async ({ store, path, warnings, document }) => {
    await store.load()
    await rm(path)
    await until(() => warnings.length > 0, 'no warning')
    await change(store, () => [server('b')])
    assert.deepEqual(Object.keys((await document()).mcpServers as object), ['a', 'b'])
    assert.equal(warnings.length, 1)
  }
)

for (const [what, settings] of [['an invalid file that goes away is gone', { mcpServers: {} }], ['so is one where none was', undefined]] as const) {
  onFile(`${what}, not valid again`, settings, async ({ store, path, warnings }) => {
    await store.load()
    await writeFile(path, '{')
    await until(() => warnings.length > 0, 'the edit is not told')
    await rm(path)
    await until(() => warnings.length > 1, 'the loss is not told')
    assert.equal(store.health(), undefined)
    await writeFile(path, '{}')
    await until(() => settings === undefined ? store.health() === undefined : warnings.length > 2, 'the return is not told')
    assert.match(warnings[0] ?? '', /not valid JSON.*The last valid settings stay in effect/)
    assert.match(warnings[1] ?? '', /no longer exists\. The last settings stay in effect/)
    assert.deepEqual(warnings.slice(2).map((line) => / exists again\.$/.test(line)), settings === undefined ? [] : [true])
  })
}

onFile('an invalid file that is replaced by removing it first is valid again', { mcpServers: {} }, async ({ store, path, warnings }) => {
  await store.load()
  await writeFile(path, '{')
  await until(() => warnings.length > 0, 'the edit is not told')
  await rm(path)
  await store.load()
  await writeFile(path, '{"mcpServers": {}}')
  await until(() => warnings.length > 1, 'the correction is not told')
  assert.match(warnings[1] ?? '', /is valid again, and in effect/)
})

onFile('a folder in its place cannot be read, and nothing else is said of it', undefined, async ({ folder, path, warnings }) => {
  await mkdir(path)
  await chmod(folder, 0o555)
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.(65534)
  try {
    const store = new JsonFileStore(path, (line) => { warnings.push(line) })
    await assert.rejects(store.load(), /cannot be read \(EISDIR\)/)
  } finally {
    if (isRoot) process.seteuid?.(0)
    await chmod(folder, 0o755)
  }
  assert.deepEqual(warnings, [])
})

onFile('a second process is refused, by its number', {}, async ({ store, path, reopen, t }) => {
  const { child, said } = startWriter(t, path)
  await said('ready')
  child.stdin.write('go x\n')
  await said('loaded')
  await assert.rejects(
    store.load(),
    (error: Error) => error.message.includes(path) && error.message.includes(`pid ${child.pid}`) && !error.message.includes('\n')
  )
  await said('ok')
  child.kill('SIGKILL')
  await once(child, 'close')
  const again = await reopen()
  assert.ok((await again.load()).servers.size > 0)
  const twice = new JsonFileStore(path, () => {})
  await assert.rejects(twice.load(), (error: Error) => error.message.includes(`pid ${process.pid}`))
  await again.close()
  await assert.rejects(stat(`${path}.lock`))
})

onFile('a lock that nobody holds is taken over', {}, async ({ path, reopen }) => {
  for (const lock of [
    '', 'garbage', 'null', '{"pid":-1}', '{"pid":999999999,"started":"x","id":"x"}',
    `{"pid":${process.pid},"started":"another boot/1","id":"x"}`, '{"pid":1,"started":"x/1","id":"x"}'
  ]) {
    await writeFile(`${path}.lock`, lock)
    const store = await reopen()
    await store.load()
    assert.equal((JSON.parse(await readFile(`${path}.lock`, 'utf8')) as { pid: number }).pid, process.pid, lock)
    await change(store, () => [server(`s${lock.length}`)])
  }
})

onFile(
  'in a folder that cannot be written it is read, and says why it cannot write',
  { mcpServers: { a: { command: 'x' } } },
  async ({ store, folder, path, reopen, warnings }) => {
    await chmod(path, 0o644)
    await chmod(folder, 0o555)
    // Root writes anywhere.
    const isRoot = process.geteuid?.() === 0
    if (isRoot) process.seteuid?.(65534)
    try {
      const snapshot = await store.load()
      assert.equal(snapshot.servers.size, 1)
      assert.match(store.health() ?? '', /EACCES/)
      assert.match(warnings.join(), new RegExp(`^The settings file ${path} can be read, but not written\\. .*EACCES`))
      const [settings, readonly] = [await Settings.open(store), await Settings.open(store, true)]
      assert.deepEqual([settings.storeProblem, readonly.storeProblem], [store.health(), undefined], 'who is not to write is ready')
      await assert.rejects(
        store.commit([server('b')], snapshot.version),
        (error) => error instanceof StorageError && !error.isFull && !error.message.includes(folder)
      )
      await chmod(path, 0o000).catch(() => {})
      if (isRoot) process.seteuid?.(0)
      await chmod(path, 0o000)
      if (isRoot) process.seteuid?.(65534)
      await assert.rejects((await reopen()).load(), (error: Error) => error.message.includes(path) && error.message.includes('EACCES'))
    } finally {
      if (isRoot) process.seteuid?.(0)
      await chmod(folder, 0o755)
      await chmod(path, 0o600)
    }
    const again = await reopen()
    await change(again, () => [server('b')])
    assert.equal(again.health(), undefined)
  }
)

onFile('what an interrupted process left is cleared away', { mcpServers: {} }, async ({ store, path, folder }) => {
  await writeFile(`${path}.tmp`, '{"mcpServers": {"half')
  await store.load()
  assert.deepEqual((await readdir(folder)).sort(), ['mcp_settings.json', 'mcp_settings.json.lock'])
})

onFile('an interrupted write in place is undone from a whole .bak', '{"mcpServers": {"half', async ({ path, reopen, folder }) => {
  const good = '{"mcpServers":{"a":{"command":"x"}}}'
  const sum = `${createHash('sha256').update(good).digest('hex')}  mcp_settings.json.bak\n`
  const torn = await readFile(path)
  for (const [bak, marker] of [[good, undefined], [good.slice(1), sum], [undefined, sum], [good, 'x']] as const) {
    for (const [name, text] of [[`${path}.bak`, bak], [`${path}.bak.sha256`, marker]] as const) {
      if (text === undefined) await rm(name, { force: true })
      else await writeFile(name, text)
    }
    await assert.rejects((await reopen()).load(), /not valid JSON/)
    assert.deepEqual(await readFile(path), torn)
  }
  for (const left of [torn, Buffer.alloc(0)]) {
    await writeFile(path, left)
    await writeFile(`${path}.bak`, good)
    await writeFile(`${path}.bak.sha256`, sum)
    const store = await reopen()
    const snapshot = await store.load()
    assert.deepEqual([...snapshot.servers.keys()], ['a'])
    assert.equal(snapshot.problems.length, 1)
    assert.equal(await readFile(path, 'utf8'), good)
    assert.deepEqual((await readdir(folder)).sort(), ['mcp_settings.json', 'mcp_settings.json.bak', 'mcp_settings.json.lock'])
  }
})

void test('file: writing in place keeps the old bytes until it is done, and the inode', async (t) => {
  const path = join(await temporaryFolder(t), 'x.json')
  await writeFile(path, 'old and longer')
  const { ino } = await stat(path)
  await backUpAndOverwrite(path, Buffer.from('new'), Buffer.from('old and longer'))
  assert.equal(await readFile(path, 'utf8'), 'new')
  assert.equal(await readFile(`${path}.bak`, 'utf8'), 'old and longer')
  assert.equal((await stat(path)).ino, ino)
  assert.equal(await mode(path), 0o600)
  assert.equal(await restoreInterruptedWrite(path), undefined)
  await assert.rejects(
    backUpAndOverwrite(path, Buffer.from('newer'), Buffer.from('new'), () => {
      writeFileSync(path, 'an edit')
      throw new FileEditedError()
    }),
    FileEditedError
  )
  assert.equal(await readFile(path, 'utf8'), 'an edit')
  assert.equal(await restoreInterruptedWrite(path), undefined)
})

void test('apply: shares what is not touched', async () => {
  const document: SettingsDocument = {
    mcpServers: { a: { command: 'a' }, b: {} },
    groups: [{ id: 'g', name: 'g', servers: ['a'] }, 'odd', { id: 'g', name: 'twice', servers: [] }],
    users: null
  }
  assert.equal(applyChanges(document, []), document)
  assert.equal(
    applyChanges(document, [
      { entity: 'mcpServers', key: 'a', value: { command: 'a' } },
      { entity: 'users', key: 'x', value: undefined }
    ]),
    document
  )
  const next = applyChanges(document, [server('b')])
  assert.equal((next.mcpServers as SettingsDocument).a, (document.mcpServers as SettingsDocument).a)
  assert.equal(next.groups, document.groups)
  assert.deepEqual(applyChanges(document, [{ entity: 'groups', key: 'g', value: undefined }]).groups, ['odd'])
  const many = applyChanges(document, Array.from({ length: 100 }, (_, n) => server(`s${n}`)))
  assert.equal(Object.keys(many.mcpServers as object).length, 102)
})
