import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, resolve, sep } from 'node:path'
import { parseEnv } from 'node:util'
import { entityNames } from '../db/entities.ts'
import { messageOf } from '../db/errors.ts'
import { describeSyntaxError } from '../db/json/parse.ts'
import { orderedEntries } from '../db/order.ts'
import { inFileCollectionNames } from '../db/records.ts'
import { uniqueName } from '../plugins/management/index.ts'
import { isObject } from '../protocol/json.ts'
import { withoutAnyDuplicates } from '../protocol/json-ambiguity.ts'
import { inexactNumberWarning, isInexact, translateConfig } from '../schemas/foreign-config.ts'
import { readForeignDocument, type ForeignDocument, type EditorInput } from '../schemas/foreign-document.ts'
import { jsoncToJson } from '../schemas/jsonc.ts'
import { toServerName } from '../schemas/names.ts'
import { readStdin, createProcessIo, type Io } from './io.ts'
import { exitCodes, CommandError } from './errors.ts'
import { rememberTextOrder } from '../db/text-order.ts'
import { withoutBom } from '../protocol/text.ts'

/** A server from a client's configuration file, with its config in the format of the gateway. */
interface ImportedServer {
  readonly name: string, readonly config: Record<string, unknown>, readonly warnings: readonly string[]
}

/** A group from a settings file of MCPHub. */
export interface ImportedGroup {
  readonly name: string
  readonly description?: string
  readonly servers: unknown[]
  readonly owner?: string
}

/** The servers and groups in a configuration file of an MCP client. `warnings`: about the file as a whole. */
export interface ClientConfigFile {
  readonly servers: readonly ImportedServer[]
  readonly groups: readonly ImportedGroup[]
  readonly warnings: readonly string[]
}

/**
 * Reads a configuration file of an MCP client, such as Claude Code or VS Code.
 * @param path the file; `-` for stdin
 * @param answer asks for the value of a VS Code input. If it returns undefined, the default value of the input is used
 *   or, without a default value, a reference to an environment variable of the gateway.
 * @param project a folder in `projects` of Claude Code's file: the servers of this project are read, too
 * @throws CommandError
 */
export async function readClientConfigFile (
  path: string,
  answer: (input: EditorInput) => Promise<string | undefined>,
  project?: string,
  io: Io = createProcessIo()
): Promise<ClientConfigFile> {
  const { document, hasDuplicates } = await parse(path, io)
  const { cwd } = io
  const folder = project === undefined ? undefined : projectOf(document, project, path, cwd)
  const foreign = readForeignDocument(document, orderedEntries, folder)
  if (foreign === undefined) {
    throw new CommandError(`${path} contains no servers: it has neither "mcpServers" nor "servers"`)
  }
  const inputs: Record<string, string> = {}
  const defaults: string[] = []
  const used = new Set([...JSON.stringify(foreign.servers).matchAll(/\$\{input:([^{}]*)\}/g)].map(([, id]) => id))
  const known = new Map(foreign.inputs.map((input) => [input.id, input]))
  for (const id of used) {
    if (id === undefined) continue
    const input = known.get(id) ?? { id, isSecret: false }
    const value = await answer(input)
    if (value === undefined && input.fallback !== undefined) defaults.push(id)
    const chosenValue = value ?? input.fallback
    if (chosenValue !== undefined) inputs[id] = chosenValue
  }
  const editor = editorVariables(resolve(cwd, path))
  const skippedEntries = foreign.servers.filter(({ config }) => hasOnlySettings(config))
  const entries = foreign.servers.filter((server) => !skippedEntries.includes(server))
  const names = new Set(entries.map(({ name }) => name).filter((name) => toServerName(name) === name))
  return {
    servers: entries.map(({ name: given, config }) => {
      const valid = toServerName(given)
      // Another server of the file may have this name, which must not be replaced.
      const name = valid === given ? given : uniqueName(names, valid)
      if (!isObject(config)) return { name, config: {}, warnings: ['it is not an object'] }
      const { config: withEnv, warnings: ofEnvFile } = withEnvFile(config, dirname(resolve(cwd, path)), editor)
      // Some clients allow numbers as arguments; the gateway allows strings only.
      const { args } = withEnv
      const ofArgs = Array.isArray(args) && args.some(isInexact) ? [inexactNumberWarning('args')] : []
      const stringArgs = Array.isArray(args)
        ? { args: args.map((arg: unknown) => typeof arg === 'number' ? String(arg) : arg) }
        : {}
      const { config: translated, warnings } = translateConfig({ ...withEnv, ...stringArgs }, { inputs, editor })
      const renamed = name === given
        ? []
        : [`it was renamed, since ${JSON.stringify(given)} is not a valid server name`]
      return { name, config: translated, warnings: [...renamed, ...ofEnvFile, ...ofArgs, ...warnings] }
    }),
    groups: groupsOf(document),
    warnings: [
      ...hasDuplicates
        ? ['The file has two members of one name in an object, such as two servers: only the last one counts']
        : [],
      ...skippedEntries.map(({ name }) =>
        `${name} was skipped: its entry has neither a command nor an address, only settings of that client`),
      ...defaults.map((id) =>
        `The input ${JSON.stringify(id)} has its default value: --input ${id}=… sets another one`),
      ...warningsOf(document, foreign, folder)
    ]
  }
}

/** Whether an entry contains only settings for a server that another file (opencode) or an extension (Zed) defines. */
const hasOnlySettings = (config: unknown): boolean =>
  isObject(config) && Object.keys(config).length > 0 &&
  Object.entries(config).every(([name, value]) =>
    ['enabled', 'disabled', 'settings', 'remote'].includes(name) || (name === 'source' && value === 'extension'))

