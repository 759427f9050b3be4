import { translateVariables, type EditorVariables } from './foreign-variables.ts'
import { allItems, ServerConfig } from './server.ts'
import { typeOfSpelling } from './transports.ts'
import { isPlainObject, quoteName } from './unknown-members.ts'
import { type Json, ConfigTranslation } from './adoption.ts'
import { warnOfIneffectiveMembers, warnOfUnknownMembers } from './foreign-members.ts'

/**
 * A config in the gateway's own members. `warnings`: one sentence, without values, per member that has no effect or a
 * different one.
 */
interface TranslatedConfig { readonly config: Json, readonly warnings: readonly string[] }

/** Max warnings about one config; further ones are counted. */
const maxWarnings = 20

/**
 * A timeout up to this value is read as seconds, the unit of Cline and Roo Code, which allow up to an hour. Other
 * programs use ms.
 */
const maxTimeoutInSeconds = 3_600

/**
 * Translates a server's config from the format of another program to the gateway's own members (Claude Desktop, Claude
 * Code, Codex, Cursor, VS Code, Cline, Windsurf, Gemini CLI, GitHub Copilot, opencode, Zed, mcp-hub, MCPHub). Members
 * without a counterpart are kept and mentioned in a warning. A config in the gateway's own format is returned as the
 * same object.
 * @param variables values of variables that editors fill in; variables without a value are mentioned in a warning
 */
export function translateConfig (raw: Json, variables: EditorVariables = {}): TranslatedConfig {
  const adoption = new ConfigTranslation(raw)
  dropEmpty(adoption)
  readCommand(adoption)
  readTransport(adoption)
  readCodex(adoption)
  readSwitches(adoption)
  readTimeout(adoption)
  readEnabledItems(adoption)
  readDisabledItems(adoption)
  readValues(adoption)
  readOAuth(adoption)
  readVariables(adoption, variables)
  warnOfUnknownMembers(adoption)
  warnOfIneffectiveMembers(adoption)
  const { warnings } = adoption
  const left = warnings.length - maxWarnings
  return {
    config: adoption.isChanged ? adoption.config : raw,
    warnings: left > 0 ? [...warnings.slice(0, maxWarnings), `${left} more members have no effect`] : warnings
  }
}

/** Removes members that some programs write as null when they are empty. */
function dropEmpty (adoption: ConfigTranslation): void {
  for (const name of Object.keys(ServerConfig.properties)) if (adoption.config[name] === null) adoption.take(name)
}

function readCommand (adoption: ConfigTranslation): void {
  adoption.move('environment', 'env')
  adoption.move('working_directory', 'cwd')
  if (adoption.config.source === 'custom') adoption.take('source')
  const { command } = adoption.config
  const args: unknown[] = Array.isArray(adoption.config.args) ? adoption.config.args : []
  // opencode: an array of the command and its arguments.
  if (Array.isArray(command) && typeof command[0] === 'string') {
    adoption.put('command', command[0])
    adoption.put('args', [...command.slice(1) as unknown[], ...args])
  }
  // Former versions of Zed: `command: {path, args, env}`.
  if (!isPlainObject(command) || typeof command.path !== 'string') return
  adoption.put('command', command.path)
  if (Array.isArray(command.args)) adoption.put('args', [...command.args as unknown[], ...args])
  if (isPlainObject(command.env)) {
    adoption.put('env', { ...command.env, ...(isPlainObject(adoption.config.env) ? adoption.config.env : {}) })
  }
}

function readTransport (adoption: ConfigTranslation): void {
  adoption.move('transport', 'type')
  adoption.move('transportType', 'type')
  const { type } = adoption.config
  const known = typeof type === 'string' ? typeOfSpelling(type) : undefined
  if (known !== undefined && known !== type) adoption.put('type', known)
  // In opencode, the type `remote` does not state which HTTP transport is used.
  if (type === 'remote') adoption.take('type')
  // Gemini CLI: `httpUrl` means streamable HTTP. Windsurf: `serverUrl` is for streamable HTTP or SSE.
  if (adoption.has('httpUrl') && !adoption.has('url') && !adoption.has('type')) adoption.put('type', 'streamable-http')
  adoption.move('httpUrl', 'url')
  adoption.move('serverUrl', 'url')
  const { url } = adoption.config
  if (typeof url === 'string' && url.trim() !== url) adoption.put('url', url.trim())
}

