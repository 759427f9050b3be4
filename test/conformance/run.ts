/**
 * Runs the server scenarios of the MCP conformance suite against the fixture server (test/fakes/everything.ts) directly, then against the
 * same server behind the gateway, on its own route and on the merged one, and compares them check by check. Then runs the scenarios for
 * authorization servers against the gateway, and those for clients against its upstream side.
 *
 *   npm run conformance                # all; fails unless every scenario is equal and nothing failed
 *   npm run conformance -- legacy      # parts of it: `legacy` and `modern` (the server scenarios of a revision), `authorization`,
 *                                      # `login` (at upstream servers), `client` (the other scenarios for clients)
 *
 * The suite is installed below .cache/conformance where it is absent.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pLimit from 'p-limit'
import { bearerKey, freePort, path, spawnHub, tsServer, until, type Cleanup, type ProcessHub } from '../helpers/hub.ts'
import { allow, Browser, register } from '../helpers/oauth.ts'
import { startRawNames } from './raw-names.ts'
import { cachedPackages } from '../helpers/packages.ts'

// The one place that pins the suite. It needs a newer Node than the gateway does, so it brings its own.
const packages = { node: '22.23.3', '@modelcontextprotocol/conformance': '0.2.0-alpha.12' }
const revision = '2025-11-25'
/** As many server scenarios as the pinned suite has for the revision, the unscored ones included. */
const scenarioCount = 33
/** The revision of the modern era, and as many server scenarios as the suite has for it, the unscored ones included. */
const modernRevision = '2026-07-28'
const modernCount = 50
/** A scenario that the revision does not score: what the SDK's own servers do not check. */
const unscored = /^http-custom-header-server-validation$/
/** Where a server may answer with a stream, and the fixture does not: the check of the streams is there through the gateway only. */
const streaming = 'server-sse-multiple-streams'
/** As many scenarios for authorization servers. */
const authorizationCount = 2

/**
 * The scenarios for OAuth clients, by the revision that they are run at: those that the revision requires, those of 2025-03-26 that went,
 * the extension "OAuth Client Credentials", and of later revisions what a client of this one may do already.
 */
const loginScenarios: Readonly<Record<string, readonly string[]>> = {
  [revision]: [
    'metadata-default', 'metadata-var1', 'metadata-var2', 'metadata-var3', 'basic-cimd', 'scope-from-www-authenticate',
    'scope-from-scopes-supported', 'scope-omitted-when-undefined', 'scope-step-up', 'scope-retry-limit',
    'token-endpoint-auth-basic', 'token-endpoint-auth-post', 'token-endpoint-auth-none', 'pre-registration',
    'client-credentials-jwt', 'client-credentials-basic', 'resource-mismatch', 'iss-supported', 'iss-not-advertised',
    'iss-supported-missing', 'iss-wrong-issuer', 'iss-unexpected', 'iss-normalized', 'metadata-issuer-mismatch'
  ],
  '2025-03-26': ['2025-03-26-oauth-metadata-backcompat', '2025-03-26-oauth-endpoint-fallback'],
  '2026-07-28': [
    'metadata-default', 'metadata-var1', 'metadata-var2', 'metadata-var3', 'basic-cimd', 'scope-from-www-authenticate',
    'scope-from-scopes-supported', 'scope-omitted-when-undefined', 'scope-step-up', 'scope-retry-limit',
    'token-endpoint-auth-basic', 'token-endpoint-auth-post', 'token-endpoint-auth-none', 'pre-registration',
    'resource-mismatch', 'offline-access-scope', 'offline-access-not-supported', 'authorization-server-migration',
    'iss-supported', 'iss-not-advertised', 'iss-supported-missing', 'iss-wrong-issuer', 'iss-unexpected',
    'iss-normalized', 'metadata-issuer-mismatch'
  ]
}

/** The scenario of a client whose id is the address of a document, and where the suite expects that. */
const byDocument = 'basic-cimd'
const documentsAt = 'https://conformance-test.local'

/** The other scenarios for clients, by revision: all that the revision requires. */
const clientScenarios: Readonly<Record<string, readonly string[]>> = {
  [revision]: ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults', 'sse-retry', 'json-schema-2020-12-preservation'],
  '2026-07-28': [
    'tools_call', 'request-metadata', 'sep-2322-client-request-state', 'http-standard-headers', 'http-custom-headers',
    'http-invalid-tool-headers', 'json-schema-ref-no-deref', 'json-schema-2020-12-preservation'
  ]
}

