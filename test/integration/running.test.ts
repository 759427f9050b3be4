// What runs the gateway elsewhere: the steps of the Dockerfile, in a plain folder; the image itself, where the machine can make it (root,
// buildah and mmdebstrap; no registry is asked for images), which takes minutes: TEST_IMAGE=0 leaves it out; the unit for systemd where
// that is there, and the compose file and the chart as far as they can be read.
import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { Env } from '../../schemas/env.ts'
import { at, type Json } from '../helpers/client.ts'
import { freePort, path, until } from '../helpers/hub.ts'
import { cachedPackages } from '../helpers/packages.ts'

const run = promisify(execFile)
const read = (name: string): string => readFileSync(path(name), 'utf8')
const isKnown = (name: string): boolean => Object.hasOwn(Env.properties, name) || Object.hasOwn(Env.properties, name.replace(/_FILE$/, ''))

/** The instructions of the Dockerfile, one a line, by stages. */
const stages = read('Dockerfile')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line.trim() !== '' && !line.startsWith('#'))
  .join('\n')
  .split(/^(?=FROM )/m)
  .map((stage) => stage.trim().split('\n').map((line) => line.trim()))

/** The arguments of the instructions of one kind in a stage. */
const instructions = (stage: string[], kind: string): string[] =>
  stage.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1).trim())

test('the steps of the Dockerfile, in a plain folder', { timeout: 240_000 }, async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tool-hub-image-'))
  t.after(async () => { await rm(root, { recursive: true, force: true }) })
  const [build = [], , image = []] = stages
  assert.match(build[0] ?? '', /^FROM node:22-bookworm-slim AS build$/)
  assert.deepEqual(instructions(build, 'RUN').map((line) => line.split(' ').slice(0, 3).join(' ')), ['npm ci --ignore-scripts', 'npm run build'])

  // The first stage: dependencies and build are those of this folder, pruned as the stage does it.
  const app = join(root, 'build')
  await mkdir(app)
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'README.md', 'LICENSE', 'assets', 'db', 'dist']) {
    await cp(path(name), join(app, name), { recursive: true })
  }
  await run('cp', ['-al', path('node_modules'), join(app, 'node_modules')])
  await run('npm', ['prune', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: app, maxBuffer: 2 ** 24 })
  assert.ok(!existsSync(join(app, 'node_modules/typescript')), 'the image has no compiler')

  // The last stage has what is copied into it, and nothing else.
  const runtime = join(root, 'app')
  for (const line of instructions(image, 'COPY').filter((each) => each.startsWith('--from=build'))) {
    const [, ...words] = line.split(/\s+/)
    const to = words.pop() ?? ''
    for (const from of words) {
      const name = from.replace(/^\/app\//, '')
      const target = join(runtime, to.endsWith('/') ? name : to)
      await mkdir(dirname(target), { recursive: true })
      await cp(join(app, name), target, { recursive: true })
    }
  }
  const data = join(root, 'data')
  await mkdir(data)
  const port = await freePort()
  const variables = Object.fromEntries(
    [...instructions(image, 'ENV').join(' ').matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value.replace('/data', data)])
  )
  for (const name of ['HOST', 'PORT', 'SETTINGS_PATH', 'DATA_DIR']) assert.ok(name in variables && isKnown(name), name)
  const env = { PATH: process.env.PATH, ...variables, HOST: '127.0.0.1', PORT: String(port), ADMIN_PASSWORD: 'A-test-pass1' }
  const [command = '', ...args] = JSON.parse(instructions(image, 'CMD').find((each) => each.startsWith('["node", "dist')) ?? '[]') as string[]
  const hub = spawn(command, args, { cwd: runtime, env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => { hub.kill('SIGKILL') })
  let output = ''
  for (const stream of [hub.stdout, hub.stderr]) stream.on('data', (chunk) => { output += String(chunk) })
  const [, ...check] = JSON.parse(/CMD (\[.*\])$/.exec(instructions(image, 'HEALTHCHECK')[0] ?? '')?.[1] ?? '[]') as string[]
  const health = async (): Promise<boolean> => await run(process.execPath, check, { env }).then(() => true, () => false)
  await until(health, () => output)
  assert.deepEqual(readdirSync(runtime).sort(), ['LICENSE', 'README.md', 'assets', 'db', 'dist', 'node_modules', 'package.json'], 'nothing is written beside it')
  await until(() => readdirSync(data).includes('mcp_settings.json'))
  hub.kill('SIGTERM')
  assert.deepEqual(await once(hub, 'exit'), [0, null], output)
  assert.equal(await health(), false, 'a gateway that is gone is not healthy')
  assert.ok(instructions(image, 'USER').includes('node'), 'no root')
})

