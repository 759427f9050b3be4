import { isObject } from '../../../protocol/json.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { createUserAuthorshipCheck } from '../../../schemas/stored-by-user.ts'
import type { UserVariableValues } from '../../../schemas/user-variables.ts'

/** The package indexes for package managers that a child runs (`systemConfig.install`). */
export interface PackageIndexes { npmRegistry?: string, pythonIndexUrl?: string }

/** The variables that a child process inherits: enough to run, without secrets. */
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

/** The variables in `env` that a child does not get: a user without admin rights set them, and they could run code. */
export function withheldVariableNames ({ env = {}, storedByUser }: ServerConfig): string[] {
  const isUsers = createUserAuthorshipCheck(storedByUser)
  return Object.keys(env).filter((name) => codeInjectors.test(name) && isUsers('env', name))
}

/** A sentence for the log about each of them. */
export const withheldVariableWarnings = (config: ServerConfig): string[] => withheldVariableNames(config).map((name) =>
  `${name} in env is not passed to it: only an admin can set this variable`)

/** The whole environment of a child. @param config with its variables expanded @param environment the gateway's own */
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
    // If a config sets one variable of a family, none is added: a variable of another package manager could override
    // it.
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

/** A config to connect with, with its variables expanded. */
interface ExpandedConfig {
  /** Must not be stored or shown. */
  config: ServerConfig
  /** Sentences about the variables that were not expanded; they do not contain values. */
  warnings: string[]
  /** Replaces the values in a text by the names of their variables, for error messages. */
  hide: (text: string) => string
}

/**
 * The gateway's secrets and the files that contain them; no config may read these. Compared in upper case, since names
 * are not case-sensitive on every system.
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
 * Members for which `storedByUser` records the author of single values. In other members that a user wrote, nothing is
 * expanded.
 */
const attributedMembers: ReadonlySet<string> = new Set(['env', 'headers', 'url', 'args'])

/** Expands the variables of a text at `place`, a member of the config; `within`: the name or index in that member. */
type ExpandText = (text: string, place: string, ...within: Array<string | number>) => string

/** Matches a variable in a text; group 1 is its name. */
export const variablePattern = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/**
 * Returns a function that tests whether variables at a place must not be expanded, because a user without admin rights
 * wrote them.
 */
export function createUnexpandedCheck (
  storedByUser: ServerConfig['storedByUser']
): (place: string, ...within: Array<string | number>) => boolean {
  const isUsers = createUserAuthorshipCheck(storedByUser)
  const isMixed = storedByUser !== undefined && storedByUser !== false
  return (place, ...within) => isUsers(place, ...within) || (isMixed && !attributedMembers.has(place))
}

/**
 * Maps the texts of a config in which variables are expanded: `env`, `headers`, `url`, `args`, `proxy`, `oauth`,
 * `openapi.url` and `openapi.security`.
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
        ...(openapi.security && { security: fillAll(openapi.security, 'openapi.security') })
      }
    })
  }
}

/**
 * Matches a variable of the environment or, if group 1 is not empty, a value that each user gives; group 2 is its name,
 * group 3 its default (`${NAME:-default}`, as in shells and Claude Code).
 */
const expansionPattern = /\$\{(user\.(?=\w+\}))?([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}/g

/**
 * Replaces `${NAME}` by its value in the environment, in the places of `mapExpandableTexts`. Values are not expanded
 * again. Variables that are unset, name a secret of the gateway, or were written by a user without admin rights are
 * replaced by their default; without one, they are left as they are.
 * @param given values of one user for `${user.NAME}`, percent-encoded in `url`; undefined: these are left as they are
 */
export function expandVariables (
  config: ServerConfig, environment: ProcessEnvironment, given?: UserVariableValues
): ExpandedConfig {
  const warnings = new Set<string>()
  const values = new Map<string, string>()
  const isLeft = createUnexpandedCheck(config.storedByUser)
  const fill: ExpandText = (text, place, ...within) => text.replace(expansionPattern, (
    written, ofUser: string | undefined, name: string, fallback: string | undefined
  ) => {
    if (ofUser !== undefined) {
      const value = given?.get(name)
      if (value === undefined) return written
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
    // Values from files often end with a line break, which headers must not contain.
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

/** Hides the host as well, which errors contain: it may be part of a value. */
function hideHost (values: Map<string, string>, written: string, filled: string): void {
  const host = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^/?#]*)/i.exec(written)?.[1] ?? ''
  if (!host.includes('${') || !URL.canParse(filled)) return
  const url = new URL(filled)
  for (const each of [url.host, url.hostname]) if (!values.has(each)) values.set(each, host)
}
