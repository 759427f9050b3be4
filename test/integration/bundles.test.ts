// Bundles by the API: what is refused, what is left, and what a bundle becomes. nightly/packed-bundles runs those of the official packer.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { request, type ClientRequest } from 'node:http'
import { join } from 'node:path'
import { mock } from 'node:test'
import { test, type Test } from 'tap'
import type { FastifyInstance } from 'fastify'
import { BundlesFolder } from '../../plugins/management/bundles/folder.ts'
import { createBundleProblemFinder, bundleNamesOf, resolveLaunch } from '../../plugins/management/bundles/launch.ts'
import { parseManifest } from '../../plugins/management/bundles/manifest.ts'
import { appFor } from '../helpers/app.ts'
import {
  askHub, bundlesBeside, fieldOf, filesBelow, injectBundle, multipartOf, multipartType, sendBundle, shellServer
} from '../helpers/bundles.ts'
import { at, connected, KEY, OTHER, otherKey, Session, settings, text, type Json } from '../helpers/client.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { bundleEntries, hostile, manifest, zip } from '../fakes/zip.ts'

/** A folder of bundles, removed after the test. */
async function rootFor (t: Test): Promise<string> {
  return join(await temporaryFolder(t), 'bundles')
}

async function start (t: Test, root: string, servers: Json = {}, more: Json = {}): Promise<FastifyInstance> {
  return await appFor(t, settings(servers, more), {}, { bundles: { root, isShared: false } })
}

const upload = async (app: FastifyInstance, more: object = {}, files: object[] = []): Promise<Json> => {
  const answer = await injectBundle(app, KEY, multipartOf(zip([...bundleEntries(more), ...files as []])))
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json<{ data: Json }>().data
}

const authorization = `Bearer ${KEY}`

/** A request to the management API that must succeed. */
async function store (app: FastifyInstance, method: 'POST' | 'PUT' | 'DELETE', url: string, payload?: object): Promise<void> {
  const answer = await app.inject({ method, url: `/api/servers${url}`, payload, headers: { authorization } })
  assert.equal(answer.statusCode, 200, answer.body)
}

const listen = async (app: FastifyInstance): Promise<URL> => new URL(await app.listen({ host: '127.0.0.1', port: 0 }))

/** Sends the head of an upload. @returns the request, and the status that it is answered with; 0: its connection was cut */
function begin (
  url: URL, length: number, headers: Record<string, string> = { authorization }, path = '/api/mcpb/upload'
): { posting: ClientRequest, status: Promise<number> } {
  const posting = request(new URL(path, url), {
    method: 'POST', headers: { 'content-type': multipartType, 'content-length': String(length), ...headers }
  })
  const status = new Promise<number>((resolve) => {
    posting.on('response', (response) => { response.resume(); resolve(response.statusCode ?? 0) }).on('error', () => { resolve(0) })
  })
  return { posting, status }
}

test('a bundle whose name differs from another one in case only is refused', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  await upload(app, { name: 'weather' })
  const files = await filesBelow(root)
  const answer = await injectBundle(app, KEY, multipartOf(zip(bundleEntries({ name: 'WEATHER' }))))
  assert.equal(answer.statusCode, 400, answer.body)
  assert.match(answer.body, /differs only by case/)
  assert.deepEqual(await filesBelow(root), files)
  await upload(app, { name: 'weather' })
})

test('hostile archives are refused, and nothing is left of them', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  await upload(app)
  const files = await filesBelow(root)
  for (const [what, [archive, reason]] of Object.entries(hostile())) {
    await t.test(what, async () => {
      const answer = await injectBundle(app, KEY, multipartOf(archive))
      assert.equal(answer.statusCode, 400, answer.body)
      assert.equal(answer.json<Json>().code, 'TH_INVALID_BUNDLE')
      assert.match(String(answer.json<Json>().message), reason)
      assert.deepEqual(await filesBelow(root), files, 'the bundle of that name is as it was')
    })
  }
})