/** Why no image is built here; false: it is. */
function noImage (): string | false {
  if (process.env.TEST_IMAGE === '0') return 'NO IMAGE IS BUILT: TEST_IMAGE=0'
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return 'NO IMAGE IS BUILT: that needs root on Linux'
  const missing = ['buildah', 'mmdebstrap'].filter((tool) => spawnSync(tool, ['--version']).status !== 0)
  return missing.length === 0 ? false : `NO IMAGE IS BUILT: apt-get install ${missing.join(' ')}`
}

test('the image, built and run', { timeout: 1_800_000, skip: noImage() }, async (t) => {
  t.comment('the base image is Debian by mmdebstrap with Node and npm from npm, and uv is a stand-in: no registry of images is asked')
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-image-'))
  t.after(async () => {
    await buildah('rm', '--all').catch(() => {})
    // It leaves its folder mounted on itself.
    await run('umount', ['--recursive', '--lazy', join(folder, 'storage/overlay')]).catch(() => {})
    await rm(folder, { recursive: true, force: true })
  })
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')]
  const env = { ...process.env, BUILDAH_ISOLATION: 'chroot' }
  const buildah = async (...args: string[]): Promise<string> =>
    (await run('buildah', [...storage, ...args], { env, maxBuffer: 2 ** 26 })).stdout.trim()
  const npm = async (...args: string[]): Promise<string> => (await run('npm', args)).stdout.trim()
  /** An image of a registry that is not asked. */
  const standIn = async (name: string, fill: (root: string, container: string) => Promise<void>): Promise<void> => {
    const container = await buildah('from', 'scratch')
    await fill(await buildah('mount', container), container)
    await buildah('umount', container)
    await buildah('commit', '--rm', '--quiet', container, name)
  }

  const prepare = async (): Promise<void> => {
    const modules = await cachedPackages('image', { node: '22.23.3' })
    await run('mmdebstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', join(folder, 'root.tar')], { maxBuffer: 2 ** 26 })
    await standIn('docker.io/library/node:22-bookworm-slim', async (root, container) => {
      await run('tar', ['-xf', join(folder, 'root.tar'), '-C', root])
      await cp(join(modules, 'node/bin/node'), join(root, 'usr/local/bin/node'))
      await cp(join(await npm('root', '-g'), 'npm'), join(root, 'usr/local/lib/node_modules/npm'), { recursive: true })
      for (const name of ['npm', 'npx']) await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name))
      await buildah('run', container, '--', 'useradd', '-m', '-u', '1000', 'node')
    })
    await standIn('ghcr.io/astral-sh/uv:0.9', async (root) => {
      for (const name of ['uv', 'uvx']) await writeFile(join(root, name), '#!/bin/sh\necho stand-in\n', { mode: 0o755 })
    })
  }
  // Mounts and chroots of their own are not allowed in every container.
  const obstacle = await prepare().then(() => undefined, (error: unknown) => error instanceof Error ? error.message : String(error))
  if (obstacle !== undefined) {
    const reason = `NO IMAGE IS BUILT: this machine does not make one: ${obstacle.slice(0, 1_000)}`
    await t.test(reason, { skip: reason }, () => {})
    return
  }
  // npm's own settings, so that it asks the same registry, and its cache.
  const mounts = ['-v', `${await npm('config', 'get', 'userconfig')}:/root/.npmrc:ro`, '-v', `${await npm('config', 'get', 'cache')}:/root/.npm`]
  await buildah('build', '--pull-never', '--layers=false', ...mounts, '-t', 'tool-hub', path(''))

  const { OCIv1: { config: image } } = JSON.parse(await buildah('inspect', '--type', 'image', 'tool-hub')) as { OCIv1: { config: Image } }
  assert.deepEqual([image.User, image.Entrypoint, image.Cmd], ['node', ['tini', '--'], ['node', 'dist/server.js']])
  assert.ok(image.Volumes && '/data' in image.Volumes)
  const container = await buildah('from', '--pull-never', 'tool-hub')
  const inside = async (...args: string[]): Promise<string> => await buildah('run', container, '--', ...args)
  assert.equal(await inside('id', '-un'), 'node')
  assert.equal(await inside('uvx'), 'stand-in')
  assert.match(await inside('npx', '--version'), /^\d+\./)
  assert.match(await inside('sh', '-c', 'ls /app; touch /app/x 2>&1 || true'), /^LICENSE\nREADME.md\nassets\ndb\ndist\nnode_modules\npackage.json\n.*Permission denied/)

  const port = await freePort()
  const more = ['--env', `PORT=${port}`, '--env', 'HOST=127.0.0.1', '--env', 'ADMIN_PASSWORD=A-test-pass1']
  const hub = spawn('buildah', [...storage, 'run', ...more, container, '--', ...image.Entrypoint, ...image.Cmd], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => { hub.kill('SIGKILL') })
  let output = ''
  for (const stream of [hub.stdout, hub.stderr]) stream.on('data', (chunk) => { output += String(chunk) })
  const [, ...check] = JSON.parse(/CMD (\[.*\])$/.exec(instructions(stages[2] ?? [], 'HEALTHCHECK')[0] ?? '')?.[1] ?? '[]') as string[]
  const health = async (): Promise<boolean> => await run('buildah', [...storage, 'run', '--env', `PORT=${port}`, container, '--', 'node', ...check], { env })
    .then(() => true, () => false)
  await until(health, () => output)
  const login = await fetch(`http://127.0.0.1:${port}/api/auth/login`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ username: 'admin', password: 'A-test-pass1' })
  })
  assert.equal(login.status, 200, output)
  assert.match(await inside('ls', '-ln', '/data/mcp_settings.json'), /^-rw------- 1 1000 1000 /)
  // As an orchestrator ends it: by the first process of the container.
  const first = processBelow(hub.pid ?? 0, 'tini')
  assert.ok(first !== undefined, 'tini is the first process')
  process.kill(first, 'SIGTERM')
  await until(() => hub.exitCode !== null, () => output)
  assert.match(output, /stopping \(SIGTERM\)/)
  assert.equal(hub.exitCode, 0, output)
})