/** Returns the key of a project folder in `projects` of Claude Code's file. @throws CommandError if there is none */
function projectOf (document: unknown, project: string, path: string, cwd: string): string {
  const projects = isObject(document) && isObject(document.projects) ? document.projects : {}
  const name = [project, resolve(cwd, project)].find((each) => Object.hasOwn(projects, each))
  if (name !== undefined) return name
  const others = Object.keys(projects).slice(0, 10).join(', ')
  const hint = others === '' ? '' : `: its projects are ${others}`
  throw new CommandError(`${path} has no project ${project}${hint}`, exitCodes.usage)
}

/**
 * Reads and parses a file (JSON with comments, TOML or YAML), or stdin for `-`.
 * @returns the parsed document, and whether one of its objects has several members of one name
 * @throws CommandError
 */
async function parse (path: string, io: Io): Promise<{ document: unknown, hasDuplicates: boolean }> {
  let text: string
  try {
    text = path === '-' ? await readStdin(io) : readFileSync(resolve(io.cwd, path), 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new CommandError(`${path} cannot be read (${code})`, exitCodes.usage)
  }
  // The parsers of other formats are loaded on demand.
  const { textFormatOf: formatOf, parseTomlOrYaml: parseText } = await import('../schemas/foreign-text.ts')
  const format = /\.toml$/i.test(path) ? 'TOML' : /\.ya?ml$/i.test(path) ? 'YAML' : formatOf(withoutBom(text))
  try {
    if (format !== undefined) return { document: parseText(withoutBom(text), format), hasDuplicates: false }
    const json = jsoncToJson(withoutBom(text))
    return { document: parseJsonc(text), hasDuplicates: withoutAnyDuplicates(json) !== json }
  } catch (error) {
    const reason = messageOf(error)
    throw new CommandError(format === undefined
      ? `${path} is not JSON: ${describeSyntaxError(reason, withoutBom(text))}`
      : `${path} is not ${format}: ${reason}`)
  }
}

/**
 * Returns the values of the variables, such as `${workspaceFolder}`, that an editor replaces in its configuration file.
 * @param path the file: in the project folder, or in a folder such as `.vscode` or `.cursor` within it
 */
function editorVariables (path: string): Record<string, string> {
  const folder = dirname(path)
  const workspace = basename(folder).startsWith('.') ? dirname(folder) : folder
  return {
    userHome: homedir(),
    workspaceFolder: workspace,
    workspaceRoot: workspace,
    workspaceFolderBasename: basename(workspace),
    pathSeparator: sep,
    '/': sep
  }
}

/** Returns a config with the variables from its `envFile` added to `env`. Variables that `env` already has are kept. */
function withEnvFile (
  config: Record<string, unknown>,
  folder: string,
  editor: Readonly<Record<string, string>>
): { config: Record<string, unknown>, warnings: string[] } {
  const { envFile, ...rest } = config
  if (typeof envFile !== 'string') return { config, warnings: [] }
  const path = resolve(folder, envFile.replace(/\$\{(\w+)\}/g, (written, name: string) => editor[name] ?? written))
  try {
    const env = parseEnv(withoutBom(readFileSync(path, 'utf8')))
    return { config: { ...rest, env: { ...env, ...(isObject(rest.env) ? rest.env : {}) } }, warnings: [] }
  } catch {
    return { config: rest, warnings: [`"envFile" cannot be read: ${path}`] }
  }
}

function groupsOf (document: unknown): ImportedGroup[] {
  const groups = isObject(document) && Array.isArray(document.groups) ? document.groups as unknown[] : []
  return groups.flatMap((group): ImportedGroup[] => {
    if (!isObject(group) || typeof group.name !== 'string' || !Array.isArray(group.servers)) return []
    const { name, description, servers, owner } = group
    return [{
      name,
      servers,
      ...(typeof description === 'string' && { description }),
      ...(typeof owner === 'string' && { owner })
    }]
  })
}

/** The sections of a settings file, of MCPHub or the gateway, that `tool-hub import` does not read. */
const unreadSections: ReadonlySet<string> = new Set([
  ...entityNames.filter((name) => name !== 'mcpServers' && name !== 'groups'),
  ...inFileCollectionNames, 'systemConfig', 'userConfigs', 'oauthClients'
])

function warningsOf (document: unknown, { members }: ForeignDocument, project: string | undefined): string[] {
  const projects = isObject(document) && isObject(document.projects) ? Object.entries(document.projects) : []
  const others = projects.filter(([folder, value]) =>
    folder !== project && isObject(value) && isObject(value.mcpServers) && Object.keys(value.mcpServers).length > 0)
  const whole = members.filter((name) => unreadSections.has(name))
  return [
    ...others.map(([folder]) =>
      `The servers of the project ${folder} were skipped: --project ${folder} imports them too`),
    ...whole.length === 0
      ? []
      : [`Not imported: ${whole.join(', ')}. Start the gateway with the file itself for that ` +
        '(docs/coming-from-mcphub.md)']
  ]
}

/** The number of levels on which the order of members is kept: enough for `projects.<folder>.mcpServers.<name>`. */
const orderedLevels = 4

/**
 * Parses JSON with comments and trailing commas. For objects in the first `orderedLevels` levels, `orderedEntries` then
 * returns the members in the order of the text, even members whose names are numbers.
 * @throws SyntaxError
 */
export function parseJsonc (text: string): unknown {
  const json = jsoncToJson(withoutBom(text))
  return rememberTextOrder(json, JSON.parse(json) as unknown, orderedLevels)
}
