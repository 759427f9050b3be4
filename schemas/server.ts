import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

/** What an admin says of one tool, prompt or resource of a server, by its own name (a resource: its URI). */
export const ItemOverride = Type.Object({
  enabled: Type.Optional(Type.Boolean()),
  description: Type.Optional(Type.String())
})
export type ItemOverride = Static<typeof ItemOverride>

const Overrides = Type.Optional(Type.Record(Type.String(), ItemOverride))
const Milliseconds = (minimum = 1) => Type.Integer({ minimum, maximum: 2 ** 31 - 1 })

/** What is written down of one upstream server. Members that are not listed are kept as they are. */
export const ServerConfig = Type.Object({
  type: Type.Optional(StringEnum(['stdio', 'sse', 'streamable-http', 'openapi'], { description: 'How to reach the server; without it, `command` means stdio and `url` streamable-http with fall-back to sse' })),
  command: Type.Optional(Type.String({ description: 'Executable, for stdio' })),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Record(Type.String(), Type.String())),
  cwd: Type.Optional(Type.String()),
  url: Type.Optional(Type.String({ description: 'Address, for sse, streamable-http and openapi' })),
  headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  keepAliveInterval: Type.Optional(Milliseconds(1_000)),
  enableKeepAlive: Type.Optional(Type.Boolean()),
  enabled: Type.Optional(Type.Boolean()),
  owner: Type.Optional(Type.String()),
  visibility: Type.Optional(StringEnum(['private', 'public', 'group'])),
  visibilityDefaulted: Type.Optional(Type.Boolean()),
  description: Type.Optional(Type.String()),
  createdAt: Type.Optional(Type.String({ description: 'ISO 8601, set by the gateway' })),
  isolation: Type.Optional(StringEnum(['auto', 'shared', 'session', 'user'])),
  startOnDemand: Type.Optional(Type.Boolean()),
  idleTimeoutMs: Type.Optional(Milliseconds()),
  passthroughHeaders: Type.Optional(Type.Array(Type.String())),
  sharedWithUsers: Type.Optional(Type.Array(Type.String())),
  oauth: Type.Optional(Type.Object({})),
  proxy: Type.Optional(Type.Object({})),
  openapi: Type.Optional(Type.Object({})),
  options: Type.Optional(Type.Object({
    timeout: Type.Optional(Milliseconds()),
    resetTimeoutOnProgress: Type.Optional(Type.Boolean()),
    maxTotalTimeout: Type.Optional(Milliseconds())
  })),
  tools: Overrides,
  prompts: Overrides,
  resources: Overrides
})
export type ServerConfig = Static<typeof ServerConfig>

/** What a config of its kind lacks, as a sentence; undefined: nothing. */
export function incomplete ({ type, command, url }: ServerConfig): string | undefined {
  if (type === 'openapi') return 'servers of type "openapi" are not supported yet'
  if (type === 'stdio' || (type === undefined && command !== undefined)) return command ? undefined : 'a stdio server needs a "command"'
  if (!url) return type === undefined ? 'it needs a "command" or a "url"' : `a server of type "${type}" needs a "url"`
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return '"url" must be an absolute http or https address'
  return undefined
}