const runMs = 900_000
const scenarioMs = 60_000
/** A gateway is waited for where a login is to fail. */
const clientMs = 120_000
const stopMs = 60_000

const modules = path('.cache/conformance/node_modules')
const expectedFailuresPath = path('test/conformance/expected-failures.yml')
// What the suite notes as it goes; how often it does depends on timing. (Any of these that is no INFO counts.)
const notes = ['outgoing-request', 'incoming-response', 'incoming-sse-event', 'stream-closed']

interface Check { id: string, status: string, errorMessage?: string }
/** The checks of each scenario, by its name. */
type Results = Map<string, Check[]>

/** Suites that run at the same time: most of a run is waiting for processes to start. */
const limit = pLimit(2)
const steps: Array<() => unknown> = []
let ending = false
const cleanup: Cleanup = { after: (step) => { steps.push(step) } }

async function cleanUp (): Promise<void> {
  ending = true
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    try { await step() } catch (error) { console.error(error) }
  }
}

/** A child process with its output so far. Killed at the end, or after so many milliseconds. */
function start (
  command: string,
  args: string[],
  options: { env?: Record<string, string>; timeout?: number } = {}
): { child: ChildProcess; output: () => string; exited: Promise<number | string> } {
  if (ending) throw new Error('The run is over')
  const child = spawn(command, args, {
    cwd: path(''),
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.timeout,
    killSignal: 'SIGKILL'
  })
  let output = ''
  child.stdout.on('data', (chunk) => { output += String(chunk) })
  child.stderr.on('data', (chunk) => { output += String(chunk) })
  const exited = new Promise<number | string>((resolve) => {
    child.once('error', (error) => { resolve(error.message) })
    child.once('close', (code, signal) => { resolve(code ?? String(signal)) })
  })
  cleanup.after(async () => {
    if (child.pid === undefined) return
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  })
  return { child, output: () => output, exited }
}

/** Starts a fresh fixture server; resolves with its URL. */
async function startFixture (file = 'test/fakes/everything.ts'): Promise<string> {
  const { command, args } = tsServer(file)
  const { child, output } = start(command, args, { env: { PORT: '0' } })
  const port = (): string | undefined => /^listening (\d+)$/m.exec(output())?.[1]
  await until(() => port() ?? child.exitCode !== null, () => `The fixture server does not listen: ${output()}`)
  if (port() === undefined) throw new Error(`The fixture server exited: ${output()}`)
  return `http://127.0.0.1:${port()}/mcp`
}

/** Starts a gateway, which is stopped at the end. */
async function startHub (settings: object, env: Record<string, string> = {}): Promise<ProcessHub> {
  const started: { hub?: ProcessHub } = {}
  const after: Cleanup['after'] = (step) => {
    cleanup.after(async () => {
      // A gateway that does not stop must not hang the run.
      const timer = setTimeout(() => { started.hub?.child.kill('SIGKILL') }, stopMs)
      try { await step() } finally { clearTimeout(timer) }
    })
  }
  return (started.hub = await spawnHub({ after }, { settings, env }))
}

/** As `startGateway`, but the endpoint of all servers, with the names that the suite knows. */
async function startMerged (file?: string): Promise<string> {
  return await startRawNames(cleanup, (await startGateway(file)).replace(/\/everything$/, ''), 'everything-')
}

/** Starts the gateway in front of a fresh fixture server; resolves with the URL of that server's endpoint. */
async function startGateway (file?: string): Promise<string> {
  const url = await startFixture(file)
  const hub = await startHub({
    mcpServers: { everything: { type: 'streamable-http', url, visibility: 'public' } },
    systemConfig: { routing: { enableBearerAuth: false } }
  })
  return `${hub.url}/mcp/everything`
}

/** Results of the fixture server directly, and on both kinds of routes of the gateway. */
type RouteResults = Record<'direct' | 'gateway' | 'merged', Results>

