// The envelope of modern messages (MCP 2026-07-28, "Overview" and "Streamable HTTP"): names, revisions, error codes,
// and the encoding of values in HTTP headers. The gateway uses it towards both clients and servers.

/** The revisions of the modern era, newest first. */
export const modernVersions = ['2026-07-28'] as const
export type ModernVersion = typeof modernVersions[number]

export const latestModernVersion: ModernVersion = modernVersions[0]

export const isModernVersion = (value: unknown): value is ModernVersion =>
  modernVersions.some((version) => version === value)

/** The members of `_meta` that MCP reserves in this era, besides `progressToken` and the trace context. */
export const metaKeys = {
  /** The MCP revision of the request. Required. */
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  /** The capabilities of the client that sends a request. Required. */
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  /** The least severe level of log messages that a request wants; without it, none are sent. */
  logLevel: 'io.modelcontextprotocol/logLevel',
  /** In each message of a subscription: the id of its `subscriptions/listen`. */
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  /** The server that sent a result. */
  serverInfo: 'io.modelcontextprotocol/serverInfo'
} as const

/** MCP's error codes for this era, sent with HTTP status 400. They concern one hop, and are not relayed. */
export const modernErrorCode = {
  /** A header is missing or contradicts the body. */
  headerMismatch: -32020,
  /** The request needs a capability that the client did not declare: `data.requiredCapabilities`. */
  missingCapability: -32021,
  /** The revision is not supported; `data` is `{supported, requested}`. */
  unsupportedVersion: -32022
} as const

export const isModernErrorCode = (code: number): boolean =>
  code <= modernErrorCode.headerMismatch && code >= modernErrorCode.unsupportedVersion

/** HTTP headers that repeat members of the body, in lower case. */
export const headerNames = {
  version: 'mcp-protocol-version',
  method: 'mcp-method',
  name: 'mcp-name',
  /** Prefix of the headers for tool arguments: see `param-headers.ts`. */
  param: 'mcp-param-'
} as const

/** The methods that require `Mcp-Name`, and the member of `params` that the header repeats. */
const nameMembers: Readonly<Record<string, 'name' | 'uri' | 'taskId' | undefined>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId'
}

const inputMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Returns the member of `params` that `Mcp-Name` repeats; undefined for methods without that header. */
export const mcpNameMemberOf = (method: string): 'name' | 'uri' | 'taskId' | undefined =>
  Object.hasOwn(nameMembers, method) ? nameMembers[method] : undefined

/** Whether a method may be answered with `input_required` (MCP 2026-07-28, "Multi Round-Trip Requests"). */
export const mayRequireInput = (method: string): boolean => inputMethods.has(method)

/** The values of `resultType` that the core protocol defines. */
export const resultTypes = { complete: 'complete', inputRequired: 'input_required' } as const
export type ResultType = typeof resultTypes[keyof typeof resultTypes]

const base64Pattern = /^=\?base64\?(.*)\?=$/s
/** Visible ASCII, with spaces and tabs allowed only between other characters. */
const plainPattern = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/

/** Encodes a body value for a header: unchanged if HTTP allows it, otherwise in Base64 ("Value Encoding"). */
export const encodeHeader = (value: string): string =>
  plainPattern.test(value) && !base64Pattern.test(value)
    ? value
    : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`

/** Decodes a header; undefined if its value is not valid. */
export function decodeHeader (header: string): string | undefined {
  const encoded = header.startsWith('=?') ? base64Pattern.exec(header)?.[1] : undefined
  if (encoded === undefined) return header === '' || plainPattern.test(header) ? header : undefined
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
