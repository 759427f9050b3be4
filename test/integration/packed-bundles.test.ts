// Real bundles, made by the official packer from real servers of npm, run and answer through the gateway; and what hostile archives cost a
// process. It needs Linux for the memory of a process (/proc). server-everything is large: it is packed once, and four times by
// `npm run soak`; the other bundles have all versions of manifests, too.
import assert from 'node:assert/strict'
import { chmod, cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { packExtension } from '@anthropic-ai/mcpb'
import { test, type Test } from 'tap'
import { bundlesBeside, filesBelow, multipartOf, multipartType } from '../helpers/bundles.ts'
import { at, connected, KEY, Session, settings, text, type Json } from '../helpers/client.ts'
import { isFull } from '../helpers/full.ts'
import { path, spawnHub, startHub, until, type Hub } from '../helpers/hub.ts'
import { bundleEntries, hostile, zip, type ZipEntry } from '../fakes/zip.ts'

/* eslint-disable no-template-curly-in-string */

/** Uploads over the network. */
async function send (hub: Hub, body: Buffer): Promise<{ status: number, body: Json }> {
  const answer = await fetch(`${hub.url}/api/mcpb/upload`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': multipartType }, body: new Uint8Array(multipartOf(body))
  })
  return { status: answer.status, body: await answer.json() as Json }
}

const ask = async (hub: Hub, method: string, where: string, body?: object): Promise<Json> => {
  const answer = await fetch(`${hub.url}${where}`, {
    method, headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body: body && JSON.stringify(body)
  })
  assert.ok(answer.ok, `${method} ${where}: ${answer.status} ${await answer.clone().text()}`)
  return await answer.json() as Json
}

/** Copies a package with all that it depends on, as `npm install` would have laid it out. */
async function copyPackage (name: string, to: string, seen = new Set<string>()): Promise<void> {
  if (seen.has(name)) return
  seen.add(name)
  const from = path(`node_modules/${name}`)
  await cp(await realpath(from), join(to, 'node_modules', name), { recursive: true, filter: (file) => !/\.(map|d\.[cm]?ts)$/.test(file) })
  const { dependencies = {} } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8')) as { dependencies?: Record<string, string> }
  for (const each of Object.keys(dependencies)) await copyPackage(each, to, seen)
}

interface Sample {
  name: string
  version: string
  from?: 'everything' | 'filesystem' | 'memory'
  server: Json
  more?: Json
  files?: Record<string, string>
  /** Values for `required`. */
  values?: Record<string, string>
  call: [tool: string, args: Json]
  answers: RegExp
}

const script = (name: string): string => `\${__dirname}/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`
const option = (more: Json): Json => ({ type: 'string', title: 'T', description: 'D', ...more })
/** A server of a few lines, in what every system has. */
const shell = (greeting: string): string => `#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\\([0-9]*\\).*/\\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}\\n' "$id";;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"${greeting} %s"}]}}\\n' "$id" "$1";;
  esac
done
`
const python = `import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    results = {
        'initialize': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'py', 'version': '1'}},
        'tools/list': {'tools': [{'name': 'greet', 'inputSchema': {'type': 'object'}}]},
        'tools/call': {'content': [{'type': 'text', 'text': 'python says ' + os.environ.get('WORD', '')}]}
    }
    if 'id' in message and message['method'] in results:
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': results[message['method']]}), flush=True)
`
const node = (name: string, more: Json = {}): Json =>
  ({ type: 'node', entry_point: script(name).slice('${__dirname}/'.length), mcp_config: { command: 'node', args: [script(name)], ...more } })

