import { isPlainObject } from './unknown-members.ts'

type JsonObject = Record<string, unknown>

/** Returns the members of a parsed object in the order of the text. */
type MembersOf = (object: Readonly<JsonObject>) => Array<[name: string, value: unknown]>

/** A server in the configuration file of another program. */
export interface ForeignServer { readonly name: string, readonly config: unknown }

/** An input that VS Code prompts its user for. */
export interface EditorInput {
  readonly id: string, readonly description?: string, readonly isSecret: boolean, readonly fallback?: string
}

/** What was found in a configuration file. `members`: the names of the other top-level members that are not empty. */
export interface ForeignDocument {
  readonly servers: readonly ForeignServer[]
  readonly inputs: readonly EditorInput[]
  readonly members: readonly string[]
}

/**
 * Finds the servers in a configuration file: `mcpServers` (most clients), `servers` (VS Code; a list in the gateway's
 * own API), `mcp.servers` (VS Code's settings.json, opencode), `mcp` (opencode, Crush), `context_servers` (Zed),
 * `amp.mcpServers` (Amp), `mcp_servers` (Codex), or `projects.<folder>.mcpServers` (Claude Code).
 * @param membersOf returns the members of a parsed object in the order of the text
 * @param project the folder whose servers in `projects` are included, if any
 * @returns undefined if the document has none of these members
 */
export function readForeignDocument (
  document: unknown, membersOf: MembersOf, project?: string
): ForeignDocument | undefined {
  if (!isPlainObject(document)) return undefined
  const { mcp, projects } = document
  const inner = isPlainObject(mcp) && (isPlainObject(mcp.servers) || isPlainObject(mcp.mcpServers)) ? mcp : undefined
  const direct = isPlainObject(mcp) && !inner && Object.values(mcp).some(looksLikeServer) ? mcp : undefined
  const ofProject = isPlainObject(projects) && project !== undefined &&
    isPlainObject(projects[project])
    ? projects[project].mcpServers
    : undefined
  const sections = [
    document.mcpServers, document.servers, inner?.servers, inner?.mcpServers, direct, document.context_servers,
    document['amp.mcpServers'],
    document.mcp_servers,
    ofProject
  ].filter((section) => Array.isArray(section) || isPlainObject(section))
  if (sections.length === 0) return undefined
  const servers =
    withExclusions(sections.flatMap((section) => entriesOf(section, membersOf)), document)
  const inputs = [document.inputs, inner?.inputs].flatMap((list) => Array.isArray(list) ? list as unknown[] : [])
  const known = new Set([
    'mcpServers', 'servers', 'context_servers', 'amp.mcpServers', 'mcp_servers', 'inputs', '$schema',
    ...(inner ?? direct ? ['mcp'] : [])
  ])
  const members =
    Object.entries(document).filter(([name, value]) => !known.has(name) && !isEmpty(value)).map(([name]) => name)
  return { servers, inputs: inputs.flatMap(inputOf), members }
}

/**
 * Disables the servers that the document disables outside of the servers' entries: with `mcp.excluded` and
 * `mcp.allowed` in Gemini CLI, with `tools: {"<server>_*": false}` in opencode.
 */
function withExclusions (servers: readonly ForeignServer[], { mcp, tools }: JsonObject): ForeignServer[] {
  const setOf = (list: unknown): Set<unknown> | undefined => Array.isArray(list) ? new Set<unknown>(list) : undefined
  const [excluded, allowed] = isPlainObject(mcp) ? [setOf(mcp.excluded), setOf(mcp.allowed)] : []
  return servers.map((server) => {
    const { name, config } = server
    const isExcluded = excluded?.has(name) === true || allowed?.has(name) === false
    const isHidden = isPlainObject(tools) && [`${name}*`, `${name}_*`].some((pattern) => tools[pattern] === false)
    return isPlainObject(config) && (isExcluded || isHidden) ? { name, config: { ...config, enabled: false } } : server
  })
}

function entriesOf (section: unknown, membersOf: MembersOf): ForeignServer[] {
  if (Array.isArray(section)) return section.map(entryOf)
  return isPlainObject(section) ? membersOf(section).map(([name, config]) => ({ name, config })) : []
}

const looksLikeServer = (value: unknown): value is JsonObject =>
  isPlainObject(value) && (value.command !== undefined || value.url !== undefined)

/** Reads an entry of a list: `{name, config}` or, in the format of Continue, a config that contains a name. */
function entryOf (each: unknown): ForeignServer {
  if (!isPlainObject(each)) return { name: '', config: each }
  const { name, config, ...rest } = each
  return {
    name: typeof name === 'string' ? name : '', config: config === undefined && looksLikeServer(rest) ? rest : config
  }
}

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)

function inputOf (each: unknown): EditorInput[] {
  if (!isPlainObject(each) || typeof each.id !== 'string') return []
  return [{
    id: each.id,
    ...(typeof each.description === 'string' ? { description: each.description } : {}),
    isSecret: each.password === true,
    ...(typeof each.default === 'string' ? { fallback: each.default } : {})
  }]
}
