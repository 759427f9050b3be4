// The envelope of each message of the modern era (MCP 2026-07-28, "Overview" and "Streamable HTTP"): names, versions,
// codes, and how values stand in HTTP headers. Both sides of the gateway use it.

/** The revisions of the modern era, newest first. */
export const modernVersions = ['2026-07-28'] as const
export type ModernVersion = typeof modernVersions[number]

export const latestModern: ModernVersion = modernVersions[0]

export const isModernVersion = (value: unknown): value is ModernVersion =>
  modernVersions.some((version) => version === value)

/** The members of `_meta` that MCP reserves for this era, beside `progressToken` and the trace context. */
export const metaKeys = {
  /** Of a request: its revision. Required. */
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  /** Of a request: what the client can be asked for. Required. */
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  /** Of a request: the lowest level of the log messages that it wants; without it, it wants none. */
  logLevel: 'io.modelcontextprotocol/logLevel',
  /** Of each message of a subscription: the id of its `subscriptions/listen`. */
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  /** Of a result. */
  serverInfo: 'io.modelcontextprotocol/serverInfo'
} as const

/**
 * The error codes that MCP defines for this era. On HTTP they have the status 400. They describe one hop, and are never
 * relayed.
 */
export const modernCode = {
  /** A header is missing, or says something else than the body. */
  headerMismatch: -32020,
  /** The request needs a capability that the client does not declare: `data.requiredCapabilities`. */
  missingCapability: -32021,
  /** `data` is `{supported, requested}`. */
  unsupportedVersion: -32022
} as const

export const isModernCode = (code: number): boolean =>
  code <= modernCode.headerMismatch && code >= modernCode.unsupportedVersion

/** HTTP headers that repeat members of the body, in lower case. */
export const headerNames = {
  version: 'mcp-protocol-version',
  method: 'mcp-method',
  name: 'mcp-name',
  /** Begins the header of a tool's argument: see `param-headers.ts`. */
  param: 'mcp-param-'
} as const

/** The methods whose `Mcp-Name` is required, and the member of `params` that it repeats. */
const named: Readonly<Record<string, 'name' | 'uri' | undefined>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri'
}

/** The member of `params` that `Mcp-Name` repeats; undefined where the method has no such header. */
export const nameMemberOf = (method: string): 'name' | 'uri' | undefined =>
  Object.hasOwn(named, method) ? named[method] : undefined

/** The methods that may be answered with `input_required` (MCP 2026-07-28, "Multi Round-Trip Requests"). */
export const maySuspend = (method: string): boolean => nameMemberOf(method) !== undefined

/** The values of `resultType` that the core protocol defines. */
export const resultTypes = { complete: 'complete', inputRequired: 'input_required' } as const
export type ResultType = typeof resultTypes[keyof typeof resultTypes]

const wrapped = /^=\?base64\?(.*)\?=$/s
/** Visible ASCII, with spaces and tabs only inside. */
const plain = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/

/**
 * The text of a header for a value of the body: as it is where HTTP can carry that, else in Base64 ("Value Encoding").
 */
export const encodeHeader = (value: string): string =>
  plain.test(value) && !wrapped.test(value) ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`

/** The value that a header stands for; undefined for what `encodeHeader` of no conforming client writes. */
export function decodeHeader (header: string): string | undefined {
  const encoded = header.startsWith('=?') ? wrapped.exec(header)?.[1] : undefined
  if (encoded === undefined) return header === '' || plain.test(header) ? header : undefined
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