/** Codex: credentials by the names of variables, and timeouts in seconds. */
function readCodex (adoption: ConfigTranslation): void {
  adoption.move('http_headers', 'headers')
  const { headers = {}, env_http_headers: named, bearer_token_env_var: token, options = {} } = adoption.config
  if (isPlainObject(headers) && isPlainObject(named)) {
    adoption.take('env_http_headers')
    const values = Object.entries(named).map(([name, variable]) => [name, `\${${String(variable)}}`] as const)
    adoption.put('headers', { ...Object.fromEntries(values), ...headers })
  }
  if (typeof token === 'string' && isPlainObject(adoption.config.headers ?? {})) {
    adoption.take('bearer_token_env_var')
    adoption.put('headers', { Authorization: `Bearer \${${token}}`, ...adoption.config.headers as Json | undefined })
  }
  const { tool_timeout_sec: seconds } = adoption.config
  if (typeof seconds !== 'number' || !(seconds > 0) || !isPlainObject(options)) return
  adoption.take('tool_timeout_sec')
  adoption.put('options', { timeout: Math.min(Math.ceil(seconds * 1_000), 2 ** 31 - 1), ...options })
}

function readSwitches (adoption: ConfigTranslation): void {
  // Former versions of the gateway added this member to a visibility that no user had chosen.
  adoption.take('visibilityDefaulted')
  const { disabled, enabled } = adoption.config
  if (typeof disabled === 'boolean') {
    adoption.take('disabled')
    // If the two contradict each other, disabling the server is the safe choice.
    if (typeof enabled === 'boolean' && enabled === disabled) {
      adoption.warn('"enabled" and "disabled" contradict each other: the server is disabled')
    }
    adoption.put('enabled', !disabled && enabled !== false)
  } else if (disabled !== undefined && disabled !== null) {
    adoption.take('disabled')
    adoption.warn('"disabled" is neither true nor false: the server is disabled')
    adoption.put('enabled', false)
  }
  if (typeof adoption.config.perSessionClient === 'boolean') {
    const isPerSession = adoption.take('perSessionClient') === true
    if (isPerSession && !adoption.has('isolation')) adoption.put('isolation', 'session')
  }
  for (const name of ['displayName', 'display_name', 'title']) {
    if (typeof adoption.config[name] === 'string' && !adoption.has('description')) adoption.move(name, 'description')
  }
}

