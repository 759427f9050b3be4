/* eslint no-template-curly-in-string: off -- variables are written as `${user.NAME}` */
import { Type, type Static } from '@sinclair/typebox'
import { countLaunchingArguments } from './launchers.ts'

/** A value that each user of a server provides. */
const UserVariable = Type.Object({
  name: Type.String({
    pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$',
    description: 'At most 64 letters, digits and `_`, not beginning with a digit. Used as `${user.NAME}`'
  }),
  title: Type.Optional(Type.String({ maxLength: 200, description: 'The value to provide, shown to people' })),
  description: Type.Optional(Type.String({ maxLength: 2_000, description: 'Where to get the value, shown to people' })),
  secret: Type.Optional(Type.Boolean({ description: 'Whether forms hide the value. Default: yes' })),
  required: Type.Optional(Type.Boolean({
    description: 'Whether the server cannot be used without it. Default: yes. If an optional value is missing, the ' +
      'header, the variable of `env`, the argument or the query parameter that uses it is omitted'
  }))
})
type UserVariable = Static<typeof UserVariable>

/** The values that each user of a server provides. Each user then has separate connections to the server. */
export const UserVariables = Type.Optional(
  Type.Array(UserVariable, {
    maxItems: 32,
    description: 'Values that each user provides, used as `${user.NAME}` in the value of a header, as a variable of ' +
      '`env`, as an argument or after `--name=` in one, and in a path segment or a query value of `url`'
  })
)

/** The members of a config that matter for user variables, or determine where the users' values are sent. */
interface ConfigWithVariables {
  userVariables?: readonly UserVariable[]
  command?: string
  args?: string[]
  env?: Record<string, string>
  headers?: Record<string, string>
  url?: string
  openapi?: { url?: string, schema?: unknown }
  proxy?: unknown
  createdAt?: string
}

/** Matches a user variable in a text; group 1 is its name. */
const variablePattern = /\$\{user\.([A-Za-z_][A-Za-z0-9_]*)\}/g
const variableStart = '${user.'

/** Returns the names of the user variables in a text. */
const userVariablesIn = (text: string): string[] => [...text.matchAll(variablePattern)].map(([, name = '']) => name)

/** Whether each user of a server provides values. */
export const hasUserVariables = ({ userVariables = [] }: ConfigWithVariables): boolean => userVariables.length > 0

/**
 * Variables of `env` that determine which code a program, its interpreter, its package manager or a shell runs, or
 * where it is loaded from. Users cannot set these variables. Names are compared in upper case, since some systems
 * ignore their case.
 */
const codeVariables = [
  /^(PATH|PATHEXT|HOME|SHELL|ENV|IFS|PS4|PROMPT_COMMAND|CDPATH|ZDOTDIR|COMSPEC|EDITOR|VISUAL|PAGER|BROWSER)$/,
  /^(LD|DYLD|BASH|PNPM|YARN|BUN|DENO|COREPACK|PIP|VIRTUAL|CONDA|CORECLR|GLIBC|MALLOC|XDG|ELECTRON)_/,
  /^(NODE_(?!ENV$|AUTH_TOKEN$)|NPM_(?!TOKEN$)|UV_(?!PUBLISH_TOKEN$))/,
  /^(PYTHON|RUBY|PERL|LUA_|JAVA_|_JAVA|JDK_|PHP_?INI|PHPRC|LESSOPEN|LESSCLOSE|GCONV|LOCPATH|CARGO_|RUSTC)/,
  /^(R_(PROFILE|ENVIRON|LIBS|HOME)|JULIA_|ERL_|ELIXIR_|MIX_|DOCKER_|CONTAINER_HOST|KUBECONFIG|GUILE_|TCL|OCAML|GHC)/,
  /^(SHELLOPTS|BASHOPTS|CLASSPATH|GEM_PATH|GEM_HOME|BUNDLE_.*|GOFLAGS|GOENV|DOTNET_.*|OPENSSL_.*|TMPDIR|APPDATA)$/,
  /^(GIT_(SSH.*|EXEC_PATH|ASKPASS|CONFIG.*|PROXY_COMMAND|EXTERNAL_DIFF|PAGER|EDITOR|SEQUENCE_EDITOR|TEMPLATE_DIR))$/
]
/**
 * Variables of `env` that determine where a program's traffic goes, who can read it, or which certificates the program
 * trusts.
 */