/** Runs the scenarios of the legacy era. */
async function runLegacy (): Promise<RouteResults> {
  const baseline = ['--expected-failures', expectedFailuresPath]
  const run = async (url: string, ...options: string[]): Promise<Results> => await runAt(revision, scenarioCount, url, ...options)
  const [direct, gateway, merged] = await Promise.all([
    limit(async () => await run(await startFixture())),
    limit(async () => await run(await startGateway(), ...baseline)),
    limit(async () => await run(await startMerged(), ...baseline))
  ])
  return { direct, gateway, merged }
}

/** Runs those of the modern era against the other fixture server. */
async function runModern (): Promise<RouteResults> {
  const runOn = async (start: (file: string) => Promise<string>): Promise<Results> => await limit(async () => {
    const results = await runAt(modernRevision, modernCount, await start('test/fakes/everything-modern.ts'))
    for (const name of [...results.keys()]) if (unscored.test(name)) results.delete(name)
    return results.set(streaming, (results.get(streaming) ?? []).filter(({ id }) => id !== 'server-sse-streams-functional'))
  })
  const [direct, gateway, merged] = await Promise.all([runOn(startFixture), runOn(startGateway), runOn(startMerged)])
  return { direct, gateway, merged }
}

/** Prints what each route came to beside the fixture alone; whether all is well. */
function reportRoutes ({ direct, ...routes }: RouteResults, expected: Set<string>): boolean {
  return Object.entries(routes).map(([name, results]) => report({ direct, [name]: results }, expected)).every(Boolean)
}

/** A run of the suite: a process, and the folder that it writes its results to. */
interface Suite extends ReturnType<typeof start> { folder: string }
async function startSuite (args: readonly string[], env: Record<string, string> = {}): Promise<Suite> {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-conformance-'))
  cleanup.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const all = [join(modules, '.bin/conformance'), ...args, '-o', folder]
  return { folder, ...start(join(modules, '.bin/node'), all, { timeout: runMs, env }) }
}

/** What a run of so many scenarios came to; where it has not run all of them, or ended oddly, that is a failure, too. */
async function resultsOf ({ folder, output, exited }: Suite, kind: string, count: number): Promise<Results> {
  const code = await exited
  if (ending) throw new Error('Interrupted')
  const results: Results = new Map()
  // One folder a scenario: server-<scenario>-<time>/checks.json
  for (const name of (await readdir(folder)).sort()) {
    const scenario = new RegExp(`^${kind}-(.+)-\\d{4}-\\d\\d-\\d\\dT[\\d-]+Z$`).exec(name)?.[1]
    if (scenario !== undefined) results.set(scenario, await readChecks(join(folder, name, 'checks.json')))
  }
  if (results.size === count && (code === 0 || [...results.values()].flat().some(isFailure))) return results
  console.error(output().slice(-4_000))
  const errorMessage = `exit code ${code}, ${results.size} of ${count} scenarios`
  return results.set('(the run)', [{ id: 'run-complete', status: 'FAILURE', errorMessage }])
}

/** Runs every scenario of a revision. */
async function runAt (version: string, count: number, url: string, ...options: string[]): Promise<Results> {
  console.log(`Running the scenarios against ${url}`)
  const given = ['--url', url, '--requirements', version, '--timeout', String(scenarioMs), ...options]
  return await resultsOf(await startSuite(['server', ...given]), 'server', count)
}

/**
 * Runs the scenarios for authorization servers against the gateway. The suite prints an address for a person to open, and waits for the
 * browser to come back.
 * @param withSecret the client is a confidential one, and the gateway takes no others
 */
async function runAuthorization (withSecret: boolean): Promise<Results> {
  const person = { username: 'admin', password: 'Conformance-Of-Admins-1' }
  const oauthServer = { enabled: true, requireClientSecret: withSecret }
  const hub = await startHub({ mcpServers: {}, systemConfig: { oauthServer } }, { ADMIN_PASSWORD: person.password })
  const port = await freePort()
  const { client_id: clientId = '', client_secret: secret } = await register(hub.url, {
    redirect_uris: [`http://127.0.0.1:${port}/callback`],
    token_endpoint_auth_method: withSecret ? 'client_secret_post' : 'none'
  })
  console.log(`Running the scenarios for authorization servers against ${hub.url}`)
  const secrets = secret === undefined ? [] : ['--client-secret', secret]
  const given = ['--url', hub.url, '--client-id', clientId, ...secrets, '--resource', `${hub.url}/mcp`, '--port', String(port)]
  const suite = await startSuite(['authorization', ...given])
  const { child, output } = suite
  const address = (): string | undefined => /^(http\S+\/oauth\/authorize\?\S+)$/m.exec(output())?.[1]
  await until(() => address() !== undefined || child.exitCode !== null, () => `No address was printed: ${output()}`)
  const url = address()
  if (url !== undefined) {
    const browser = new Browser(hub.url)
    await browser.get((await allow(browser, url, person)).href)
  }
  return await resultsOf(suite, 'authorization-server', authorizationCount)
}

