import type { Command } from 'commander'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ManagementApiClient } from '../api.ts'
import { withApi, type CommandContext, type CommandRun, type Output } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { toIndentedPrintableLines, toPrintable } from '../printable.ts'
import { collectOption, configFromArguments, type AddOptions } from './server-config.ts'

/** A tool, prompt or resource of a server. */
interface Item { name?: string, uri?: string, description?: string, enabled: boolean }
/** The members of a server's record in the API that the command line uses. */
export interface ApiServerRecord {
  name: string
  status: string
  error: string | null
  warnings?: ServerWarning[]
  tools: Item[]
  prompts: Item[]
  resources: Item[]
  config: { type?: string, command?: string, args?: string[], url?: string, enabled?: boolean }
  /** The MCP revision of the connection, if connected. */
  protocolVersion?: string
  oauth?: { authorizationUrl: string }
}
interface ServerTestResult extends Omit<ApiServerRecord, 'name' | 'config'> {
  connected: boolean, duration: number, warnings: string[]
}
/** A warning in a server's record: a sentence, or a warning about the definition of an item. */
type ServerWarning = string | { readonly kind: string, readonly item: string, readonly message: string }
const toSentence = (warning: ServerWarning): string =>
  typeof warning === 'string' ? warning : `${warning.kind} ${JSON.stringify(warning.item)}: ${warning.message}`

interface Answer<Data> { data: Data, message?: string, warnings?: string[] }

/** The max time to wait for a server to connect, in ms. */
const maxWait = 90_000

/** Returns the path of a server in the management API. */
export const serverApiPath = (name: string): string => `/api/servers/${encodeURIComponent(name)}`

/** Registers the commands `status`, `list`, `add`, `test` and `remove`. */
export function addServerCommands (program: Command, run: CommandRun): void {
  program.command('status')
    .description('whether the gateway runs, and the status of its servers')
    .action(async (_options, command: Command) => { await withApi(run, command, printStatus) })

  program.command('list')
    .description('the servers, or the items of one')
    .argument('[server]', 'a server, whose tools, prompts and resources are listed')
    .action(async (name: string | undefined, _options, command: Command) => {
      await withApi(run, command, async (context) => {
        await (name === undefined ? listServers(context) : listItems(context, name))
      })
    })

  program.command('add')
    .description('add a server: an address, or a command after two dashes')
    .argument('<name>')
    .argument('[target...]', 'https://…, or -- command args…')
    .showHelpAfterError(dashesHint(run.argv))
    .option('--type <type>', 'stdio, streamable-http, sse or openapi')
    .option('--env <NAME=value>', 'an environment variable of the command (repeatable)', collectOption, [])
    .option('--header <Name: value>', 'a header for a remote server (repeatable)', collectOption, [])
    .option('--config-json <json>', 'the config as JSON; a target and the other options are added to it')
    .option('--visibility <visibility>', 'private or public')
    .option('--disabled', 'store it without connecting it')
    .option('--test', 'connect once first, and store it only if it connects or requires a login')
    .option('--wait', 'wait until it is connected')
    .action(async (name: string, target: string[], options: AddOptions, command: Command) => {
      const config = configFromArguments(run, name, target, options)
      await withApi(run, command, async (context) => { await addServer(context, name, config, options) })
    })

  program.command('test')
    .description('open another connection to a stored server, and show what it lists')
    .argument('<name>')
    .action(async (name: string, _options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const { config } = await api.get<ApiServerRecord>(serverApiPath(name))
        const tested = await testServer(api, { name, config })
        out.writeResult(tested, () => testedText(out, tested))
        if (tested.connected) return
        if (tested.status !== 'oauth_required') throw new CommandError(`${name} does not connect`)
        printLogin(out, await api.get<ApiServerRecord>(serverApiPath(name)))
        throw new CommandError(`${name} requires a login`)
      })
    })

  program.command('remove')
    .description('remove a server, also from groups and from the scopes of keys')
    .argument('<name>')
    .action(async (name: string, _options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const { message } = await api.request<Answer<undefined>>('DELETE', serverApiPath(name))
        out.writeResult({ name, removed: true }, message ?? 'The server was removed')
      })
    })
}

/**
 * Returns the hint for users of `tool-hub add` who forgot the two dashes, so that the options of a server's command
 * were parsed as options of `tool-hub add`.
 */
