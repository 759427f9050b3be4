// The container image: the steps of the Dockerfile with the dependencies that they leave, in a plain folder; and the image itself, where
// the machine can make it (root, buildah and mmdebstrap; no registry is asked for images): TEST_IMAGE=0 leaves it out.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { copyImage, healthCheck, run, runAsImage } from '../helpers/dockerfile.ts'
import { freePort, path, until } from '../helpers/hub.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { cachedPackages } from '../helpers/packages.ts'

test('what the Dockerfile leaves of the dependencies runs the gateway', async (t) => {
  const root = await temporaryFolder(t)
  const app = join(root, 'build')
  await mkdir(app)
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'README.md', 'LICENSE', 'assets', 'cli', 'db', 'dist']) {
    await cp(path(name), join(app, name), { recursive: true })
  }
  await run('cp', ['-al', `${path('node_modules')}/`, join(app, 'node_modules')])
  // npm writes over this file, which is one with that of this folder.
  await rm(join(app, 'node_modules/.package-lock.json'), { force: true })
  await run(process.execPath, ['cli/prune.mjs'], { cwd: app, maxBuffer: 2 ** 24 })
  assert.ok(!existsSync(join(app, 'node_modules/typescript')), 'the image has no compiler')
  assert.ok(!existsSync(join(app, 'node_modules/fastify')), 'what is bundled is not installed')
  await copyImage(app, join(root, 'app'), async (from, to) => { await cp(from, to, { recursive: true }) })
  await runAsImage(t, join(root, 'app'), join(root, 'data'))
})

/** Why no image is built here; false: it is. */
function noImage (): string | false {
  if (process.env.TEST_IMAGE === '0') return 'NO IMAGE IS BUILT: TEST_IMAGE=0'
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return 'NO IMAGE IS BUILT: that needs root on Linux'
  const missing = ['buildah', 'mmdebstrap'].filter((tool) => spawnSync(tool, ['--version']).status !== 0)
  return missing.length === 0 ? false : `NO IMAGE IS BUILT: apt-get install ${missing.join(' ')}`
}

test('the image, built and run', { skip: noImage() }, async (t) => {
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
  const health = async (): Promise<boolean> => await run('buildah', [...storage, 'run', '--env', `PORT=${port}`, container, '--', 'node', ...healthCheck()], { env })
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
