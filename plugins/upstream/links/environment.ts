import { isObject } from '../../../protocol/json.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { createUserAuthorshipCheck } from '../../../schemas/stored-by-user.ts'
import type { UserVariableValues } from '../../../schemas/user-variables.ts'
import { maskOpenApi } from '../../base/secrets/index.ts'

/** The package indexes that a stdio server's package manager uses (`systemConfig.install`). */
export interface PackageIndexes { npmRegistry?: string, pythonIndexUrl?: string }

/** The variables that the process of a stdio server inherits: enough to run, without secrets. */
const inheritedNames = [
  'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'TERM', 'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS', 'SystemRoot', 'APPDATA', 'PATHEXT'
]

/** The variables that set the registry for npm, pnpm, yarn, bun and corepack. */
const npmNames = [
  'npm_config_registry', 'pnpm_config_registry', 'YARN_REGISTRY', 'YARN_NPM_REGISTRY_SERVER', 'BUN_CONFIG_REGISTRY',
  'COREPACK_NPM_REGISTRY'
]
/** The variables that set the package index for pip and uv. */
const pythonNames = ['UV_DEFAULT_INDEX', 'UV_INDEX_URL', 'PIP_INDEX_URL']

/** The names of variables that make a program load or run other code. */
const codeInjectors = /^(LD_.*|DYLD_.*|NODE_OPTIONS|PYTHONSTARTUP|BASH_ENV|GIT_SSH_COMMAND)$/i

/**
 * Returns the names of the variables in a config's `env` that are withheld from the server's process: those that can
 * make programs run other code, and were set by a user without admin rights.
 */
export function withheldVariableNames ({ env = {}, storedByUser }: ServerConfig): string[] {
  const isUsers = createUserAuthorshipCheck(storedByUser)
  return Object.keys(env).filter((name) => codeInjectors.test(name) && isUsers('env', name))
}

/** Returns a warning for each of `withheldVariableNames`, as a sentence in which "it" is the server. */
export const withheldVariableWarnings = (config: ServerConfig): string[] => withheldVariableNames(config).map((name) =>
  `${name} in env is not passed to it: only an admin can set this variable`)

/**
 * Returns the whole environment of a stdio server's process.
 * @param config the config, with its variables expanded
 * @param environment the gateway's own environment
 */
export function childEnvironment (
  config: ServerConfig,
  environment: ProcessEnvironment,
  { npmRegistry, pythonIndexUrl }: PackageIndexes
): Record<string, string> {
  const own = { ...config.env }
  for (const name of withheldVariableNames(config)) delete own[name]
  const result: Record<string, string> = {}
  for (const name of inheritedNames) {
    const value = environment[name]
    if (value !== undefined) result[name] = value
  }
  for (const [names, address] of [
    [npmNames, npmRegistry],
    [pythonNames, pythonIndexUrl]
  ] as const) {
    // If a config sets one of the names, none is added: the variable of another package manager could take precedence.
    if (address && !setsAny(own, names)) for (const name of names) result[name] = address
  }
  return { ...result, ...own }
}

/** Whether an environment sets one of these variables, in upper or lower case. */
function setsAny (env: Readonly<Record<string, string>>, names: readonly string[]): boolean {
  const lower = new Set(names.map((name) => name.toLowerCase()))
  return Object.keys(env).some((name) => lower.has(name.toLowerCase()))
}

/** The environment variables of a process, by name. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>

/** The result of expanding the variables of a config. */
interface ExpandedConfig {
  /** The config with values in place of variables. It must not be stored or shown. */
  config: ServerConfig
  /** Sentences about variables that were not expanded; they contain no values. */
  warnings: string[]
  /** Replaces the expanded values in a text by their variables, for error messages. */
  hide: (text: string) => string
}

/**
 * Matches the names of variables that hold the gateway's secrets, or the paths of files with secrets; no config may
 * read these. Names are compared in upper case, since they are not case-sensitive on every system.
 */
const gatewaySecrets = [
  /^(JWT_SECRET|DB_URL|ADMIN_PASSWORD|ENCRYPTION_KEY|METRICS_TOKEN|TOOL_HUB_KEY)(_FILE)?$/,
  /_CLIENT_SECRET(_FILE)?$/,
  /^SOCIAL_AUTH_/,
  /^PG/,
  /^OTEL_EXPORTER_OTLP_(\w+_)?HEADERS$/
]
export const isGatewaySecretName = (name: string): boolean =>
  gatewaySecrets.some((pattern) => pattern.test(name.toUpperCase()))

/** Min length of values that are masked: shorter ones are hardly secrets, and occur within ordinary words. */
const minHiddenLength = 4

/**
 * The members of a config in which `storedByUser` records who wrote each value. If a config has such records, variables
 * in its other members are not expanded.
 */
const attributedMembers: ReadonlySet<string> = new Set(['env', 'headers', 'url', 'args'])

/**
 * Returns a text with its variables expanded.
 * @param place the member of the config that contains the text
 * @param within the name or index of the text in that member
 */
type ExpandText = (text: string, place: string, ...within: Array<string | number>) => string

/** Matches each variable in a text, `${NAME}`; group 1 is its name. */
export const variablePattern = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/**
 * Returns a function that tests whether variables at a place in a config must not be expanded, because a user without
 * admin rights wrote, or may have written, the text there.
 */