/** A process that was started by another one, or by what that has started; undefined: none has this name. */
function processBelow (pid: number, name: string): number | undefined {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number))
  for (const child of children) {
    const found = readFileSync(`/proc/${child}/comm`, 'utf8').trim() === name ? child : processBelow(child, name)
    if (found !== undefined) return found
  }
  return undefined
}

interface Image { User: string, Entrypoint: string[], Cmd: string[], Volumes?: Record<string, object> }

test('nothing of the folder that is private, or large, goes into an image', async () => {
  const ignored = read('.dockerignore').split('\n')
  for (const name of ['.git', 'node_modules', 'dist', 'test', 'mcp_settings.json*', '.tool-hub']) assert.ok(ignored.includes(name), name)
})

test('compose.yaml', async () => {
  const compose = parse(read('compose.yaml')) as Json
  const environment = at(compose, 'services', 'tool-hub', 'environment') as Json
  for (const name of Object.keys(environment)) assert.ok(isKnown(name), name)
  const asked = new Set([...read('compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name))
  for (const name of asked) assert.match(read('examples/compose.env'), new RegExp(`^${name}=`, 'm'))
  for (const [name, service] of Object.entries(compose.services as Json)) {
    for (const volume of (at(service, 'volumes') as string[] | undefined) ?? []) {
      assert.ok(volume.split(':')[0] as string in (compose.volumes as Json), `${name}: ${volume}`)
    }
  }
  assert.equal(at(compose, 'services', 'tool-hub', 'read_only'), true)
  assert.equal(at(compose, 'services', 'tool-hub', 'ports'), undefined, 'only the proxy is reached')
  // What stays inside, as in the example. Compose reads $$ as $.
  const caddyfile = String(at(compose, 'configs', 'caddyfile', 'content')).replaceAll('$$', '$')
  const inside = (text: string): string[] => text.match(/@inside \{[^]*?\}|respond @inside.*/g)?.map((each) => each.replace(/\s+/g, ' ')) ?? []
  assert.equal(inside(caddyfile).length, 2)
  assert.deepEqual(inside(caddyfile), inside(read('examples/Caddyfile')))
  assert.doesNotMatch(read('compose.yaml').replaceAll('$$', '').replace(/\$\{\w+/g, ''), /\$/, 'no $ that Compose would read as a variable')
})

test('the unit for systemd', async (t) => {
  const unit = read('examples/systemd/tool-hub.service')
  for (const [, name = ''] of unit.matchAll(/^Environment=(.*)$/gm)) {
    for (const each of name.split(' ').map((pair) => pair.split('=')[0] ?? '')) assert.ok(isKnown(each) || ['NODE_ENV', 'HOME'].includes(each), each)
  }
  if (!existsSync('/usr/bin/systemd-analyze')) { t.comment('systemd-analyze is not here: the unit was not verified'); return }
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-unit-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  await writeFile(join(folder, 'tool-hub.service'), unit.replace('/usr/local/bin/tool-hub serve', '/bin/true'))
  const { stderr } = await run('systemd-analyze', ['verify', join(folder, 'tool-hub.service')])
  assert.equal(stderr, '')
})

test('the chart', async (t) => {
  t.comment('neither helm nor kubeconform is in npm or Debian: its templates are filled in by a few lines here, and read as YAML')
  const chart = 'examples/helm/tool-hub'
  const values = parse(read(`${chart}/values.yaml`)) as Json
  for (const name of Object.keys(values.env as Json)) assert.ok(isKnown(name), name)
  const template = read(`${chart}/templates/tool-hub.yaml`)
  for (const [, name = ''] of template.matchAll(/\.Values((?:\.\w+)+)/g)) {
    assert.notEqual(at(values, ...name.slice(1).split('.')), undefined, `values.yaml has no ${name}`)
  }
  const filled = template
    .split('\n')
    .filter((line) => !/^\s*\{\{-? *(if|end|range|\$name)/.test(line))
    .join('\n')
    .replace(/\{\{-? *(toYaml[^}]*?) *-?\}\}/g, ' {}')
    .replace(/"\{\{.*?\}\}"|\{\{.*?\}\}(?::\{\{.*?\}\})?/g, 'x')
  const kinds = parseAllDocuments(filled).map((document) => {
    assert.deepEqual(document.errors, [])
    return at(document.toJS() as unknown, 'kind')
  })
  assert.deepEqual(kinds, ['StatefulSet', 'Service', 'Ingress'])
})

test('alerts and dashboard name metrics that exist', async () => {
  const known = new Set(read('plugins/metrics/index.ts').concat(read('plugins/metrics/call-metrics.ts'), read('plugins/activities/index.ts'), authMetrics()).match(/toolhub_\w+/g))
  const dashboard = JSON.parse(read('examples/prometheus/grafana-dashboard.json')) as { panels: Array<{ targets: Array<{ expr: string }> }> }
  const alerts = parse(read('examples/prometheus/alerts.yaml')) as { groups: Array<{ rules: Array<{ expr: string }> }> }
  const expressions = [
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...alerts.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))
  ]
  assert.ok(expressions.length > 15)
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const register = new Registry()
  collectDefaultMetrics({ register })
  const stock = new Set((await register.getMetricsAsArray()).map(({ name }) => name))
  const functions = /^(sum|by|rate|count|or|vector|increase|histogram_quantile|up|server|le|status|outcome|credential|job)$/
  for (const expression of expressions) {
    const names = expression.replace(/"[^"]*"|\[[^\]]*\]/g, '').match(/\b[a-z_]{2,}\b/g) ?? []
    for (const name of names) {
      const isThere = functions.test(name) || known.has(name) || known.has(name.replace(/_(bucket|sum|count)$/, '')) || stock.has(name)
      assert.ok(isThere, `${name} in ${expression}`)
    }
  }
})

/** Metrics that the authentication counts. */
function authMetrics (): string {
  return readdirSync(path('plugins/auth')).filter((name) => name.endsWith('.ts')).map((name) => read(`plugins/auth/${name}`)).join('\n')
}
