import { Type, type Static } from '@sinclair/typebox'
import { maxConfigEntries, OpenApiConfig, securityProblem } from './openapi-upstream.ts'
import { oauthProblem, UpstreamOAuth } from './upstream-oauth.ts'
import { StoredByUser } from './stored-by-user.ts'
import { StringEnum } from './string-enum.ts'
import { transports, transportTypes, type TransportType } from './transports.ts'

/** The name of the override for all items without an override of their own. */
export const allItems = '*'

/** An admin's override of one tool, prompt or resource of a server, by its own name (a resource: its URI). */
export const ItemOverride = Type.Object({
  enabled: Type.Optional(Type.Boolean()),
  description: Type.Optional(Type.String())
})
export type ItemOverride = Static<typeof ItemOverride>

const Texts = () => Type.Record(Type.String(), Type.String(), { maxProperties: maxConfigEntries })
const Overrides = Type.Optional(Type.Record(Type.String(), ItemOverride, { maxProperties: maxConfigEntries }))
const Milliseconds = (minimum = 1) => Type.Integer({ minimum, maximum: 2 ** 31 - 1 })

/** The config of an upstream server. Unknown members are kept unchanged. */
export const ServerConfig = Type.Object({
  type: Type.Optional(
    StringEnum<TransportType[]>(transportTypes, {
      description: 'Transport to the server; without it, `command` means stdio, and `url` streamable-http with ' +
        'fall-back to sse'
    })
  ),
  command: Type.Optional(Type.String({ description: 'Executable, for stdio' })),
  args: Type.Optional(Type.Array(Type.String(), { maxItems: maxConfigEntries })),
  env: Type.Optional(Texts()),
  cwd: Type.Optional(Type.String()),
  url: Type.Optional(Type.String({ description: 'Address, for sse, streamable-http and openapi' })),
  headers: Type.Optional(Texts()),
  keepAliveInterval: Type.Optional(Milliseconds(1_000)),
  enableKeepAlive: Type.Optional(Type.Boolean()),
  enabled: Type.Optional(Type.Boolean()),
  owner: Type.Optional(Type.String()),
  visibility: Type.Optional(StringEnum(['private', 'public', 'group'])),
  description: Type.Optional(Type.String()),
  createdAt: Type.Optional(Type.String({ description: 'ISO 8601, set by the gateway' })),
  storedBy: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Set by the gateway: the users who stored it last, on whose rights it rests; absent: the operator'
    })
  ),
  storedByUser: StoredByUser,
  isolation: Type.Optional(StringEnum(['auto', 'shared', 'session', 'user'])),
  startOnDemand: Type.Optional(Type.Boolean()),
  idleTimeoutMs: Type.Optional(Milliseconds()),
  passthroughHeaders: Type.Optional(Type.Array(Type.String(), { maxItems: maxConfigEntries })),
  sharedWithUsers: Type.Optional(Type.Array(Type.String())),
  oauth: Type.Optional(UpstreamOAuth),
  proxy: Type.Optional(
    Type.Object({
      url: Type.Optional(Type.String({ description: 'An http or https proxy for connections to a remote server' })),
      noProxy: Type.Optional(Type.String({
        description: 'Hosts that are connected to without it: names, `.suffix`, `*`; comma-separated'
      }))
    })
  ),
  openapi: Type.Optional(OpenApiConfig),
  options: Type.Optional(
    Type.Object({
      timeout: Type.Optional(Milliseconds()),
      resetTimeoutOnProgress: Type.Optional(Type.Boolean()),
      maxTotalTimeout: Type.Optional(Milliseconds())
    })
  ),
  tools: Overrides,
  prompts: Overrides,
  resources: Overrides
})
export type ServerConfig = Static<typeof ServerConfig>

/**
 * The type of a server. If the config has no type, it is derived from its members; with only a `url`, it is the type
 * that is tried first. Undefined: it cannot be derived.
 */
export const typeOf = (
  { type, command, url }: Pick<ServerConfig, 'type' | 'command' | 'url'>
): TransportType | undefined =>
  type ?? (command !== undefined ? 'stdio' : url !== undefined ? 'streamable-http' : undefined)

/** A message about what a config of its type lacks; undefined: it is complete. */
export function incomplete (config: ServerConfig): string | undefined {
  const { type, command, url, proxy, openapi, oauth } = config
  const known = typeOf(config)
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
 * Whether a text is an http(s) URL. One with a variable (`${NAME}`) is accepted, and checked after the replacement of
 * the variable.
 */
const isWebAddress = (text: string): boolean =>
  /\$\{[A-Za-z_]\w*\}/.test(text) ||
    (!/\p{Cc}/u.test(text) && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))

/** The names of client headers that a config passes on to its server, in their original spelling. */
export const passthroughNames = ({ passthroughHeaders = [], openapi }: ServerConfig): string[] =>
  [...passthroughHeaders, ...openapi?.passthroughHeaders ?? []]