test('archives of other packers are accepted', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)

  await t.test('Python\'s zipfile, and bytes behind the archive that are a signature', async () => {
    const folder = await temporaryFolder(t)
    const path = join(folder, 'a.mcpb')
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest({ name: 'python-made' })))
    const script = 'import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED)\nz.write(sys.argv[2], "manifest.json")\nz.writestr("server/index.js", "//")\nz.close()'
    try {
      execFileSync('python3', ['-c', script, path, join(folder, 'manifest.json')])
    } catch {
      t.comment('there is no Python here')
      return
    }
    const plain = await readFile(path)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(5)
    const signed = Buffer.concat([plain, Buffer.from('MCPB_SIG_V1'), length, Buffer.from('12345'), Buffer.from('MCPB_SIG_END')])
    for (const archive of [plain, signed]) {
      const answer = await injectBundle(app, KEY, multipartOf(archive))
      assert.equal(answer.statusCode, 200, answer.body)
    }
    const forged = Buffer.concat([plain, Buffer.from('MCPB_SIG_V1'), length, Buffer.from('1234'), Buffer.from('MCPB_SIG_END')])
    assert.equal((await injectBundle(app, KEY, multipartOf(forged))).statusCode, 400)
  })

  await t.test('modes become 0644 and 0755, whatever the archive and the umask say', async (t) => {
    const former = process.umask(0o077)
    t.after(() => { process.umask(former) })
    await upload(app, { name: 'modes' }, [
      { name: 'run', data: '#!/bin/sh', both: { mode: 0o104777 } },
      { name: 'plain', data: 'x', both: { mode: 0o100600 } },
      { name: 'none', data: 'x', both: { mode: 0 } },
      { name: 'folder/', data: '' }
    ])
    const modeOf = async (name: string): Promise<number> => (await stat(join(root, 'modes/current', name))).mode & 0o7777
    assert.deepEqual(
      await Promise.all(['run', 'plain', 'none', 'folder', 'server', '.', '..'].map(modeOf)), [0o755, 0o644, 0o644, 0o755, 0o755, 0o755, 0o755]
    )
  })
})

test('bodies that are no upload are refused', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  const archive = zip(bundleEntries())
  const refused: Record<string, [Buffer, number]> = {
    'another field': [multipartOf(archive, 'file'), 400],
    'a field before it': [multipartOf(archive, 'mcpbFile', fieldOf('name')), 400],
    'two files': [Buffer.concat([multipartOf(archive).subarray(0, -4), Buffer.from('\r\n'), multipartOf(archive)]), 400],
    'no end': [multipartOf(archive).subarray(0, -10), 400],
    nothing: [Buffer.alloc(0), 400],
    'an inherited name': [multipartOf(archive, '__proto__'), 400]
  }
  for (const [what, [payload, status]] of Object.entries(refused)) {
    await t.test(what, async () => {
      const answer = await injectBundle(app, KEY, payload)
      assert.equal(answer.statusCode, status, answer.body)
      assert.deepEqual(await filesBelow(root), [])
    })
  }
  for (const type of ['application/json', 'application/zip', 'multipart/form-data']) {
    const headers = { authorization, 'content-type': type }
    const answer = await app.inject({ method: 'POST', url: '/api/mcpb/upload', headers, payload: '{}' })
    assert.equal(answer.statusCode, 415, answer.body)
    assert.match(answer.json<Json>().message as string, /mcpbFile/)
  }
  assert.deepEqual(await filesBelow(root), [])
})