const trafficVariables = /^(SSLKEYLOGFILE|SSL_CERT_(FILE|DIR))$|_PROXY$|_CA_BUNDLE$/
/** Options of shells and interpreters whose value is code, or refers to code to load. */
const codeOption = new RegExp([
  '^-[abefhiklmnoprstuvx]{0,8}c$', '^-[ailnpsw]{0,4}e$', '^/[ck]$',
  '^--?(eval|command|encodedcommand|print|import|require|loader|experimental-loader)$'
].join('|'), 'i')
const canChooseCode = (name: string): boolean => codeVariables.some((each) => each.test(name.toUpperCase()))

/** Matches a text that consists of one user variable. */
const wholeVariablePattern = /^\$\{user\.[A-Za-z_][A-Za-z0-9_]*\}$/
/** Matches an argument that consists of one user variable, or of `--name=` and one user variable. */
const argumentPattern = /^(?:--[A-Za-z0-9][\w.-]*=)?\$\{user\.[A-Za-z_][A-Za-z0-9_]*\}$/

/** Matches an http or https address. The groups are its origin, path, query and fragment. */
const addressParts = /^(https?:\/\/[^/\\?#]+)([^\\?#]*)(\?[^#]*)?(#.*)?$/is

/** Members in which variables have no effect: texts for people, and the declarations of the variables. */
const textMembers = new Set(['description', 'tools', 'prompts', 'resources', 'skills', 'userVariables'])

/** Describes what is wrong with the user variables of a config, as a clause; undefined if they are valid. */
export function userVariableProblem (config: ConfigWithVariables): string | undefined {
  const { userVariables = [] } = config
  const declared = new Map(userVariables.map((variable) => [variable.name, variable]))
  if (declared.size < userVariables.length) return '"userVariables" has two variables with the same name'
  const { headers = {}, env = {}, args = [], url, openapi: { schema: _document, ...openapi } = {}, ...others } = config
  for (const [name, text] of Object.entries(headers)) {
    const isHost = /^(host|content-length|transfer-encoding|connection)$/i.test(name)
    if (isHost && text.includes(variableStart)) {
      return `"headers.${name}": values from users are not allowed in this header`
    }
  }
  for (const [name, text] of Object.entries(env)) {
    if (!text.includes(variableStart)) continue
    if (canChooseCode(name)) return `"env.${name}": users cannot set this variable, since it determines which code runs`
    if (trafficVariables.test(name.toUpperCase())) {
      return `"env.${name}": users cannot set this variable, since it determines where traffic goes or who can read it`
    }
    if (!wholeVariablePattern.test(text)) return `"env.${name}": a user's variable must be the whole value here`
  }
  const launchingCount = countLaunchingArguments(config.command ?? '', args)
  for (const [at, text] of args.entries()) {
    if (text.includes(variableStart) && !argumentPattern.test(text)) {
      return `"args.${at}": a user's variable must be a whole argument, or the part after "--name=" in it`
    }
    const option = [args[at - 1] ?? '', text.slice(0, text.indexOf('='))].find((each) => codeOption.test(each))
    if (option !== undefined && text.includes(variableStart)) {
      return `"args.${at}": users cannot set the value of ${JSON.stringify(option)}, since it determines which code ` +
        'runs'
    }
    if (at < launchingCount && text.includes(variableStart)) {
      return `"args.${at}": users cannot set what ${JSON.stringify(config.command)} runs, or how: write the package, ` +
        'image or script first, with options as "--name=value", and the user\'s variable after it'
    }
  }
  const urlProblem = url?.includes(variableStart) === true ? urlVariableProblem(url, declared) : undefined
  if (urlProblem !== undefined) return urlProblem
  const inOthers = Object.entries(others).flatMap(([name, value]) => textMembers.has(name) ? [] : [name, value])
  const elsewhere = [Object.keys(headers), Object.keys(env), openapi, inOthers]
  if (JSON.stringify(elsewhere).includes(variableStart)) {
    return 'a user\'s variable may occur only in values of "headers", "env", "args" and "url"'
  }
  for (const text of [...Object.values(headers), ...Object.values(env), ...args, url ?? '']) {
    const unknown = userVariablesIn(text).find((name) => !declared.has(name))
    if (unknown !== undefined) return `"\${user.${unknown}}" is not in "userVariables"`
    const withoutVariables = text.replace(variablePattern, '')
    if (withoutVariables.includes(variableStart)) return `"${variableStart}…}" needs the name of a variable`
  }
  return undefined
}

function urlVariableProblem (url: string, declared: ReadonlyMap<string, UserVariable>): string | undefined {
  const [, origin, path = '', query = '', fragment = ''] = addressParts.exec(url) ?? []
  if (origin === undefined || origin.includes(variableStart) || fragment.includes(variableStart)) {
    return '"url": a user\'s variable may occur only in a path segment or a query value'
  }
  if (query.slice(1).split('&').some((each) => (/^[^=]*/.exec(each)?.[0] ?? '').includes(variableStart))) {
    return '"url": a user\'s variable may occur in the value of a query parameter, not in its name'
  }
  const optional = userVariablesIn(path).find((name) => declared.get(name)?.required === false)
  return optional === undefined ? undefined : `"url": its path needs \${user.${optional}}, which is not "required"`
}

/** The values of one user, by the names of the variables. */
export type UserVariableValues = ReadonlyMap<string, string>

/**
 * Copies a config without the headers, variables of `env`, arguments and query parameters that contain a user variable
 * without a value.
 */
export function withoutMissingValues<Config extends ConfigWithVariables> (
  config: Config, values: UserVariableValues
): Config {
  const isGiven = (text: string): boolean => userVariablesIn(text).every((name) => values.has(name))
  const given = (map: Record<string, string>): Record<string, string> =>
    Object.fromEntries(Object.entries(map).filter(([, text]) => isGiven(text)))
  const { headers, env, args, url } = config
  return {
    ...config,
    ...(headers && { headers: given(headers) }),
    ...(env && { env: given(env) }),
    ...(args && { args: args.filter(isGiven) }),
    ...(url !== undefined && {
      url: url.replace(/\?[^#]*/, (query) => {
        const kept = query.slice(1).split('&').filter(isGiven)
        return kept.length === 0 ? '' : `?${kept.join('&')}`
      })
    })
  }
}

/** Returns the names of required user variables without a value. */
export const missingVariables = ({ userVariables = [] }: ConfigWithVariables, values: UserVariableValues): string[] =>
  userVariables.flatMap(({ name, required = true }) => required && !values.has(name) ? [name] : [])

/** Max length of a user's value, in bytes. */
const maxValue = 8 * 1024

/** Returns the reason why a value is not valid for a user variable, as a predicate; undefined if it is valid. */
export function valueProblem (
  { args = [], headers = {}, url = '' }: ConfigWithVariables, name: string, value: string
): string | undefined {
  if (value === '') return 'is empty'
  if (Buffer.byteLength(value) > maxValue) return 'is longer than 8 KiB'
  if (/\p{Cc}/u.test(value) || !value.isWellFormed()) return 'has control characters'
  const isIn = (text: string): boolean => userVariablesIn(text).includes(name)
  if (value.startsWith('-') && args.some(isIn)) {
    return 'begins with "-", which is not allowed for an argument of a command'
  }
  if (/[^\x20-\x7e\xa0-\xff]/.test(value) && Object.values(headers).some(isIn)) {
    return 'contains characters that are not allowed in a header'
  }
  // A path segment `.` or `..` refers to another folder, even if it is percent-encoded.
  if (/^\.+$/.test(value) && isIn(addressParts.exec(url)?.[2] ?? '')) return 'is a relative path segment'
  return undefined
}

/**
 * Returns where users' values are sent, as a text for comparison: the server's creation time, the origin of its address
 * or its command line, the places of the variables, the proxy, and the API description. Values that were provided for
 * one target are not used for another.
 */
export function userVariableTargetFingerprint (
  { command, args, url = '', env = {}, headers = {}, proxy, openapi, createdAt }: ConfigWithVariables
): string {
  const used = (map: Record<string, string>): unknown[] =>
    Object.entries(map).flatMap(([name, text]) => {
      const names = userVariablesIn(text)
      return names.length === 0 ? [] : [JSON.stringify([name.toLowerCase(), names])]
    }).sort()
  const [, origin = url, path = '', query = ''] = addressParts.exec(url) ?? []
  const segments = path.split('/').flatMap((each, at) => each.includes(variableStart) ? [[at, each]] : [])
  const parameters = query.slice(1).split('&').filter((each) => each.includes(variableStart))
  return JSON.stringify([
    createdAt, command === undefined ? URL.canParse(origin) ? new URL(origin).origin : origin : [command, args],
    used(env), used(headers), segments, parameters, proxy, openapi?.url, openapi?.schema
  ])
}