const samples = (folder: string): Sample[] => [
  { name: 'everything-01', version: '0.1', from: 'everything', server: node('everything'), call: ['echo', { message: 'one' }], answers: /one/ },
  { name: 'everything-02', version: '0.2', from: 'everything', server: node('everything'), call: ['echo', { message: 'two' }], answers: /two/ },
  { name: 'everything.03', version: '0.3', from: 'everything', server: node('everything'), call: ['echo', { message: 'three' }], answers: /three/ },
  { name: 'everything_04', version: '0.4', from: 'everything', server: node('everything'), call: ['echo', { message: 'four' }], answers: /four/ },
  {
    name: 'files',
    version: '0.3',
    from: 'filesystem',
    server: { ...node('filesystem'), mcp_config: { command: 'node', args: [script('filesystem'), '${user_config.folders}'] } },
    more: { user_config: { folders: option({ type: 'directory', multiple: true, required: true }) } },
    values: { folders: folder },
    call: ['read_text_file', { path: join(folder, 'note.txt') }],
    answers: /a note/
  },
  {
    name: 'files-by-default',
    version: '0.2',
    from: 'filesystem',
    server: { ...node('filesystem'), mcp_config: { command: 'node', args: [script('filesystem'), '${user_config.folders}'] } },
    more: { user_config: { folders: option({ type: 'directory', multiple: true, default: [folder, '/tmp'] }) } },
    call: ['list_allowed_directories', {}],
    answers: /tmp/
  },
  {
    name: 'memory',
    version: '0.1',
    from: 'memory',
    server: node('memory', { env: { MEMORY_FILE_PATH: '${user_config.file}' } }),
    more: { user_config: { file: option({ type: 'file', required: true, sensitive: true }) } },
    values: { file: join(folder, 'memory.json') },
    call: ['create_entities', { entities: [{ name: 'Ada', entityType: 'person', observations: [] }] }],
    answers: /Ada/
  },
  {
    name: 'platforms',
    version: '0.3',
    server: {
      type: 'binary',
      entry_point: 'bin/server',
      mcp_config: { command: '${__dirname}/bin/none', args: ['x'], platform_overrides: { linux: { command: '${__dirname}/bin/server', args: ['linux'] } } }
    },
    files: { 'bin/server': shell('binary on') },
    call: ['greet', {}],
    answers: /^binary on /
  },
  {
    name: 'python',
    version: '0.4',
    server: { type: 'python', entry_point: 'main.py', mcp_config: { command: 'python', args: ['${__dirname}/main.py'], env: { WORD: '${user_config.word}' } } },
    more: { user_config: { word: option({ default: 'hello' }) } },
    files: { 'main.py': python },
    call: ['greet', {}],
    answers: /python says hello/
  },
  {
    name: 'old-dxt',
    version: 'dxt 0.1',
    server: { type: 'binary', entry_point: 'run.sh', mcp_config: { command: 'sh', args: ['${__dirname}/run.sh', '${user_config.n}'] } },
    more: { user_config: { n: option({ type: 'number', default: 7 }) } },
    files: { 'run.sh': shell('number') },
    call: ['greet', {}],
    answers: /number \d+/
  }
]

/** Packs a sample with the official packer. */
async function pack (t: Test, { name, version, from, server, more, files = {} }: Sample): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-pack-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const source = join(folder, 'source')
  await mkdir(source)
  const stated = version.startsWith('dxt ') ? { dxt_version: version.slice(4) } : { manifest_version: version }
  await writeFile(join(source, 'manifest.json'), JSON.stringify({
    ...stated, name, version: '1.0.0', description: `The server ${name}`, author: { name: 'Ada' }, server, ...more
  }))
  if (from !== undefined) await copyPackage(`@modelcontextprotocol/server-${from}`, source)
  for (const [each, content] of Object.entries(files)) {
    await mkdir(dirname(join(source, each)), { recursive: true })
    await writeFile(join(source, each), content)
    await chmod(join(source, each), 0o755)
  }
  const outputPath = join(folder, 'bundle.mcpb')
  assert.ok(await packExtension({ extensionPath: source, outputPath, silent: true }), `${name} is packed`)
  return await readFile(outputPath)
}

/** Puts values into the places of `${user_config.<key>}`. */
const filled = (config: unknown, values: Record<string, string>): unknown =>
  JSON.parse(JSON.stringify(config).replace(/\$\{user_config\.([^}]+)\}/g, (written, key: string) => values[key] ?? written))

