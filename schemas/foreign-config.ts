import { translateVariables, type EditorVariables } from './foreign-variables.ts'
import { allItemsKey, ServerConfig } from './server.ts'
import { parseTransportType } from './transports.ts'
import { isPlainObject, quoteName } from './unknown-members.ts'
import { type RawConfig, ConfigDraft } from './config-translation.ts'
import { warnOfIneffectiveMembers, warnOfUnknownMembers } from './foreign-members.ts'

/**
 * A config in the gateway's own format. `warnings`: a sentence, without values, for each member that has no effect or a
 * different effect than in the other program.
 */
interface TranslatedConfig { readonly config: RawConfig, readonly warnings: readonly string[] }

/** Max number of warnings about one config. Of further warnings, only the number is stated. */
const maxWarnings = 20

/**
 * A `timeout` up to this value is taken to be in seconds, the unit of Cline and Roo Code, which allow up to an hour.
 * Other programs use ms.
 */
const maxTimeoutInSeconds = 3_600

/**
 * Translates a server's config from the format of another program to the gateway's own format. The programs are Claude
 * Desktop, Claude Code, Codex, Cursor, VS Code, Cline, Windsurf, Gemini CLI, GitHub Copilot, opencode, Zed, mcp-hub and
 * MCPHub. Members without a counterpart are kept and mentioned in a warning. A config in the gateway's own format is
 * returned as the same object.
 * @param variables the values of variables that editors fill in; a warning mentions each variable without a value
 */
export function translateConfig (raw: RawConfig, variables: EditorVariables = {}): TranslatedConfig {
  const draft = new ConfigDraft(raw)
  dropEmpty(draft)
  readCommand(draft)
  readTransport(draft)
  readCodex(draft)
  readSwitches(draft)
  readTimeout(draft)
  readEnabledItems(draft)
  readDisabledItems(draft)
  readValues(draft)
  readOAuth(draft)
  readVariables(draft, variables)
  warnOfUnknownMembers(draft)
  warnOfIneffectiveMembers(draft)
  const { warnings } = draft
  const left = warnings.length - maxWarnings
  return {
    config: draft.isChanged ? draft.config : raw,
    warnings: left > 0 ? [...warnings.slice(0, maxWarnings), `${left} more members have no effect`] : warnings
  }
}

/** Removes members that are null: some programs write null for members without a value. */
function dropEmpty (draft: ConfigDraft): void {
  for (const name of Object.keys(ServerConfig.properties)) if (draft.config[name] === null) draft.take(name)
}

/** Converts the members that state the command. */
function readCommand (draft: ConfigDraft): void {
  draft.move('environment', 'env')
  draft.move('working_directory', 'cwd')
  if (draft.config.source === 'custom') draft.take('source')
  const { command } = draft.config
  const args: unknown[] = Array.isArray(draft.config.args) ? draft.config.args : []
  // opencode: an array of the command and its arguments.
  if (Array.isArray(command) && typeof command[0] === 'string') {
    draft.put('command', command[0])
    draft.put('args', [...command.slice(1) as unknown[], ...args])
  }
  // Former versions of Zed: `command: {path, args, env}`.
  if (!isPlainObject(command) || typeof command.path !== 'string') return
  draft.put('command', command.path)
  if (Array.isArray(command.args)) draft.put('args', [...command.args as unknown[], ...args])
  if (isPlainObject(command.env)) {
    draft.put('env', { ...command.env, ...(isPlainObject(draft.config.env) ? draft.config.env : {}) })
  }
}

/** Converts the members that state the transport and the URL. */
function readTransport (draft: ConfigDraft): void {
  draft.move('transport', 'type')
  draft.move('transportType', 'type')
  const { type } = draft.config
  const known = typeof type === 'string' ? parseTransportType(type) : undefined
  if (known !== undefined && known !== type) draft.put('type', known)
  // In opencode, the type `remote` does not state which HTTP transport is used.
  if (type === 'remote') draft.take('type')
  // Gemini CLI: `httpUrl` means streamable HTTP. Windsurf: `serverUrl` is for streamable HTTP or SSE.
  if (draft.has('httpUrl') && !draft.has('url') && !draft.has('type')) draft.put('type', 'streamable-http')
  draft.move('httpUrl', 'url')
  draft.move('serverUrl', 'url')
  const { url } = draft.config
  if (typeof url === 'string' && url.trim() !== url) draft.put('url', url.trim())
}

