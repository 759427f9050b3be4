import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import { isObject } from '../../protocol/json.ts'
import { escapeTerminalControls } from '../../protocol/text.ts'
import { serializeSettings } from '../../db/document-text.ts'
import { createOrderedObject } from '../../db/order.ts'
import type { EditorInput } from '../../schemas/foreign-document.ts'
import type { ManagementApiClient } from '../api.ts'
import { askUser, canAskUser } from '../io.ts'
import type { ClientConfigFile, ImportedGroup } from '../client-file.ts'
import { createOutput, withApi, type CommandRun, type Output } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { collectOption } from './server-config.ts'
import { serverApiPath } from './servers.ts'

interface ImportOptions { dryRun?: true, replace?: true, input: string[], project?: string, only?: string[] }
/** The result for a server or a group of the imported file. */
interface Result {
  name: string
  success: boolean
  unchanged?: true
  replaced?: true
  message?: string
  warnings?: string[]
}

/** Registers the command `import`, which adds the servers in a client's configuration file. */
export function addImportCommand (program: Command, run: CommandRun): void {
  program.command('import')
    .description('add the servers in a configuration file of Claude, Cursor, VS Code, Copilot, Cline, Windsurf, ' +
      'Gemini, opencode, Zed, mcp-hub, MCPHub')
    .argument('<file>', 'the file; - reads it from stdin')
    .option('--dry-run', 'show what would be stored, with its secrets, and store nothing')
    .option('--replace', 'replace existing servers and groups that differ')
    .option('--only <server>', 'only this server (repeatable)', collectOption, [])
    .option('--input <id=value>', 'the answer to an input of VS Code (repeatable)', collectOption, [])
    .option('--project <folder>', 'Claude Code: the servers of this project as well')
    .action(async (path: string, options: ImportOptions, command: Command) => {
      const out = createOutput(run, command)
      const given = new Map(options.input.map((text) => {
        const at = text.indexOf('=')
        if (at < 1) throw new CommandError('--input: expected id=value', exitCodes.usage)
        return [text.slice(0, at), text.slice(at + 1)] as const
      }))
      const answer = async (input: EditorInput): Promise<string | undefined> =>
        given.get(input.id) ?? await askForInput(run, input, path)
      const { readClientConfigFile: readClientFile } = await import('../client-file.ts')
      const file = selectServers(await readClientFile(path, answer, options.project, run), options)
      for (const warning of file.warnings) out.writeWarning(warning)
      const ofServers = file.servers.flatMap(({ name, warnings }) => warnings.map((warning) => `${name}: ${warning}`))
      for (const warning of ofServers) out.writeWarning(warning)
      if (options.dryRun) {
        const mcpServers = createOrderedObject(file.servers.map(({ name, config }) => [name, config]))
        const all = { mcpServers, groups: file.groups, warnings: [...file.warnings, ...ofServers] }
        out.writeText(escapeTerminalControls(serializeSettings(out.isJson ? all : { mcpServers })).trimEnd())
        return
      }
      if (file.servers.length === 0) throw new CommandError(`${path} contains no servers`)
      await withApi(run, command, async ({ api }) => { await storeFile(api, out, file, options.replace === true) })
    })
}

function selectServers (file: ClientConfigFile, { only = [] }: ImportOptions): ClientConfigFile {
  if (only.length === 0) return file
  const missing = only.find((name) => !file.servers.some((server) => server.name === name))
  if (missing !== undefined) throw new CommandError(`The file has no server ${JSON.stringify(missing)}`)
  return { ...file, servers: file.servers.filter(({ name }) => only.includes(name)), groups: [] }
}

/** Stores the servers and groups of a file, and prints the results. @throws CommandError if one was rejected */
async function storeFile (
  api: ManagementApiClient, out: Output, { servers, groups, warnings }: ClientConfigFile, replace: boolean
): Promise<void> {
  const entries = servers.map(({ name, config }) => ({ name, config }))
  const results: Result[] = await addServers(api, entries)
  const known = results.every(({ success }) => success)
    ? []
    : await api.get<Array<{ name: string }>>('/api/servers?fields=name')
  const storedNames = new Set(known.map(({ name }) => name))
  for (const [at, { name, success }] of results.entries()) {
    const config = servers[at]?.config
    if (success || config === undefined || !storedNames.has(name)) continue
    results[at] = replace ? await replaceServer(api, name, config) : { name, success, message: differsMessage }
  }
  const warningsOfFile = new Map(servers.map((server) => [server.name, server.warnings]))
  for (const result of results) {
    result.warnings = [...new Set([...warningsOfFile.get(result.name) ?? [], ...result.warnings ?? []])]
  }
  const groupResults: Result[] = []
  for (const group of groups) groupResults.push(await addGroup(api, group, replace))
  const all = [...results, ...groupResults]
  out.writeResult({ servers: results, groups: groupResults, warnings }, () =>
    out.formatTable(['NAME', 'RESULT', 'REMARK'], [
      ...results.map((result) => [result.name, resultWord(result), result.success ? '' : result.message ?? '']),
      ...groupResults.map((result) => [`${result.name} (group)`, resultWord(result), result.message ?? ''])
    ], (cell, column) => column === 1 ? out.style(cell === 'refused' ? 'red' : 'green', cell) : cell))
  if (!out.isJson) {
    for (const { name, warnings: found = [] } of groupResults) {
      for (const each of found) out.writeWarning(`${name} (group): ${each}`)
    }
  }
  const failed = all.filter(({ success }) => !success).length
  if (failed > 0) throw new CommandError(`${failed} of ${all.length} could not be added`)
}