function readTimeout (adoption: ConfigTranslation): void {
  const { timeout, options = {} } = adoption.config
  if (typeof timeout !== 'number' || !(timeout > 0) || !isPlainObject(options)) return
  if (options.timeout !== undefined) {
    adoption.warn('"timeout" has no effect, since "options.timeout" is set too')
    return
  }
  adoption.take('timeout')
  const isSeconds = timeout <= maxTimeoutInSeconds
  adoption.put(
    'options', { ...options, timeout: Math.min(Math.ceil(isSeconds ? timeout * 1_000 : timeout), 2 ** 31 - 1) }
  )
  if (isSeconds) {
    adoption.warn(`"timeout" is treated as ${timeout} seconds; use "options.timeout" in ms if that is wrong`)
  }
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

/**
 * Converts an allowlist of tools to overrides: `tools` of GitHub Copilot, where `*` means all, and its equivalents in
 * other programs.
 */
function readEnabledItems (adoption: ConfigTranslation): void {
  for (const from of ['tools', 'includeTools', 'enabledTools', 'enabled_tools']) {
    const names = adoption.config[from]
    const section = from === 'tools' ? {} : adoption.config.tools ?? {}
    if (!isTexts(names) || !isPlainObject(section)) continue
    adoption.take(from)
    if (names.includes(allItems)) continue
    if (names.length === 0) adoption.warn(`"${from}" is an empty list: all tools are disabled`)
    const on = names.map((name) =>
      [name, { enabled: true, ...(isPlainObject(section[name]) ? section[name] : {}) }] as const)
    adoption.put('tools', Object.fromEntries([[allItems, { enabled: false }], ...Object.entries(section), ...on]))
  }
}

/** Converts lists of disabled items to overrides. */
function readDisabledItems (adoption: ConfigTranslation): void {
  const lists = {
    disabledTools: 'tools',
    disabled_tools: 'tools',
    excludeTools: 'tools',
    disabled_prompts: 'prompts',
    disabled_resources: 'resources'
  }
  for (const [from, to] of [...Object.entries(lists), ['disabled_resourceTemplates', 'resources'] as const]) {
    const names = adoption.config[from]
    const section = adoption.config[to] ?? {}
    if (!isTexts(names) || !isPlainObject(section)) continue
    adoption.take(from)
    if (names.length === 0) continue
    const off = names.map((name) =>
      [name, { ...(isPlainObject(section[name]) ? section[name] : {}), enabled: false }] as const)
    adoption.put(to, Object.fromEntries([...Object.entries(section), ...off]))
  }
}

/**
 * Converts numbers and booleans, which VS Code allows in place of strings, to strings. A variable that is null is taken
 * from the environment; a header that is null is left out.
 */
function readValues (adoption: ConfigTranslation): void {
  for (const map of ['env', 'headers'] as const) {
    const values = adoption.config[map]
    if (!isPlainObject(values) || !Object.values(values).some((value) => value === null || isPlain(value))) continue
    adoption.put(map, Object.fromEntries(Object.entries(values).flatMap(([name, value]) => {
      if (value !== null) return [[name, isPlain(value) ? String(value) : value]]
      if (map === 'headers') return []
      adoption.warn(`${quoteName(`env.${name}`)} is null: the value comes from the gateway's environment`)
      return [[name, `\${${name}}`]]
    })))
  }
}

const isPlain = (value: unknown): value is number | boolean => typeof value === 'number' || typeof value === 'boolean'

function readVariables (adoption: ConfigTranslation, variables: EditorVariables): void {
  const fill = (value: unknown, place: string): unknown => {
    if (typeof value === 'string') {
      return translateVariables(value, place, variables, (sentence) => { adoption.warn(sentence) })
    }
    if (Array.isArray(value)) return value.map((each: unknown) => fill(each, place))
    if (!isPlainObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each, `${place}.${name}`)]))
  }
  for (const place of ['command', 'args', 'env', 'cwd', 'url', 'headers', 'oauth']) {
    const value = adoption.config[place]
    if (value === undefined) continue
    if (place === 'env' || place === 'headers') warnOfBareVariables(adoption, place, value)
    if (!/\$\{|\{(env|file):|COPILOT_MCP_/.test(JSON.stringify(value))) continue
    const filled = fill(value, place)
    if (JSON.stringify(filled) !== JSON.stringify(value)) adoption.put(place, filled)
  }
}

/** Warns about `$NAME`, which Gemini CLI expands. Here it stays plain text, since secrets may contain a dollar sign. */
function warnOfBareVariables (adoption: ConfigTranslation, place: string, value: unknown): void {
  for (const [name, text] of isPlainObject(value) ? Object.entries(value) : []) {
    const [written, variable] = typeof text === 'string'
      ? /(?<![\\$])\$(?!COPILOT_MCP_)([A-Z][A-Z0-9_]+)\b/.exec(text) ?? []
      : []
    if (written === undefined) continue
    adoption.warn(`"${place}.${name}" has ${written}, which is taken literally: write $\{${variable}} for the variable`)
  }
}

/**
 * Converts the OAuth members of Cursor (`auth: {CLIENT_ID, CLIENT_SECRET, scopes}`), of Claude Code and opencode
 * (scopes as one string), and of opencode (`oauth: false`).
 */
function readOAuth (adoption: ConfigTranslation): void {
  const { auth, oauth } = adoption.config
  if (typeof oauth === 'boolean') adoption.take('oauth')
  else if (isPlainObject(oauth) && [oauth.scopes, oauth.scope].some((each) => typeof each === 'string')) {
    const { scope, scopes = scope, ...rest } = oauth
    adoption.put('oauth', {
      ...rest, scopes: typeof scopes === 'string' ? scopes.split(/[\s,]+/).filter((each) => each !== '') : scopes
    })
  }
  if (!isPlainObject(
    auth
  ) || adoption.has('oauth') || (auth.CLIENT_ID === undefined && auth.CLIENT_SECRET === undefined)) {
    return
  }
  const { CLIENT_ID: clientId, CLIENT_SECRET: clientSecret, scopes, ...more } = auth
  adoption.take('auth')
  adoption.put('oauth', {
    ...(clientId === undefined ? {} : { clientId }),
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(scopes === undefined ? {} : { scopes }),
    ...more
  })
}
