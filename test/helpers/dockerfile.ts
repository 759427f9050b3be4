import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Env } from '../../schemas/env.ts'
import { freePort, path, until, type Cleanup } from './hub.ts'

export const run = promisify(execFile)

/** Whether the gateway reads a variable of this name. */
export const isKnown = (name: string): boolean =>
  Object.hasOwn(Env.properties, name) || Object.hasOwn(Env.properties, name.replace(/_FILE$/, ''))

/** The instructions of the Dockerfile, one a line, by stages. */
export const stages = readFileSync(path('Dockerfile'), 'utf8')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line.trim() !== '' && !line.startsWith('#'))
  .join('\n')
  .split(/^(?=FROM )/m)
  .map((stage) => stage.trim().split('\n').map((line) => line.trim()))
const image = stages.at(-1) ?? []

/** The arguments of the instructions of one kind in a stage. */
export const instructions = (stage: readonly string[], kind: string): string[] =>
  stage.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1).trim())

/** The arguments that Node gets to check the image's health. */
export const healthCheck = (): string[] => {
  const [, ...args] = JSON.parse(/CMD (\[.*\])$/.exec(instructions(image, 'HEALTHCHECK')[0] ?? '')?.[1] ?? '[]') as string[]
  return args
}

/** Copies what the last stage takes of the first, and nothing else. @param modules how node_modules gets there */
export async function copyImage (app: string, to: string, modules: (from: string, to: string) => Promise<void>): Promise<void> {
  for (const line of instructions(image, 'COPY').filter((each) => each.startsWith('--from=build'))) {
    const [, ...words] = line.split(/\s+/)
    const place = words.pop() ?? ''
    for (const name of words.map((from) => from.replace(/^\/app\//, ''))) {
      const target = join(to, place.endsWith('/') ? name : place)
      await mkdir(dirname(target), { recursive: true })
      if (name === 'node_modules') await modules(join(app, name), target)
      else await cp(join(app, name), target, { recursive: true })
    }
  }
}

/** Runs what the image runs, in a folder that has what the image has, and ends it as an orchestrator does. */
export async function runAsImage (t: Cleanup, runtime: string, data: string): Promise<void> {
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
  const health = async (): Promise<boolean> => await run(process.execPath, healthCheck(), { env }).then(() => true, () => false)
  await until(health, () => output)
  const names = ['LICENSE', 'README.md', 'assets', 'db', 'dist', 'node_modules', 'package.json']
  assert.deepEqual(readdirSync(runtime).sort(), names, 'nothing is written beside it')
  await until(() => readdirSync(data).includes('mcp_settings.json'))
  const ended = once(hub, 'exit')
  hub.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null], output)
  assert.equal(await health(), false, 'a gateway that is gone is not healthy')
}