test('manifests', async (t) => {
  const read = (more: object): unknown => parseManifest(Buffer.from(JSON.stringify(manifest(more))))
  const server = (mcpConfig: object, type = 'node'): object => ({ server: { type, entry_point: 'a', mcp_config: mcpConfig } })

  await t.test('of all versions are read', async () => {
    for (const version of ['0.1', '0.2', '0.3', '0.4']) {
      read({ manifest_version: version })
      read({ manifest_version: undefined, dxt_version: version })
    }
    assert.throws(() => read({ manifest_version: '9.0' }), /manifest_version.*0\.4/)
    assert.throws(() => read({ manifest_version: undefined }), /manifest_version/)
  })

  await t.test('with names that are no names are refused', async () => {
    const names = ['', '.', '..', '...', '.hidden', '_x', '../x', 'a/b', 'a\\b', 'a b', 'é', 'a'.repeat(65), 'a\0', '__proto__', 'constructor', 'mcp', 'call']
    for (const name of names) assert.throws(() => read({ name }), /"name"/, JSON.stringify(name))
    assert.throws(() => read({ name: '_x' }), /letters, digits, "\.", "_" and "-", and not start with "\." or "_"/)
    for (const name of ['a', 'A.b-c_d', 'x'.repeat(64), '-x']) read({ name })
  })

  await t.test('that are no manifests are refused', async () => {
    for (const text of ['', '[]', 'null', '{', '"x"', '['.repeat(100_000), `{"a":${'['.repeat(500)}${']'.repeat(500)}}`, '{}']) {
      assert.throws(() => parseManifest(Buffer.from(text)), /manifest\.json/)
    }
    assert.throws(() => parseManifest(Buffer.from([0x7b, 0xff, 0x7d])), /UTF-8/)
    assert.throws(() => read({ server: { type: 'ruby', entry_point: 'a', mcp_config: { command: 'ruby' } } }), /server\.type/)
    assert.throws(() => read({ server: { type: 'node', entry_point: 'a' } }), /mcp_config/)
  })

  const place = { folder: '/b/x/current', home: '/home/ada', platform: 'linux' }
  const launch = (more: object): ReturnType<typeof resolveLaunch> =>
    resolveLaunch(parseManifest(Buffer.from(JSON.stringify(manifest(more)))), place)

  /* eslint-disable no-template-curly-in-string */
  await t.test('become commands', async () => {
    const { command, args, env } = launch(server({
      command: '${__dirname}/bin/run',
      args: ['${__dirname}${/}a', '${HOME}', '${DOCUMENTS}', 'a${pathSeparator}b', '$HOME', '$(id)'],
      env: { ROOT: '${__dirname}' }
    }))
    assert.deepEqual([command, args, env], [
      '/b/x/current/bin/run',
      ['/b/x/current/a', '/home/ada', '/home/ada/Documents', 'a/b', '$HOME', '$(id)'],
      { ROOT: '/b/x/current' }
    ])
  })

  await t.test('take the overrides of the platform', async () => {
    const overrides = { linux: { command: 'python3', env: { A: '2' } }, win32: { command: 'py' } }
    const { command, args, env } = launch(server({ command: 'python', args: ['x'], env: { A: '1' }, platform_overrides: overrides }))
    assert.deepEqual([command, args, env], ['python3', ['x'], { A: '2' }])
  })

  await t.test('name no variables of the gateway', async () => {
    for (const text of ['${JWT_SECRET}', '${PATH}', '${env.X}', '${}', '${user_config.unknown}', '${__proto__}', '${constructor}']) {
      assert.throws(() => launch(server({ command: 'node', args: [text] })), /variable|option/, text)
      assert.throws(() => launch(server({ command: 'node', env: { A: text } })), /variable|option/, text)
    }
    assert.throws(() => launch({
      ...server({ command: 'node', args: ['${user_config.a}'] }),
      user_config: { a: { type: 'string', title: 'A', description: '', default: '${JWT_SECRET}' } }
    }), /variable/)
    for (const [text, value] of [['$${user_config.a}', '{JWT_SECRET}'], ['${user_config.a}{JWT_SECRET}', '$'], ['${user_config.a}JWT_SECRET}', '${'], ['$${user_config.a}{JWT_SECRET}', '{user_config.z$']]) {
      const options = { a: { type: 'string', title: 'A', description: '', default: value } }
      assert.throws(() => launch({ ...server({ command: 'node', env: { A: text } }), user_config: options }), /variable/, text)
      assert.throws(() => launch({ ...server({ command: 'node', args: [`-x${text}`] }), user_config: options }), /variable/, text)
    }
  })

  await t.test('say which options must be set', async () => {
    const option = (more: object): object => ({ type: 'string', title: 'T', description: 'D', ...more })
    const { args, env, requiredOptions: required, warnings } = launch({
      ...server({
        command: 'node',
        args: ['--level', '${user_config.level}', '--mode=${user_config.mode}', '${user_config.folders}', '${user_config.needed}', '--key', '${user_config.key}', '--', '${user_config.mode}x'],
        env: { KEY: '${user_config.key}', OLD: '${user_config.old}', MODE: '${user_config.mode}', NONE: '${user_config.level}', FLAG: '${user_config.flag}', EMPTY: '${user_config.empty}' }
      }),
      user_config: {
        level: option({}),
        mode: option({ default: 'fast' }),
        folders: option({ type: 'directory', multiple: true, default: ['${HOME}/a', '/b'] }),
        needed: option({ required: true }),
        key: option({ required: true, sensitive: true }),
        old: option({ sensitive: true, default: 'a-default-secret' }),
        flag: option({ type: 'boolean', default: false }),
        empty: option({ required: false, default: '' })
      }
    })
    assert.deepEqual(args, ['--mode=fast', '/home/ada/a', '/b', '${user_config.needed}', '--key', '${user_config.key}', '--', 'fastx'])
    assert.deepEqual(env, { KEY: '${user_config.key}', OLD: '${user_config.old}', MODE: 'fast', FLAG: 'false', EMPTY: '' })
    assert.deepEqual(required.map(({ key, sensitive, default: value }) => [key, sensitive, value]), [
      ['needed', false, undefined], ['key', true, undefined], ['old', true, '••••cret']
    ])
    assert.match(warnings.join(), /"key" is in the arguments/)
    assert.match(warnings.join(), /The variable NONE is omitted from the config, since "level" has no value/)
  })

  await t.test('warn of another platform', async () => {
    assert.match(launch({ compatibility: { platforms: ['darwin', 'win32'] } }).warnings.join(), /darwin, win32.*linux/)
  })
  /* eslint-enable no-template-curly-in-string */
})

