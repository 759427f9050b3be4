// Real bundles, made by the official packer from real servers of npm, with manifests of all versions, run and answer through the gateway.
// integration/bundles runs one of a few lines. The packer comes from npm's registry, or its cache.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { askHub as ask, bundlesBeside, filesBelow, sendBundle as send, shellServer as shell } from '../helpers/bundles.ts'
import { connected, Session, settings, text, type Json } from '../helpers/client.ts'
import { path, startHub, until } from '../helpers/hub.ts'
import { cachedPackages } from '../helpers/packages.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

/* eslint-disable no-template-curly-in-string */

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
  ...['everything-01', 'everything-02', 'everything.03', 'everything_04'].map((name): Sample => ({
    name, version: `0.${name.at(-1)}`, from: 'everything', server: node('everything'), call: ['echo', { message: name }], answers: new RegExp(name)
  })),
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
  const folder = await temporaryFolder(t)
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
  const modules = await cachedPackages('mcpb', { '@anthropic-ai/mcpb': '2.1.2' })
  await promisify(execFile)(join(modules, '.bin/mcpb'), ['pack', source, outputPath])
  return await readFile(outputPath)
}

/** Puts values into the places of `${user_config.<key>}`. */
const filled = (config: unknown, values: Record<string, string>): unknown =>
  JSON.parse(JSON.stringify(config).replace(/\$\{user_config\.([^}]+)\}/g, (written, key: string) => values[key] ?? written))

test('bundles of the official packer run and answer', async (t) => {
  const folder = await realpath(await temporaryFolder(t))
  await writeFile(join(folder, 'note.txt'), 'a note')
  const hub = await startHub(t, { settings: settings({}), env: { PATH: process.env.PATH ?? '' } })
  const all = samples(folder)
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

  await t.test('the files go with the servers', async () => {
    for (const { name } of all) await ask(hub, 'DELETE', `/api/servers/${name}`)
    await until(async () => (await filesBelow(bundlesBeside(hub.settingsPath))).length === 0)
  })
})