test('bundles of the official packer run and answer', { timeout: 300_000 }, async (t) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tool-hub-files-')))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  await writeFile(join(folder, 'note.txt'), 'a note')
  const hub = await startHub(t, { settings: settings({}), env: { PATH: process.env.PATH ?? '' } })
  const all = samples(folder).filter(({ name, from }) => isFull || from !== 'everything' || name === 'everything.03')
  for (const [index, sample] of all.entries()) {
    await t.test(`${sample.name}, ${sample.version}`, async (t) => {
      const uploaded = await send(hub, await pack(t, sample))
      assert.equal(uploaded.status, 200, JSON.stringify(uploaded.body))
      const data = uploaded.body.data as { name: string, config: Json, required: Array<{ key: string }>, warnings: string[] }
      assert.deepEqual(data.warnings, [])
      assert.deepEqual(data.required.map(({ key }) => key), Object.keys(sample.values ?? {}))
      await ask(hub, 'POST', '/api/servers', { name: data.name, config: filled(data.config, sample.values ?? {}) })
      await connected(hub, index + 1)
      const session = await Session.open(`${hub.url}/mcp/${sample.name}`)
      assert.match(text(await session.call(...sample.call)), sample.answers)
    })
  }

  await t.test('a secret that was set is masked', async () => {
    const { data } = await ask(hub, 'GET', '/api/servers/memory') as { data: Json }
    assert.match(String(at(data, 'config', 'env', 'MEMORY_FILE_PATH')), /^••••/)
  })

  await t.test('a new version runs after a reload, and the former one until then', async (t) => {
    const old = all.find(({ name }) => name === 'platforms')
    assert.ok(old)
    const { status, body } = await send(hub, await pack(t, { ...old, files: { 'bin/server': shell('newer on') } }))
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(at(body, 'data', 'usedBy'), ['platforms'])
    assert.match(text(await (await Session.open(`${hub.url}/mcp/platforms`)).call('greet')), /binary on/)
    await ask(hub, 'POST', '/api/servers/platforms/reload')
    await until(async () => /newer on/.test(text(await (await Session.open(`${hub.url}/mcp/platforms`)).call('greet'))))
  })

  await t.test('the files go with the servers', async () => {
    for (const { name } of all) await ask(hub, 'DELETE', `/api/servers/${name}`)
    await until(async () => (await filesBelow(bundlesBeside(hub.settingsPath))).length === 0)
  })
})

/** The memory of a process, in MiB. */
const memoryOf = async (pid: number): Promise<number> =>
  Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

test('hostile and large archives cost a process less than 64 MiB', { timeout: 300_000 }, async (t) => {
  const hub = await spawnHub(t, { settings: settings({}) })
  const root = bundlesBeside(hub.settingsPath)
  // The first upload loads what uploads need.
  assert.equal((await send(hub, zip(bundleEntries()))).status, 200)
  const kept = await filesBelow(root)
  const idle = await memoryOf(hub.pid)
  let peak = idle
  const watch = setInterval(() => { void memoryOf(hub.pid).then((now) => { peak = Math.max(peak, now) }, () => {}) }, 20)
  t.after(() => { clearInterval(watch) })
  for (const [what, [archive]] of Object.entries(hostile())) {
    assert.equal((await send(hub, archive)).status, 400, what)
    assert.deepEqual(await filesBelow(root), kept, what)
  }
  // 96 MiB that cannot be compressed, then a body that is larger than the bound.
  const noise = (seed: number): Buffer => {
    const bytes = Buffer.alloc(48 * 1024 * 1024)
    for (let at = 0, state = seed; at < bytes.length; at += 4) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      bytes.writeUInt32LE(state, at)
    }
    return bytes
  }
  const stored = (name: string, data: Buffer): ZipEntry => ({ name, data, raw: data, both: { method: 0 } })
  const large = zip([...bundleEntries({ name: 'large' }), stored('a', noise(1)), stored('b', noise(2))])
  assert.equal((await send(hub, large)).status, 200)
  assert.equal((await send(hub, Buffer.concat([large, Buffer.alloc(16 * 1024 * 1024)]))).status, 413)
  assert.equal((await filesBelow(root)).some((name) => name.startsWith('.tmp')), false)
  clearInterval(watch)
  t.comment(`idle ${Math.round(idle)} MiB, at most ${Math.round(peak)} MiB`)
  assert.ok(peak - idle < 64, `idle ${idle} MiB, at most ${peak} MiB`)
})