test('an upload answers what a server needs, and stores none', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)

  await t.test('a node bundle', async () => {
    const data = await upload(app)
    assert.deepEqual(data.config, {
      type: 'stdio', command: 'node', args: [join(root, 'sample/current/server/index.js')], description: 'A sample'
    })
    assert.deepEqual([data.name, data.required, data.usedBy, data.warnings], ['sample', [], [], []])
    assert.equal(app.settings.current.servers.size, 0)
  })

  await t.test('runtimes that are missing are named', async () => {
    const bare = await appFor(t, settings({}), {}, { bundles: { root, isShared: false }, environment: { PATH: '/nowhere' } })
    for (const [type, command, reason] of [['python', 'python', /"python".*install Python/], ['uv', 'uv', /"uv".*install uv/], ['binary', '/opt/none', /does not exist/]] as const) {
      const data = await upload(bare, { name: type, server: { type, entry_point: 'server/index.js', mcp_config: { command } } })
      assert.match(String(at(data, 'warnings', 0)), reason)
    }
    const data = await upload(bare, { name: 'node-there' })
    assert.equal(at(data, 'config', 'command'), process.execPath)
  })

  await t.test('a bundle of the kind uv may leave it to the gateway how it is started, others may not', async () => {
    const uv = { type: 'uv', entry_point: './src/server.py' }
    const data = await upload(app, { manifest_version: '0.4', name: 'by-uv', server: uv }, [
      { name: 'pyproject.toml', data: '[project]' }, { name: 'src/server.py', data: '' }
    ])
    const folder = join(root, 'by-uv/current')
    assert.deepEqual(at(data, 'config', 'args'), ['run', '--directory', folder, join(folder, 'src/server.py')])
    assert.equal(at(data, 'config', 'command'), 'uv')
    const incomplete = await upload(app, { manifest_version: '0.4', name: 'by-uv-2', server: uv })
    assert.match(JSON.stringify(at(incomplete, 'warnings')), /pyproject\.toml.*does not contain its entry point/)
    const node = await injectBundle(app, KEY, multipartOf(zip(bundleEntries({ server: { type: 'node', entry_point: 'server/index.js' } }))))
    assert.equal(node.statusCode, 400)
    assert.match(node.body, /no \\"server\.mcp_config\\"/)
  })

  await t.test('the files of a binary bundle can be run', async () => {
    // eslint-disable-next-line no-template-curly-in-string
    const server = { type: 'binary', entry_point: 'bin/run', mcp_config: { command: '${__dirname}/bin/run' } }
    const data = await upload(app, { name: 'binary', server }, [{ name: 'bin/run', data: '#!/bin/sh', both: { mode: 0o100644 } }])
    assert.equal((await stat(String(at(data, 'config', 'command')))).mode & 0o777, 0o755)
    const answer = await injectBundle(app, KEY, multipartOf(zip(bundleEntries({ name: 'binary-2', server }))))
    assert.match(answer.body, /which it does not contain/)
    // eslint-disable-next-line no-template-curly-in-string
    const outside = { ...server, mcp_config: { command: '${__dirname}/../../../../etc/passwd' } }
    assert.equal((await injectBundle(app, KEY, multipartOf(zip(bundleEntries({ name: 'binary-3', server: outside }))))).statusCode, 400)
  })
})