/** Converts members of Codex: headers, names of environment variables with credentials, and timeouts in seconds. */
function readCodex (draft: ConfigDraft): void {
  draft.move('http_headers', 'headers')
  const { headers = {}, env_http_headers: named, bearer_token_env_var: token, options = {} } = draft.config
  if (isPlainObject(headers) && isPlainObject(named)) {
    draft.take('env_http_headers')
    const values = Object.entries(named).map(([name, variable]) => [name, `\${${String(variable)}}`] as const)
    draft.put('headers', { ...Object.fromEntries(values), ...headers })
  }
  if (typeof token === 'string' && isPlainObject(draft.config.headers ?? {})) {
    draft.take('bearer_token_env_var')
    draft.put('headers', { Authorization: `Bearer \${${token}}`, ...draft.config.headers as RawConfig | undefined })
  }
  const { tool_timeout_sec: seconds } = draft.config
  if (typeof seconds !== 'number' || !(seconds > 0) || !isPlainObject(options)) return
  draft.take('tool_timeout_sec')
  draft.put('options', { timeout: Math.min(Math.ceil(seconds * 1_000), 2 ** 31 - 1), ...options })
}

/** Converts the members that disable a server, isolate its sessions or describe it. */
function readSwitches (draft: ConfigDraft): void {
  // Former versions of the gateway added this member to a visibility that no user had chosen.
  draft.take('visibilityDefaulted')
  const { disabled, enabled } = draft.config
  if (typeof disabled === 'boolean') {
    draft.take('disabled')
    // If the two contradict each other, disabling the server is the safe choice.
    if (typeof enabled === 'boolean' && enabled === disabled) {
      draft.warn('"enabled" and "disabled" contradict each other: the server is disabled')
    }
    draft.put('enabled', !disabled && enabled !== false)
  } else if (disabled !== undefined && disabled !== null) {
    draft.take('disabled')
    draft.warn('"disabled" is neither true nor false: the server is disabled')
    draft.put('enabled', false)
  }
  if (typeof draft.config.perSessionClient === 'boolean') {
    const isPerSession = draft.take('perSessionClient') === true
    if (isPerSession && !draft.has('isolation')) draft.put('isolation', 'session')
  }
  for (const name of ['displayName', 'display_name', 'title']) {
    if (typeof draft.config[name] === 'string' && !draft.has('description')) draft.move(name, 'description')
  }
}

/** Converts `timeout` to `options.timeout`. */
function readTimeout (draft: ConfigDraft): void {
  const { timeout, options = {} } = draft.config
  if (typeof timeout !== 'number' || !(timeout > 0) || !isPlainObject(options)) return
  if (options.timeout !== undefined) {
    draft.warn('"timeout" has no effect, since "options.timeout" is set too')
    return
  }
  draft.take('timeout')
  const isSeconds = timeout <= maxTimeoutInSeconds
  draft.put(
    'options', { ...options, timeout: Math.min(Math.ceil(isSeconds ? timeout * 1_000 : timeout), 2 ** 31 - 1) }
  )
  if (isSeconds) {
    draft.warn(`"timeout" is treated as ${timeout} seconds; use "options.timeout" in ms if that is wrong`)
  }
}

const isStringArray = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

/**
 * Converts an allowlist of tools to overrides: `tools` of GitHub Copilot, where `*` means all, and its equivalents in
 * other programs.
 */
function readEnabledItems (draft: ConfigDraft): void {
  for (const from of ['tools', 'includeTools', 'enabledTools', 'enabled_tools']) {
    const names = draft.config[from]
    const section = from === 'tools' ? {} : draft.config.tools ?? {}
    if (!isStringArray(names) || !isPlainObject(section)) continue
    draft.take(from)
    if (names.includes(allItemsKey)) continue
    if (names.length === 0) draft.warn(`"${from}" is an empty list: all tools are disabled`)
    const on = names.map((name) =>
      [name, { enabled: true, ...(isPlainObject(section[name]) ? section[name] : {}) }] as const)
    draft.put('tools', Object.fromEntries([[allItemsKey, { enabled: false }], ...Object.entries(section), ...on]))
  }
}

/** Converts lists of disabled items to overrides. */
function readDisabledItems (draft: ConfigDraft): void {
  const lists = {
    disabledTools: 'tools',
    disabled_tools: 'tools',
    excludeTools: 'tools',
    disabled_prompts: 'prompts',
    disabled_resources: 'resources'
  }
  for (const [from, to] of [...Object.entries(lists), ['disabled_resourceTemplates', 'resources'] as const]) {
    const names = draft.config[from]
    const section = draft.config[to] ?? {}
    if (!isStringArray(names) || !isPlainObject(section)) continue
    draft.take(from)
    if (names.length === 0) continue
    const off = names.map((name) =>
      [name, { ...(isPlainObject(section[name]) ? section[name] : {}), enabled: false }] as const)
    draft.put(to, Object.fromEntries([...Object.entries(section), ...off]))
  }
}