const differsMessage = 'it already exists, and differs: use --replace to replace it'

const resultWord = ({ success, unchanged, replaced }: Result): string =>
  success ? unchanged ? 'unchanged' : replaced ? 'replaced' : 'added' : 'refused'

/** Replaces the config of a server. Its owner, visibility and overrides are kept unless the file contains others. */
async function replaceServer (
  api: ManagementApiClient, name: string, config: Record<string, unknown>
): Promise<Result> {
  try {
    const { warnings } = await api.request<{ warnings?: string[] }>('PUT', serverApiPath(name), { config })
    return { name, success: true, replaced: true, ...(warnings && { warnings }) }
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === exitCodes.unreachable) throw error
    return { name, success: false, message: error.message }
  }
}

/** Adds several servers. @returns the result for each, even if the API responds with an error since all failed */
async function addServers (api: ManagementApiClient, servers: object[]): Promise<Result[]> {
  try {
    return (await api.request<{ data: { results: Result[] } }>('POST', '/api/servers/batch', { servers })).data.results
  } catch (error) {
    if (error instanceof CommandError && Array.isArray(error.results)) return error.results as Result[]
    throw error
  }
}

/** Returns the stored group with this name; undefined if there is none that the caller can see. */
async function fetchGroup (api: ManagementApiClient, name: string): Promise<Record<string, unknown> | undefined> {
  const groups = await api.get<Array<{ id: string, name: string }>>('/api/groups')
  const found = groups.find((each) => each.name === name)
  return found && await api.get<Record<string, unknown>>(`/api/groups/${encodeURIComponent(found.id)}`)
}

/**
 * Returns the parts of a group that decide whether it equals another group of the same name: description and servers,
 * with default selectors filled in.
 */
function comparableGroup ({ servers, description }: { servers?: unknown, description?: unknown }): unknown {
  const members = Array.isArray(servers) ? servers as unknown[] : []
  const all = { tools: 'all', prompts: 'all', resources: 'all', skills: 'all' }
  return {
    description: description ?? '',
    servers: members.map((each) => ({ ...all, ...(isObject(each) ? each : { name: each }) }))
  }
}

/**
 * Adds a group or, if `replace` is set, replaces an existing group that differs. If the owner of a new group does not
 * exist, the caller becomes its owner.
 */
async function addGroup (api: ManagementApiClient, group: ImportedGroup, replace: boolean): Promise<Result> {
  const { name } = group
  const former = await fetchGroup(api, name)
  const isSame = former && isDeepStrictEqual(comparableGroup(former), comparableGroup(group))
  if (isSame) return { name, success: true, unchanged: true }
  if (former && !replace) return { name, success: false, message: differsMessage }
  try {
    if (former) {
      const { owner: _, ...changes } = group
      const path = `/api/groups/${encodeURIComponent(String(former.id))}`
      const { warnings } = await api.request<{ warnings?: string[] }>('PUT', path, changes)
      return { name, success: true, replaced: true, ...(warnings && { warnings }) }
    }
    const { warnings } = await api.request<{ warnings?: string[] }>('POST', '/api/groups', group)
    return { name: group.name, success: true, ...(warnings && { warnings }) }
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode !== exitCodes.failed) throw error
    const { owner, ...unowned } = group
    if (owner === undefined || !error.message.includes('"owner"')) {
      return { name: group.name, success: false, message: error.message }
    }
    const result = await addGroup(api, unowned, replace)
    return {
      ...result,
      warnings: [...result.warnings ?? [], `there is no user named ${JSON.stringify(owner)}, so you are its owner`]
    }
  }
}

/**
 * Asks the user for the value of an input of VS Code.
 * @returns the value, or the default value if the user enters nothing; undefined if there is no terminal, or the file
 *   is read from stdin
 */
async function askForInput (
  run: CommandRun, { id, description, isSecret, fallback }: EditorInput, path: string
): Promise<string | undefined> {
  if (path === '-' || !canAskUser(run)) return undefined
  const value = await askUser(run, `${description ?? id}${fallback === undefined ? '' : ` (${fallback})`}`, isSecret)
  return value === '' ? fallback : value
}