export function createUserTextCheck (
  storedByUser: ServerConfig['storedByUser']
): (place: string, ...within: Array<string | number>) => boolean {
  const isUsers = createUserAuthorshipCheck(storedByUser)
  const isMixed = storedByUser !== undefined && storedByUser !== false
  return (place, ...within) => isUsers(place, ...within) || (isMixed && !attributedMembers.has(place))
}

/**
 * Returns a copy of a config in which `fill` has replaced the texts that may contain variables: those in `env`,
 * `headers`, `url`, `args`, `proxy`, `oauth`, `openapi.url` and `openapi.security`, and the credentials in the
 * addresses of `openapi.schema`.
 */
export function mapExpandableTexts (config: ServerConfig, fill: ExpandText): ServerConfig {
  const fillAll = <Value>(value: Value, place: string): Value => {
    if (typeof value === 'string') return fill(value, place) as Value
    if (Array.isArray(value)) return value.map((each: unknown) => fillAll(each, place)) as Value
    if (!isObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fillAll(each, place)])) as Value
  }
  const fillTexts = (map: Record<string, string>, place: string): Record<string, string> =>
    Object.fromEntries(Object.entries(map).map(([name, text]) => [name, fill(text, place, name)]))
  const { env, headers, url, args, proxy, oauth, openapi } = config
  return {
    ...config,
    ...(env && { env: fillTexts(env, 'env') }),
    ...(headers && { headers: fillTexts(headers, 'headers') }),
    ...(url !== undefined && { url: fill(url, 'url') }),
    ...(args && { args: args.map((arg, at) => fill(arg, 'args', at)) }),
    ...(proxy && { proxy: fillAll(proxy, 'proxy') }),
    ...(oauth && { oauth: fillAll(oauth, 'oauth') }),
    ...(openapi && {
      openapi: {
        ...openapi,
        ...(openapi.url !== undefined && { url: fill(openapi.url, 'openapi.url') }),
        ...(openapi.schema !== undefined && {
          schema: maskOpenApi(openapi.schema, (text) => fill(text, 'openapi.schema')) as typeof openapi.schema
        }),
        ...(openapi.security && { security: fillAll(openapi.security, 'openapi.security') })
      }
    })
  }
}

/**
 * Matches each `${NAME}`, `${NAME:-default}` (as in shells and Claude Code) and `${user.NAME}` in a text. Group 1 is
 * set for a value that each user provides (`user.`), group 2 is the name, group 3 the default.
 */
const expansionPattern = /\$\{(user\.(?=\w+\}))?([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}/g

/**
 * Replaces `${NAME}` by its value in the environment, in the texts that `mapExpandableTexts` lists. Values are not
 * expanded again. A variable that is unset, names a secret of the gateway, or was written by a user without admin
 * rights is replaced by its default, or left as it is if it has none. An empty variable is replaced by its default, if
 * it has one.
 * @param given the values of one user for `${user.NAME}` (percent-encoded in `url`); if undefined, `${user.NAME}` is
 *   left as it is, as always in `openapi.schema`
 */
export function expandVariables (
  config: ServerConfig, environment: ProcessEnvironment, given?: UserVariableValues
): ExpandedConfig {
  const warnings = new Set<string>()
  const values = new Map<string, string>()
  const isLeft = createUserTextCheck(config.storedByUser)
  const fill: ExpandText = (text, place, ...within) => text.replace(expansionPattern, (
    written, ofUser: string | undefined, name: string, fallback: string | undefined
  ) => {
    if (ofUser !== undefined) {
      const value = given?.get(name)
      // An API description belongs to all users: a value must neither choose its host nor go out with others' calls.
      if (value === undefined || place === 'openapi.schema') return written
      const filled = place === 'url' ? encodeURIComponent(value) : value
      for (const each of [value, filled]) values.set(each, written)
      return filled
    }
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined
    const shown = `\${${name}}`
    if (isLeft(place, ...within)) {
      warnings.add(`${shown} in ${place} is not expanded: only an admin can set this value with a variable`)
    } else if (isGatewaySecretName(name)) {
      warnings.add(`${shown} in ${place} is not expanded: it is a secret of the gateway`)
    } else if (value !== undefined && (value !== '' || fallback === undefined)) {
      values.set(value, shown)
      return value
    } else if (fallback === undefined) warnings.add(`${shown} in ${place} is not set`)
    return fallback ?? written
  })
  const { url } = config
  const { headers, ...filled } = mapExpandableTexts(config, fill)
  const expanded: ServerConfig = {
    ...filled,
    // Values that come from files often end with a line break, which headers must not contain.
    ...(headers && { headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, text.trim()])) })
  }
  if (url !== undefined && expanded.url !== url) hideHost(values, url, expanded.url ?? '')
  const hidden = [...values].filter(([value]) => value.length >= minHiddenLength).sort(([a], [b]) =>
    b.length - a.length)
  return {
    config: expanded,
    warnings: [...warnings],
    hide: (text) => hidden.reduce((rest, [value, written]) => rest.replaceAll(value, written), text)
  }
}

/**
 * Adds the host of the filled URL to the values to hide, if the host contains a variable: error messages name the host.
 */
function hideHost (values: Map<string, string>, written: string, filled: string): void {
  const host = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^/?#]*)/i.exec(written)?.[1] ?? ''
  if (!host.includes('${') || !URL.canParse(filled)) return
  const url = new URL(filled)
  for (const each of [url.host, url.hostname]) if (!values.has(each)) values.set(each, host)
}
