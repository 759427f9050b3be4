import { Type, type Static } from '@sinclair/typebox'
import { maxConfigEntries, OpenApiConfig, securityProblem } from './openapi-upstream.ts'
import { oauthProblem, UpstreamOAuth } from './upstream-oauth.ts'
import { ValuesStoredByUser } from './stored-by-user.ts'
import { StringEnum } from './string-enum.ts'
import { transports, transportTypes, type TransportType } from './transports.ts'
import { hasUserVariables, userVariableProblem, UserVariables } from './user-variables.ts'

/** The key of the override for all items of a kind: its `enabled` applies to items whose own override has none. */
export const allItemsKey = '*'

/** An override of one tool, prompt, resource or skill of a server. Its key is the item's own name or URI. */
export const ItemOverride = Type.Object({
  enabled: Type.Optional(Type.Boolean()),
  description: Type.Optional(Type.String())
})
export type ItemOverride = Static<typeof ItemOverride>

const Texts = (description: string) =>
  Type.Optional(Type.Record(Type.String(), Type.String(), { maxProperties: maxConfigEntries, description }))
const List = (description: string) =>
  Type.Optional(Type.Array(Type.String(), { maxItems: maxConfigEntries, description }))
const Flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const Overrides = Type.Optional(Type.Record(Type.String(), ItemOverride, { maxProperties: maxConfigEntries }))
const Milliseconds = (description: string, minimum = 1) =>
  Type.Optional(Type.Integer({ minimum, maximum: 2 ** 31 - 1, description }))

/** The config of an upstream server. Unknown members are kept unchanged. */
export const ServerConfig = Type.Object({
  type: Type.Optional(
    StringEnum<TransportType[]>(transportTypes, {
      description: 'Transport to the server. Default: stdio with `command`, streamable-http with fallback to sse ' +
        'with `url`'
    })
  ),
  command: Type.Optional(Type.String({ description: 'Executable, for stdio' })),
  args: List('Arguments of the command'),
  env: Texts('Environment variables of the process, which gets none of the gateway\'s secrets'),
  cwd: Type.Optional(Type.String({ description: 'Working directory of the command' })),
  url: Type.Optional(Type.String({ description: 'Address, for sse, streamable-http and openapi' })),
  headers: Texts('Headers of each request to the server'),
  keepAliveInterval: Milliseconds('Interval of the health checks of a remote server, in ms. Default: 60,000', 1_000),
  enableKeepAlive: Flag('Whether the health of a remote server is checked. Default: yes'),
  enabled: Type.Optional(Type.Boolean()),
  owner: Type.Optional(Type.String({ description: 'The user to whom the server belongs' })),
  visibility: Type.Optional(StringEnum(['private', 'public', 'group'], {
    description: 'Who may use it besides its owner and admins: nobody (private, group) or everybody (public)'
  })),
  description: Type.Optional(Type.String({ description: 'What the server is for' })),
  createdAt: Type.Optional(Type.String({ description: 'ISO 8601, set by the gateway' })),
  storedBy: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Set by the gateway: the users who last stored it; it has only their rights. Absent: the operator'
    })
  ),
  storedByUser: ValuesStoredByUser,
  isolation: Type.Optional(StringEnum(['auto', 'shared', 'session', 'user'], {
    description: 'Which clients share a connection: all, those of one MCP session, or those of one user. Default: auto'
  })),
  startOnDemand: Flag('Whether the command is started by the first call'),
  idleTimeoutMs: Milliseconds('With startOnDemand: time without calls after which the process is stopped, in ms. ' +
    'Default: 5 minutes'),
  userVariables: UserVariables,
  pin: Type.Optional(StringEnum(['off', 'warn', 'ask', 'block'], {
    description: 'What happens if a definition of the server changes: nothing (off), admins are notified (warn), it ' +
      'is hidden until an admin accepts it (ask), or its former version is listed and calls are refused (block). ' +
      'Default: warn'
  })),
  passthroughHeaders: List('Names of client headers that are forwarded to the server'),
  sharedWithUsers: List('Others who may use it without seeing its config: usernames, and teams as `@name`'),
  oauth: Type.Optional(UpstreamOAuth),
  proxy: Type.Optional(
    Type.Object({
      url: Type.Optional(Type.String({ description: 'An http or https proxy for connections to a remote server' })),
      noProxy: Type.Optional(Type.String({
        description: 'Hosts that are reached without the proxy: names, `.suffix`, `*`; comma-separated'
      }))
    })
  ),
  openapi: Type.Optional(OpenApiConfig),
  options: Type.Optional(
    Type.Object({
      timeout: Milliseconds('Max time of a call, in ms'),
      resetTimeoutOnProgress: Flag('Whether each progress notification restarts that time'),
      maxTotalTimeout: Milliseconds('Max time of a call, including all its progress notifications, in ms')
    })
  ),
  tools: Overrides,
  prompts: Overrides,
  resources: Overrides,
  skills: Overrides
})
export type ServerConfig = Static<typeof ServerConfig>

/**
 * Returns the type of a server. If the config states none, the type is derived from the other members; for a `url`, it
 * is the type that is tried first. Undefined if it cannot be derived.
 */
export const serverTypeOf = (
  { type, command, url }: Pick<ServerConfig, 'type' | 'command' | 'url'>
): TransportType | undefined =>
  type ?? (command !== undefined ? 'stdio' : url !== undefined ? 'streamable-http' : undefined)

/**
 * Returns which clients share a connection to a server. If users provide values for it, each user has separate
 * connections.
 */
export const isolationOf = (config: ServerConfig): NonNullable<ServerConfig['isolation']> =>
  hasUserVariables(config) ? 'user' : config.isolation ?? 'auto'

/** Describes what is missing or wrong in a config, given the type of the server; undefined if the config is valid. */
export function configProblem (config: ServerConfig): string | undefined {
  const { type, command, url, proxy, openapi, oauth } = config
  const variableProblem = userVariableProblem(config)
  if (variableProblem !== undefined) return variableProblem
  const known = serverTypeOf(config)
  const locatedBy = known && transports[known].locatedBy
  if (locatedBy === 'command') return command ? undefined : `a ${known} server needs a "command"`
  const isDescription = locatedBy === 'description'
  if (!url && (!isDescription || (!openapi?.url && openapi?.schema === undefined))) {
    return type === undefined ? 'it needs a "command" or a "url"' : `a server of type "${type}" needs a "url"`
  }
  if (url !== undefined && !isWebAddress(url)) return '"url" must be an absolute http or https address'
  if (isDescription && openapi?.url !== undefined && !isWebAddress(openapi.url)) {
    return '"openapi.url" must be an absolute http or https address'
  }
  if (proxy?.url !== undefined && !isWebAddress(proxy.url)) {
    return '"proxy.url" must be an absolute http or https address'
  }
  return isDescription ? securityProblem(openapi?.security) : oauthProblem(oauth)
}

/**
 * Whether a text is an http or https URL. A text with a variable (`${NAME}`) is accepted: it is checked after the
 * variable has been replaced.
 */
const isWebAddress = (text: string): boolean =>
  /\$\{[A-Za-z_]\w*(:-[^{}]*)?\}/.test(text) ||
    (!/\p{Cc}/u.test(text) && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))

/** Returns the names of the client headers that are forwarded to a server, as they are spelled in its config. */
export const passthroughHeaderNames = ({ passthroughHeaders = [], openapi }: ServerConfig): string[] =>
  [...passthroughHeaders, ...openapi?.passthroughHeaders ?? []]