function dashesHint (argv: readonly string[]): string {
  const [name = '<name>', ...target] = argv.slice(argv.indexOf('add') + 1).filter((each) => each !== '--')
  // Without a target, the hint can only contain placeholders.
  const command = target[0] === undefined || target[0].startsWith('-') ? '<command> <args…>' : target.join(' ')
  return `Put two dashes before a command that has options: tool-hub add ${name} -- ${command}`
}

async function printStatus ({ api, out, run }: CommandContext): Promise<void> {
  const servers = await api.get<Array<Pick<ApiServerRecord, 'name' | 'status' | 'error' | 'oauth'>>>(
    '/api/servers?fields=name,status,error,oauth'
  )
  // Users who are not admins cannot read the problems, and see the status without them.
  const problems = await api.get<string[]>('/api/settings/problems').catch(() => [])
  const connected = servers.filter((server) => server.status === 'connected').length
  const uptime = api.url === undefined ? undefined : (await api.request<{ uptime?: number }>('GET', '/health')).uptime
  const running = api.url !== undefined
  out.writeResult({ running, url: api.url ?? null, uptime: uptime ?? null, servers, problems }, () => [
    api.url === undefined
      ? `${out.style('yellow', 'The gateway is down')}; ${servers.length} servers are in its settings`
      : `The gateway runs at ${api.url}: ${connected} of ${servers.length} servers are connected`,
    ...servers.length === 0 ? [] : ['', serverTable(out, api, servers)]
  ].join('\n'))
  if (!out.isJson) {
    for (const { name, oauth } of servers) if (oauth) printLoginAddress(out, name, oauth.authorizationUrl)
    for (const problem of problems) out.writeWarning(problem)
  }
  // The exit code tells scripts whether the gateway is running.
  if (api.url === undefined) run.exitCode = exitCodes.unreachable
}

const serverTable = (
  out: Output, api: ManagementApiClient, servers: ReadonlyArray<Pick<ApiServerRecord, 'name' | 'status' | 'error'>>
): string =>
  out.formatTable(
    ['NAME', 'STATUS', 'ERROR'],
    servers.map((server) => [server.name, statusOf(api, server), server.error ?? '']),
    (cell, column) => column === 1 ? out.styleStatus(cell) : cell
  )

const statusOf = (api: ManagementApiClient, server: { status: string }): string =>
  api.url === undefined && server.status !== 'disabled' ? 'not running' : server.status

async function listServers ({ api, out }: CommandContext): Promise<void> {
  const servers = await api.get<ApiServerRecord[]>('/api/servers')
  out.writeResult(servers, () => {
    if (servers.length === 0) {
      return 'There are no servers yet. Add one: tool-hub add <name> https://…, or tool-hub add <name> -- <command> …'
    }
    const rows = servers.map((server) => [
      server.name,
      statusOf(api, server),
      targetOf(server.config),
      server.protocolVersion ?? '–',
      api.url === undefined ? '–' : String(server.tools.length)
    ])
    return out.formatTable(['NAME', 'STATUS', 'TARGET', 'MCP', 'TOOLS'], rows, (cell, column) =>
      column === 1 ? out.styleStatus(cell) : cell)
  })
  for (const { name, warnings = [] } of servers) {
    for (const warning of warnings) out.writeWarning(`${name}: ${toSentence(warning)}`)
  }
}

const targetOf = ({ command, args = [], url }: ApiServerRecord['config']): string => {
  const text = url === undefined || url === '' ? [command, ...args].join(' ') : url
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}

async function listItems ({ api, out }: CommandContext, name: string): Promise<void> {
  const server = await api.get<ApiServerRecord>(serverApiPath(name))
  const status = statusOf(api, server)
  const { error, warnings = [], oauth } = server
  out.writeResult(server, () => itemTable(out, server) || `${toPrintable(name)} lists nothing: it is ${status}`)
  if (out.isJson) return
  if (error !== null) out.writeWarning(`${name} is ${status}: ${error}`)
  if (oauth) printLoginAddress(out, name, oauth.authorizationUrl)
  for (const warning of warnings) out.writeWarning(toSentence(warning))
}

function itemTable (
  out: Output, { tools, prompts, resources }: Pick<ApiServerRecord, 'tools' | 'prompts' | 'resources'>
): string {
  const rows = Object.entries({ tool: tools, prompt: prompts, resource: resources }).flatMap(([kind, items]) =>
    items.map(({ name, uri, description = '', enabled }) =>
      [kind, uri ?? name ?? '', enabled ? 'on' : 'off', firstLine(description)]))
  return rows.length === 0 ? '' : out.formatTable(['KIND', 'NAME', 'STATE', 'DESCRIPTION'], rows)
}

