// What runs the gateway elsewhere: what the Dockerfile copies and starts, in a plain folder (nightly/image builds the image); the unit for
// systemd where that is there, and the compose file and the chart as far as they can be read.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { temporaryFolder } from '../fakes/store-file.ts'
import { at, type Json } from '../helpers/client.ts'
import { copyImage, instructions, isKnown, run, runAsImage, stages } from '../helpers/dockerfile.ts'
import { path, startHub } from '../helpers/hub.ts'

const read = (name: string): string => readFileSync(path(name), 'utf8')

test('what the Dockerfile copies runs by its command, its environment and its health check', async (t) => {
  const root = await temporaryFolder(t)
  const [build = [], , image = []] = stages
  assert.match(build[0] ?? '', /^FROM node:24-bookworm-slim AS build$/)
  const steps = instructions(build, 'RUN').map((line) => line.split(' ').slice(0, 3).join(' '))
  assert.deepEqual(steps, ['npm ci --ignore-scripts', 'npm run build'])
  assert.match(instructions(build, 'RUN').join(), /node cli\/prune.mjs/)
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

test('compose with commands as another user', async () => {
  const [base, variant] = [parse(read('compose.yaml')) as Json, parse(read('examples/compose.child-user.yaml')) as Json]
  const hub = at(variant, 'services', 'tool-hub') as Json
  assert.deepEqual(Object.keys(variant.services as Json).filter((name) => !(name in (base.services as Json))), [])
  for (const name of Object.keys(hub.environment as Json)) assert.ok(isKnown(name), name)
  assert.equal(hub.user, '0:0', 'only root starts processes as somebody else')
  const CHILD_USER = String(at(hub, 'environment', 'CHILD_USER'))
  assert.match(instructions(stages.at(-1) ?? [], 'RUN').join('\n'), new RegExp(`useradd --create-home .* ${CHILD_USER}$`, 'm'))
  assert.deepEqual(hub.volumes, [`children:/home/${CHILD_USER}`])
  assert.ok('children' in (variant.volumes as Json))
})

test('the unit for systemd', async (t) => {
  const unit = read('examples/systemd/tool-hub.service')
  for (const [, name = ''] of unit.matchAll(/^Environment=(.*)$/gm)) {
    for (const each of name.split(' ').map((pair) => pair.split('=')[0] ?? '')) assert.ok(isKnown(each) || ['NODE_ENV', 'HOME'].includes(each), each)
  }
  const file = /^EnvironmentFile=-(.*)$/m.exec(unit)?.[1]
  assert.ok(file !== undefined && unit.includes(`install -m 600 tool-hub.env ${file}`))
  for (const [, name = ''] of read('examples/systemd/tool-hub.env').matchAll(/^#?(\w+)=/gm)) assert.ok(isKnown(name), name)
  assert.ok(unit.includes(`tool-hub --config ${/SETTINGS_PATH=(\S+)/.exec(unit)?.[1]} status`), 'it says how the command line is used')
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
    .filter((line) => !/^\s*\{\{-? *(if|end|range|fail|\$name|\$base)/.test(line))
    .join('\n')
    .replace(/\{\{-? *(toYaml[^}]*?) *-?\}\}/g, ' {}')
    .replace(/"\{\{.*?\}\}"|\{\{.*?\}\}(?::\{\{.*?\}\})?/g, 'x')
  const kinds = parseAllDocuments(filled).map((document) => {
    assert.deepEqual(document.errors, [])
    return at(document.toJS() as unknown, 'kind')
  })
  assert.deepEqual(kinds, ['StatefulSet', 'Service', 'Ingress'])
  for (const name of ['startup', 'liveness', 'readiness']) {
    assert.match(template, new RegExp(`${name}Probe: \\{ httpGet: \\{ path: "\\{\\{ \\$base \\}\\}/health/`), 'below BASE_PATH')
  }
  assert.match(template, /\$base := \.Values\.env\.BASE_PATH \| default "" \| trimSuffix "\/"/)
  assert.match(template, /if and \(gt \(int \.Values\.replicas\) 1\) \(not \.Values\.database\) -\}\}\n\{\{- fail "[^"]*DB_URL/)
})

/** The names of metrics in expressions of Prometheus; parts of a histogram by its name. */
const metricsIn = (expressions: readonly string[]): Set<string> => new Set(
  expressions.flatMap((each) => each.replace(/"[^"]*"/g, '').match(/\b(?:toolhub|nodejs|process)_\w+/g) ?? []).map((name) => name.replace(/_bucket$/, ''))
)

test('alerts and dashboard name metrics that a gateway of their kind has', async (t) => {
  const rulesOf = (name: string): string[] => {
    const { groups } = parse(read(`examples/prometheus/${name}`)) as { groups: Array<{ rules: Array<{ expr: string }> }> }
    return groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))
  }
  const dashboard = JSON.parse(read('examples/prometheus/grafana-dashboard.json')) as { panels: Array<{ targets: Array<{ expr: string }> }> }
  const panels = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  assert.ok(panels.length + rulesOf('alerts.yaml').length > 15)
  for (const panel of panels) {
    for (const [, selector = ''] of panel.matchAll(/\b(?:toolhub|nodejs|process)_\w+(\{[^}]*\})?/g)) {
      assert.match(selector, /job=~"\$job"/, panel)
    }
  }
  const METRICS_TOKEN = 'a token of this test for the metrics'
  const metricsOf = async (env: Record<string, string>): Promise<Set<string>> => {
    const hub = await startHub(t, { env: { METRICS_TOKEN, ...env }, settings: {} })
    const text = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })).text()
    return new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name))
  }
  const folder = await temporaryFolder(t)
  const [file, database] = [await metricsOf({}), await metricsOf({ DB_URL: `pglite://${folder}` })]
  const [any, recorded] = [metricsIn([...panels, ...rulesOf('alerts.yaml')]), metricsIn(rulesOf('alerts-database.yaml'))]
  for (const name of any) assert.ok(file.has(name) && database.has(name), name)
  for (const name of recorded) assert.deepEqual([database.has(name), file.has(name)], [true, false], name)
  assert.ok(any.size > 8 && recorded.size > 0)
})
