// What runs the gateway elsewhere: what the Dockerfile copies and starts, in a plain folder (nightly/image builds the image); the unit for
// systemd where that is there, and the compose file and the chart as far as they can be read.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { temporaryFolder } from '../fakes/store-file.ts'
import { at, type Json } from '../helpers/client.ts'
import { copyImage, instructions, isKnown, run, runAsImage, stages } from '../helpers/dockerfile.ts'
import { path } from '../helpers/hub.ts'

const read = (name: string): string => readFileSync(path(name), 'utf8')

test('what the Dockerfile copies runs by its command, its environment and its health check', async (t) => {
  const root = await temporaryFolder(t)
  const [build = [], , image = []] = stages
  assert.match(build[0] ?? '', /^FROM node:22-bookworm-slim AS build$/)
  const steps = instructions(build, 'RUN').map((line) => line.split(' ').slice(0, 3).join(' '))
  assert.deepEqual(steps, ['npm ci --ignore-scripts', 'npm run build'])
  assert.match(instructions(build, 'RUN').join(), /npm prune --omit=dev/)
  assert.ok(instructions(image, 'USER').includes('node'), 'no root')
  await copyImage(path(''), join(root, 'app'), symlink)
  await runAsImage(t, join(root, 'app'), join(root, 'data'))
})

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
  const folder = await temporaryFolder(t)
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