const firstLine = (text: string): string => {
  const [line = ''] = text.trim().split('\n')
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}

const testServer = async (api: ManagementApiClient, body: object): Promise<ServerTestResult> =>
  (await api.request<Answer<ServerTestResult>>('POST', '/api/servers/test', body)).data

function testedText (out: Output, tested: ServerTestResult): string {
  if (tested.connected) {
    const revision = tested.protocolVersion === undefined ? '' : `, with MCP ${toPrintable(tested.protocolVersion)}`
    return `${out.style('green', 'It connects')} in ${tested.duration} ms${revision}.\n${itemTable(out, tested)}`
  }
  const verdict = tested.status === 'oauth_required'
    ? out.style('yellow', 'It requires a login')
    : out.style('red', 'It does not connect')
  return `${verdict}: ${toIndentedPrintableLines(tested.error ?? '')}`
}

const printLoginAddress = (out: Output, name: string, address: string): void => {
  out.writeRemark(`Log in at ${toPrintable(name)}, in a browser: ${toPrintable(address)}`)
}

/** Tells the user how to log in to a server that requires a login. */
function printLogin (out: Output, { name, oauth }: ApiServerRecord): void {
  if (oauth) printLoginAddress(out, name, oauth.authorizationUrl)
  else {
    out.writeRemark(
      `The address to open is in its record: tool-hub list ${toPrintable(name)} --json, member oauth.authorizationUrl`
    )
  }
}

const withWarnings = (warnings: readonly string[]) => warnings.length > 0 ? { warnings } : {}

async function addServer (
  { api, out }: CommandContext, name: string, config: Record<string, unknown>, options: AddOptions
): Promise<void> {
  let tested: ServerTestResult | undefined
  if (options.test) {
    tested = await testServer(api, { name, config })
    // A server that requires a login is added: the login is possible only once the server is stored.
    const isReached = tested.connected || tested.status === 'oauth_required'
    if (!isReached) {
      const reason = toIndentedPrintableLines(tested.error ?? '')
      throw new CommandError(`${name} was not added. It does not connect: ${reason}`)
    }
  }
  const { data, warnings = [] } = await api.request<Answer<ApiServerRecord>>('POST', '/api/servers', { name, config })
  if (!out.isJson) for (const warning of warnings) out.writeWarning(warning)
  if (!options.wait) {
    const needsLogin = tested?.status === 'oauth_required' && api.url !== undefined
    const server = needsLogin ? await waitForServer(api, name) : undefined
    out.writeResult(
      { ...server ?? data, ...(tested ? { tested } : {}), ...withWarnings(warnings) },
      () => [addedText(api, data), ...tested ? [testedText(out, tested)] : []].join('\n')
    )
    if (server) printLogin(out, server)
    return
  }
  if (api.url === undefined) {
    throw new CommandError(`${name} was added. The gateway is down, so it is not connected.`, exitCodes.unreachable)
  }
  const ready = await waitForServer(api, name)
  const text = `${toPrintable(name)} is ${out.styleStatus(ready.status)}, with ${ready.tools.length} tools`
  out.writeResult({ ...ready, ...withWarnings(warnings) }, text)
  if (ready.status === 'connected') return
  if (ready.status !== 'oauth_required') {
    const reason = toIndentedPrintableLines(ready.error ?? ready.status)
    throw new CommandError(`${name} was added, but is not connected: ${reason}`)
  }
  printLogin(out, ready)
  throw new CommandError(`${name} was added, and requires a login`)
}

function addedText ({ url }: ManagementApiClient, { name, config }: ApiServerRecord): string {
  const text = `The server ${JSON.stringify(name)} was added`
  if (config.enabled === false) return `${text}, disabled`
  return url === undefined
    ? `${text}. The gateway is down: the server connects once the gateway is started`
    : `${text} and is connecting`
}

/** Waits until a server is no longer connecting, but at most for `maxWait`. @returns the last record of the server */
async function waitForServer (api: ManagementApiClient, name: string): Promise<ApiServerRecord> {
  const end = Date.now() + maxWait
  for (;;) {
    const server = await api.get<ApiServerRecord>(serverApiPath(name))
    if (server.status !== 'connecting' || Date.now() > end) return server
    await sleep(150)
  }
}