test('only admins upload, and others are refused before the body is read', async (t) => {
  const root = await rootFor(t)
  const userKey = otherKey({ kind: 'user', owner: 'bob' })
  const app = await start(t, root, {}, { bearerKeys: [(settings({}).bearerKeys as Json[])[0], userKey], users: [{ username: 'bob', isAdmin: false }] })
  const { auth } = app
  const token = auth.createLoginToken(app.settings.current.users.get('bob') ?? { username: '' })
  const url = await listen(app)
  const size = 90 * 1024 * 1024
  for (const [who, headers, expected] of [
    ['nobody', {}, 401],
    ['a user', { 'x-auth-token': token }, 403],
    ['a user key', { authorization: `Bearer ${OTHER}` }, 401]
  ] as const) {
    await t.test(who, async () => {
      const { posting, status } = begin(url, size, headers)
      let sent = 0
      const chunk = Buffer.alloc(64 * 1024)
      // Only as fast as it is read.
      const write = (): void => {
        while (!posting.destroyed && sent < size) {
          sent += chunk.length
          if (!posting.write(chunk)) { posting.once('drain', write); return }
        }
      }
      write()
      const closed = once(posting, 'close')
      assert.equal(await status, expected)
      await closed
      assert.ok(sent < 32 * 1024 * 1024, `the body was not taken: ${sent} bytes went into buffers`)
      assert.deepEqual(await filesBelow(root), [])
    })
  }
})

test('an upload may take longer than other requests', async (t) => {
  const root = await rootFor(t)
  const slowSenders = { headers: 500, request: 500, interval: 100 }
  const app = await appFor(t, settings({}), {}, { bundles: { root, isShared: false }, slowSenders })
  const url = await listen(app)
  const body = multipartOf(zip(bundleEntries()))
  const [uploading, other] = ['/api/mcpb/upload', '/api/servers'].map((path) => begin(url, body.length, undefined, path))
  for (const each of [uploading, other]) each?.posting.write(body.subarray(0, 100))
  assert.notEqual(await other?.status, 200, 'it is cut off while the upload goes on')
  uploading?.posting.end(body.subarray(100))
  assert.equal(await uploading?.status, 200)
})

test('what a client breaks off leaves nothing', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  const body = multipartOf(zip(bundleEntries()))
  const { posting } = begin(await listen(app), body.length)
  posting.write(body.subarray(0, body.length - 50))
  await until(async () => (await filesBelow(root)).length === 2)
  posting.destroy()
  await until(async () => (await filesBelow(root)).length === 0)
})