/** The gateways that drivers add their servers to, by `install.baseUrl`. */
const upstreamSides = new Map<string, Promise<ProcessHub>>()
async function upstreamSide (baseUrl: string): Promise<ProcessHub> {
  const systemConfig = baseUrl === '' ? {} : { install: { baseUrl } }
  // The suite's authorization servers are on this machine, at other origins than its MCP servers.
  const env = { OUTBOUND_ALLOW: 'localhost,127.0.0.1' }
  const hub = upstreamSides.get(baseUrl) ?? startHub({ mcpServers: {}, bearerKeys: [bearerKey()], systemConfig }, env)
  upstreamSides.set(baseUrl, hub)
  return await hub
}

/** Runs scenarios for clients, some at a time. @param driver adds the suite's server to a gateway, and uses it */
async function runScenarios (driver: string, scenarios: Readonly<Record<string, readonly string[]>>, prefix: string): Promise<Results> {
  const results: Results = new Map()
  console.log(`Running the scenarios for clients against the upstream side of the gateway: ${driver}`)
  const command = `${join(modules, '.bin/node')} ${path(driver)}`
  const one = async (version: string, name: string): Promise<Check[]> => {
    const hub = await upstreamSide(name === byDocument ? documentsAt : '')
    const options = ['--scenario', `${prefix}${name}`, '--spec-version', version, '--force', '--timeout', String(clientMs)]
    const { folder, output, exited } = await startSuite(['client', '--command', command, ...options], { TOOL_HUB_URL: hub.url })
    const code = await exited
    if (ending) throw new Error('Interrupted')
    const [made] = (await readdir(folder, { recursive: true })).filter((each) => each.endsWith('checks.json'))
    const checks = made === undefined ? [] : await readChecks(join(folder, made))
    if (made === undefined || (code !== 0 && !checks.some(isFailure))) {
      console.error(output().slice(-4_000))
      checks.push({ id: 'scenario-complete', status: 'FAILURE', errorMessage: `exit code ${code}` })
    }
    return checks
  }
  const all = Object.entries(scenarios).flatMap(([version, names]) => names.map((name) => ({ version, name })))
  await Promise.all(all.map(async ({ version, name }) => await limit(async () => {
    results.set(`${prefix}${name} ${version}`, await one(version, name))
  })))
  return results
}

async function readChecks (file: string): Promise<Check[]> {
  try {
    const checks = JSON.parse(await readFile(file, 'utf8')) as Check[]
    return checks.filter(({ id, status }) => !(status === 'INFO' && notes.includes(id)))
  } catch (error) {
    return [{ id: 'scenario-complete', status: 'FAILURE', errorMessage: `no results: ${String(error)}` }]
  }
}

const isFailure = ({ status }: Check): boolean => status === 'FAILURE'

/** How often each check ended how. */
function tally (checks: Check[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { id, status } of checks) counts.set(`${status} ${id}`, (counts.get(`${status} ${id}`) ?? 0) + 1)
  return counts
}

/** The checks that ended more or less often than they did directly, one a line. */
function differences (direct: Check[], gateway: Check[]): string[] {
  const [before, after] = [tally(direct), tally(gateway)]
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((key) => before.get(key) !== after.get(key))
    .map((key) => `${key}: ${before.get(key) ?? 0} directly, ${after.get(key) ?? 0} through the gateway`)
}