/**
 * Converts numbers and booleans in `env` and `headers`, which VS Code allows, to strings. A variable that is null is
 * taken from the gateway's environment; a header that is null is left out.
 */
function readValues (draft: ConfigDraft): void {
  for (const map of ['env', 'headers'] as const) {
    const values = draft.config[map]
    if (!isPlainObject(values)) continue
    if (!Object.values(values).some((value) => value === null || isNumberOrBoolean(value))) continue
    draft.put(map, Object.fromEntries(Object.entries(values).flatMap(([name, value]) => {
      if (isInexact(value)) draft.warn(inexactNumberWarning(`${map}.${name}`))
      if (value !== null) return [[name, isNumberOrBoolean(value) ? String(value) : value]]
      if (map === 'headers') return []
      draft.warn(`${quoteName(`env.${name}`)} is null: the value comes from the gateway's environment`)
      return [[name, `\${${name}}`]]
    })))
  }
}

/** Whether a value is a number so large that parsing JSON may have changed its last digits. */
export const isInexact = (value: unknown): boolean =>
  typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER

/** Returns the warning about a number for which `isInexact` is true. @param place the path of the member */
export const inexactNumberWarning = (place: string): string =>
  `${quoteName(place)} has a long number, whose last digits may be lost: write it as a string`

const isNumberOrBoolean = (value: unknown): value is number | boolean =>
  typeof value === 'number' || typeof value === 'boolean'

/** Converts the variables in the texts of a config to the gateway's notation. */
function readVariables (draft: ConfigDraft, variables: EditorVariables): void {
  const fill = (value: unknown, place: string): unknown => {
    if (typeof value === 'string') {
      return translateVariables(value, place, variables, (sentence) => { draft.warn(sentence) })
    }
    if (Array.isArray(value)) return value.map((each: unknown) => fill(each, place))
    if (!isPlainObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each, `${place}.${name}`)]))
  }
  for (const place of ['command', 'args', 'env', 'cwd', 'url', 'headers', 'oauth']) {
    const value = draft.config[place]
    if (value === undefined) continue
    if (place === 'env' || place === 'headers') warnOfBareVariables(draft, place, value)
    if (!/\$\{|\{(env|file):|COPILOT_MCP_/.test(JSON.stringify(value))) continue
    const filled = fill(value, place)
    if (JSON.stringify(filled) !== JSON.stringify(value)) draft.put(place, filled)
  }
}

/** Warns about `$NAME`, which Gemini CLI expands. The gateway does not, since secrets may contain a dollar sign. */
function warnOfBareVariables (draft: ConfigDraft, place: string, value: unknown): void {
  for (const [name, text] of isPlainObject(value) ? Object.entries(value) : []) {
    const [written, variable] = typeof text === 'string'
      ? /(?<![\\$])\$(?!COPILOT_MCP_)([A-Z][A-Z0-9_]+)\b/.exec(text) ?? []
      : []
    if (written === undefined) continue
    draft.warn(`"${place}.${name}" has ${written}, which is taken literally: write $\{${variable}} for the variable`)
  }
}

/**
 * Converts the OAuth members of Cursor (`auth: {CLIENT_ID, CLIENT_SECRET, scopes}`), of Claude Code and opencode
 * (scopes as one string), and of opencode (`oauth: false`).
 */
function readOAuth (draft: ConfigDraft): void {
  const { auth, oauth } = draft.config
  if (typeof oauth === 'boolean') draft.take('oauth')
  else if (isPlainObject(oauth) && [oauth.scopes, oauth.scope].some((each) => typeof each === 'string')) {
    const { scope, scopes = scope, ...rest } = oauth
    draft.put('oauth', {
      ...rest, scopes: typeof scopes === 'string' ? scopes.split(/[\s,]+/).filter((each) => each !== '') : scopes
    })
  }
  if (!isPlainObject(
    auth
  ) || draft.has('oauth') || (auth.CLIENT_ID === undefined && auth.CLIENT_SECRET === undefined)) {
    return
  }
  const { CLIENT_ID: clientId, CLIENT_SECRET: clientSecret, scopes, ...more } = auth
  draft.take('auth')
  draft.put('oauth', {
    ...(clientId === undefined ? {} : { clientId }),
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(scopes === undefined ? {} : { scopes }),
    ...more
  })
}