test('who holds all the uploads that he may does not shut out the next one', async (t) => {
  const root = await rootFor(t)
  // System keys without an owner are one owner on the management API.
  const third = `thk_${'c'.repeat(64)}`
  const app = await start(t, root, {}, {
    users: ['ann', 'bob'].map((username) => ({ username, password: '-', isAdmin: true })),
    bearerKeys: [
      bearerKey(),
      otherKey({ owner: 'ann' }),
      otherKey({ id: '33333333-3333-4333-8333-333333333333', name: 'third', token: third, owner: 'bob' })
    ]
  })
  const url = await listen(app)
  const body = multipartOf(zip(bundleEntries()))
  let held = 0
  /** Begins an upload, and sends all but its end. */
  const hold = async (token: string): Promise<() => void> => {
    const { posting } = begin(url, body.length, { authorization: `Bearer ${token}` })
    posting.write(body.subarray(0, body.length - 50))
    held++
    await until(async () => (await filesBelow(root)).filter((name) => name.endsWith('archive')).length === held)
    return () => { posting.destroy() }
  }
  const ask = async (token: string): Promise<unknown[]> => {
    const answer = await injectBundle(app, token, body)
    return [answer.statusCode, answer.json<Json>().code]
  }
  const ends = [await hold(KEY), await hold(KEY), await hold(KEY)]
  assert.deepEqual(await ask(KEY), [429, 'TH_SHARE_USED'])
  assert.deepEqual(await ask(OTHER), [200, undefined])
  held = (await filesBelow(root)).filter((name) => name.endsWith('archive')).length
  ends.push(await hold(OTHER))
  assert.deepEqual(await ask(third), [503, 'TH_LIMIT_REACHED'])
  for (const end of ends) end()
  await until(async () => !(await filesBelow(root)).some((name) => name.endsWith('archive')))
  assert.deepEqual(await ask(KEY), [200, undefined], 'places that were given back')
})

test('two uploads of one name are one after the other', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  const files = (letter: string): object[] => Array.from({ length: 50 }, (_, at) => ({ name: `files/${letter}${at}`, data: letter }))
  for (let round = 0; round < 3; round++) {
    await Promise.all(['a', 'b', 'c'].map(async (letter) => await upload(app, { version: letter }, files(letter))))
    const found = await filesBelow(join(root, 'sample/current'))
    const { version } = JSON.parse(await readFile(join(root, 'sample/current/manifest.json'), 'utf8')) as { version: string }
    assert.deepEqual(new Set(found.filter((name) => name.startsWith('files/')).map((name) => name.charAt(6))), new Set([version]), 'of one of them')
    assert.equal(found.filter((name) => name.startsWith('files/')).length, 50)
  }
})

test('an update replaces a bundle as a whole, and a bundle goes with its last server', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  const { config } = await upload(app, { version: '1' }) as { config: Json }
  const off = { ...config, enabled: false }
  await store(app, 'POST', '', { name: 'one', config: off })
  await store(app, 'POST', '', { name: 'two', config: off })

  const data = await upload(app, { version: '2' })
  assert.deepEqual(data.config, config, 'its place stays the same')
  assert.deepEqual(data.usedBy, ['one', 'two'])
  const versionNow = async (): Promise<unknown> =>
    at(JSON.parse(await readFile(join(root, 'sample/current/manifest.json'), 'utf8')), 'version')
  assert.equal(await versionNow(), '2')
  const damaged = { name: 'x', data: 'x', both: { crc: 1 } }
  const broken = await injectBundle(app, KEY, multipartOf(zip([...bundleEntries({ version: '3' }), damaged])))
  assert.equal(broken.statusCode, 400)
  assert.equal(await versionNow(), '2', 'the old one stays until the new one is whole')

  await store(app, 'DELETE', '/one')
  assert.equal(await versionNow(), '2', 'another server uses it')
  await store(app, 'PUT', '/two', { config: { command: 'other', enabled: false } })
  await until(async () => (await filesBelow(root)).length === 0)
})