async function expectedFailures (): Promise<Set<string>> {
  const text = await readFile(expectedFailuresPath, 'utf8')
  return new Set([...text.matchAll(/^\s*- *([^\s#]+)/gm)].map((match) => match[1] ?? ''))
}

const score = (checks: Check[] | undefined): string => checks === undefined
  ? 'missing'
  : `${checks.filter(({ status }) => status === 'SUCCESS').length}/${checks.filter(isFailure).length}`

/** Prints the scenarios of the runs (the last one is the one to judge) side by side; resolves with whether all is well. */
function report (runs: Record<string, Results>, expected: Set<string>): boolean {
  const all = Object.values(runs)
  const direct = all.length > 1 ? all[0] : undefined
  const judged = all[all.length - 1] ?? new Map<string, Check[]>()
  const scenarios = [...new Set(all.flatMap((results) => [...results.keys()]))].sort()
  const width = Math.max(...scenarios.map((scenario) => scenario.length))
  const row = (...cells: string[]): void => { console.log(cells.map((cell, i) => cell.padEnd(i === 0 ? width : 8)).join('  ').trimEnd()) }

  const unexpected = (scenario: string, checks: Check[] = []): Check[] =>
    checks.filter(({ id }) => !expected.has(scenario) && !expected.has(`${scenario}:${id}`))
  let good = 0
  let fine = true
  row('scenario (passed/failed)', ...Object.keys(runs), direct === undefined ? 'passed?' : 'equal?')
  for (const scenario of scenarios) {
    const checks = judged.get(scenario) ?? []
    const before = direct?.get(scenario) ?? []
    const failed = [...before.filter(isFailure), ...unexpected(scenario, checks).filter(isFailure)]
    const different = direct === undefined ? [] : differences(before, checks)
    if (failed.length > 0 || (direct !== undefined && differences(unexpected(scenario, before), unexpected(scenario, checks)).length > 0)) {
      fine = false
    }

    const ok = direct === undefined ? !checks.some(isFailure) : different.length === 0
    if (ok) good++
    row(scenario, ...all.map((results) => score(results.get(scenario))), ok ? 'yes' : 'NO')
    if (checks.length > 0 && before.length > 0) for (const line of different) console.log(`    ${line}`)
    for (const { id, errorMessage } of failed) console.log(`    ${id}: ${errorMessage ?? 'failed'}`)
  }
  row('total', ...all.map((results) => score([...results.values()].flat())))
  const bad = scenarios.length - good
  console.log(
    direct === undefined ? `conformance: ${good} scenarios passed, ${bad} failed` : `conformance: ${good} scenarios equal, ${bad} differ`
  )
  return fine
}

/** Runs a part. @returns what prints what it came to, and whether all is well */
type Part = (expected: Set<string>) => Promise<() => boolean>
const parts: Readonly<Record<string, Part>> = {
  legacy: async (expected) => {
    const results = await runLegacy()
    return () => reportRoutes(results, expected)
  },
  modern: async (expected) => {
    const results = await runModern()
    return () => reportRoutes(results, expected)
  },
  authorization: async (expected) => {
    const all = await Promise.all([false, true].map(async (withSecret) => await limit(async () => await runAuthorization(withSecret))))
    return () => all.map((results, at) => report({ [at === 0 ? 'public client' : 'client secret']: results }, expected)).every(Boolean)
  },
  client: async (expected) => {
    const client = await runScenarios('test/conformance/client-driver.ts', clientScenarios, '')
    return () => report({ client }, expected)
  },
  login: async (expected) => {
    const login = await runScenarios('test/conformance/login-driver.ts', loginScenarios, 'auth/')
    return () => report({ login }, expected)
  }
}

async function main (): Promise<boolean> {
  const { positionals } = parseArgs({ allowPositionals: true })
  const chosen = (positionals.length === 0 ? Object.keys(parts) : positionals).map((name) => parts[name] ?? fail(name))
  const expected = await expectedFailures()
  await cachedPackages('conformance', packages)
  const reports = await Promise.all(chosen.map(async (run) => await run(expected)))
  return reports.map((print) => print()).every(Boolean)
}

function fail (name: string): never { throw new Error(`There is no part "${name}": ${Object.keys(parts).join(', ')}`) }

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => { cleanUp().finally(() => { process.exit(1) }) })
}

// The suite has deadlines of its own, of 600 ms: where we may, it goes before the tests that run beside it.
try { setPriority(-10) } catch {}

try {
  process.exitCode = await main() ? 0 : 1
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await cleanUp()
}