test('with CHILD_USER, that user can write into the folder of a uv bundle', async (t) => {
  if (process.geteuid?.() !== 0) { t.comment('it needs root'); return }
  const root = await rootFor(t)
  const childUser = { uid: 1001, gid: 1001, home: '/', name: 'child' }
  const app = await appFor(t, settings({}), {}, { bundles: { root, isShared: false }, childUser })
  await upload(app, { manifest_version: '0.4', name: 'by-uv', server: { type: 'uv', entry_point: 'server/index.js' } })
  await upload(app, { name: 'by-node' })
  const ownerOf = async (name: string): Promise<number> => (await stat(join(root, name))).uid
  assert.deepEqual(await Promise.all(['by-uv/current', 'by-uv/current/server', 'by-node/current', '.'].map(ownerOf)), [1001, 1001, 0, 0])
})

test('a copy of the bundles without links is updated', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  await upload(app, { version: '1' })
  const version = await readlink(join(root, 'sample/current'))
  await rm(join(root, 'sample/current'))
  await rename(join(root, 'sample', version), join(root, 'sample/current'))
  await upload(app, { version: '2' })
  const manifestOf = async (folder: string): Promise<string> => await readFile(join(root, 'sample', folder, 'manifest.json'), 'utf8')
  assert.match(await manifestOf('current'), /"version":"2"/)
  const versions = (await readdir(join(root, 'sample'))).filter((each) => each !== 'current')
  assert.match((await Promise.all(versions.map(manifestOf))).join(), /"version":"1"/, 'for the processes that run it')
})

test('a bundle stays for a server that names its folder by another path, and goes with no server that runs no command', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'real/bundles'), { recursive: true })
  await symlink('real', join(folder, 'link'))
  const app = await start(t, join(folder, 'link/bundles'))
  const { config } = await upload(app) as { config: Json }
  const isThere = async (): Promise<boolean> => (await filesBelow(join(folder, 'real/bundles'))).includes('sample')
  const remote = { url: 'http://127.0.0.1:9/mcp', args: config.args, enabled: false }
  const real = { ...config, args: [join(folder, 'real/bundles/sample/current/server/index.js')], enabled: false }
  await store(app, 'POST', '', { name: 'remote', config: remote })
  await store(app, 'DELETE', '/remote')
  // The old bundle is removed before the next upload is installed.
  await upload(app, { name: 'other' })
  assert.ok(await isThere())
  await store(app, 'POST', '', { name: 'real', config: real })
  await store(app, 'POST', '', { name: 'linked', config: { ...config, enabled: false } })
  assert.deepEqual((await upload(app)).usedBy, ['real', 'linked'])
  await store(app, 'DELETE', '/linked')
  await upload(app, { name: 'other' })
  assert.ok(await isThere())
  await store(app, 'DELETE', '/real')
  await store(app, 'POST', '', { name: 'last', config: { ...config, enabled: false } })
  await store(app, 'DELETE', '/last')
  await until(async () => !(await isThere()))
})

test('a start removes what was interrupted, and former versions', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  await upload(app, { version: '1' })
  await upload(app, { version: '2' })
  const before = await filesBelow(join(root, 'sample/current'))
  await app.close()
  await mkdir(join(root, '.tmp-1/files/a'), { recursive: true })
  await writeFile(join(root, '.tmp-1/archive'), 'x')

  await t.test('but not what another replica may be at work on', async () => {
    await new BundlesFolder({ root, isShared: true, runsAsOtherUser: false }).removeLeftovers()
    assert.ok((await filesBelow(root)).includes('.tmp-1'))
  })

  await start(t, root)
  const found = await filesBelow(root)
  assert.equal(found.some((name) => name.startsWith('.tmp')), false)
  assert.equal(found.filter((name) => /^sample\/[^/]+$/.test(name)).length, 2, 'the current version, and the link')
  assert.deepEqual(await filesBelow(join(root, 'sample/current')), before)
})

test('a server whose bundle is missing, or lacks values, says so', async (t) => {
  const root = await rootFor(t)
  const app = await start(t, root)
  const problem = createBundleProblemFinder(root)
  assert.equal(await problem({ command: 'node', args: ['/elsewhere'] }), undefined)
  const config = { command: 'node', args: [join(root, 'gone/current/a.js')] }
  assert.match(String(await problem(config)), /"gone".*upload it again/)
  await upload(app)
  // eslint-disable-next-line no-template-curly-in-string
  const open = { command: 'node', args: [join(root, 'sample/current/a.js')], env: { A: '${user_config.key}' } }
  assert.match(String(await problem(open)), /user_config\.key/)
  assert.deepEqual([...bundleNamesOf(root, { ...open, args: [`--a=${root}/x/current:${root}/y`, `${root}x/z`] })], ['x', 'y'])

  await store(app, 'POST', '', { name: 'gone', config })
  await until(async () => {
    const { data } = (await app.inject({ url: '/api/servers/gone', headers: { authorization } })).json<{ data: Json }>()
    return /"gone" is not in DATA_DIR/.test(String(data.error))
  })
})

test('a full disk is named, with what to do', async (t) => {
  const app = await start(t, await rootFor(t))
  for (const [code, message] of [
    ['ENOSPC', 'The disk is full: the upload was not stored. Free some space in DATA_DIR, then upload it again'],
    ['EIO', 'The disk reported an error: the upload was not stored']
  ] as const) {
    const refused = mock.method(BundlesFolder.prototype, 'makeTemporary', async () => { throw Object.assign(new Error(code), { code, syscall: 'write' }) })
    const answer = await injectBundle(app, KEY, multipartOf(zip(bundleEntries({}))))
    refused.mock.restore()
    assert.deepEqual([answer.statusCode, at(answer.json(), 'message')], [507, message])
  }
})

test('a bundle runs and answers, its secret is masked, a new version runs after a reload, and its files go with it', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { PATH: process.env.PATH ?? '' } })
  const config = {
    /* eslint-disable no-template-curly-in-string */
    command: '${__dirname}/none',
    platform_overrides: { [process.platform]: { command: '${__dirname}/bin/server', args: ['${user_config.word}'] } },
    env: { SECRET: '${user_config.key}' }
    /* eslint-enable no-template-curly-in-string */
  }
  const option = { type: 'string', title: 'T', description: 'D' }
  const uploaded = async (greeting: string): Promise<Json> => {
    const { status, body } = await sendBundle(hub, zip([
      ...bundleEntries({
        name: 'runs',
        server: { type: 'binary', entry_point: 'bin/server', mcp_config: config },
        user_config: { word: { ...option, default: 'world' }, key: { ...option, required: true, sensitive: true } }
      }),
      { name: 'bin/server', data: shellServer(greeting) }
    ]))
    assert.equal(status, 200, JSON.stringify(body))
    return body.data as Json
  }
  const greeted = async (): Promise<string> => text(await (await Session.open(`${hub.url}/mcp/runs`)).call('greet'))
  const data = await uploaded('hello')
  assert.deepEqual([data.warnings, (data.required as Json[]).map(({ key }) => key)], [[], ['key']])
  const filled: unknown = JSON.parse(JSON.stringify(data.config).replace(/\$\{user_config\.key\}/, 'a-long-secret'))
  await askHub(hub, 'POST', '/api/servers', { name: 'runs', config: filled })
  await connected(hub, 1)
  assert.equal(await greeted(), 'hello world')
  const stored = await askHub(hub, 'GET', '/api/servers/runs')
  assert.match(String(at(stored, 'data', 'config', 'env', 'SECRET')), /^••••/)
  assert.deepEqual((await uploaded('newer')).usedBy, ['runs'])
  assert.equal(await greeted(), 'hello world', 'the former version, until then')
  await askHub(hub, 'POST', '/api/servers/runs/reload')
  await until(async () => await greeted() === 'newer world')
  await askHub(hub, 'DELETE', '/api/servers/runs')
  await until(async () => (await filesBelow(bundlesBeside(hub.settingsPath))).length === 0)
})
