import type { IncomingHttpHeaders } from 'node:http'
import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { supportedVersions } from '../../../protocol/era.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { isObject, membersOf, type Member } from '../../../protocol/json.ts'
import { isLegacyVersion } from '../../../protocol/legacy/versions.ts'
import { isLogLevel, type LogLevel } from '../../../protocol/listener.ts'
import type { Request } from '../../../protocol/message.ts'
import {
  decodeHeader, headerNames, isModernVersion, latestModernVersion, metaKeys, modernErrorCode, modernVersions,
  mcpNameMemberOf
} from '../../../protocol/modern/envelope.ts'
import { measureCapabilities, type ReceivedMessage } from '../read-message.ts'
import { firstHeaderValue } from '../endpoint.ts'

/**
 * A validated request of MCP 2026-07-28. Its `paramsText` lacks the envelope: the members of `_meta` that each request
 * of that revision repeats (protocol version, the client's capabilities, `clientInfo`).
 */
export interface ModernRequest extends Request {
  readonly capabilities: ClientCapabilities
  /** The JSON text of the capabilities, as the client sent it. */
  readonly capabilitiesText: string
  /** The memory that the capabilities take, in bytes. */
  readonly capabilitiesMemory: number
  /** The least severe level of log messages that the client wants; undefined if it wants none. */
  readonly logLevel: LogLevel | undefined
}

/**
 * Whether a POST is handled as MCP 2026-07-28: `MCP-Protocol-Version` names that revision, or `_meta` names a revision
 * that is not legacy. Outside a session, this also applies to a request other than `initialize` if `_meta` names a
 * legacy revision, or the header names an unknown one, since only 2026-07-28 defines errors for these cases.
 */
export function isModernPost (headers: IncomingHttpHeaders, message: ReceivedMessage): boolean {
  const header = headers[headerNames.version]
  if (header === latestModernVersion) return true
  if (Array.isArray(message) || message.kind === 'response') return false
  const { _meta: meta } = message.params
  const version = isObject(meta) ? meta[metaKeys.protocolVersion] : undefined
  if (version !== undefined && !isLegacyVersion(version)) return true
  if (headers['mcp-session-id'] !== undefined || message.kind === 'notification' || message.method === 'initialize') {
    return false
  }
  return version !== undefined || (header !== undefined && !isLegacyVersion(header))
}

const invalidParams = (sentence: string): RpcError => new RpcError(rpcCode.invalidParams, `Invalid params: ${sentence}`)
const headerMismatch = (sentence: string): RpcError =>
  new RpcError(modernErrorCode.headerMismatch, `Header mismatch: ${sentence}`)
const quoteValue = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 200)

/**
 * Checks the envelope and the headers of a request (MCP 2026-07-28, "Overview" `_meta`; "Streamable HTTP", Server
 * Validation).
 * @throws RpcError to answer with HTTP 400: -32600 for the id, -32602 for the envelope, -32020 for headers, -32022 for
 * the revision
 */
export function parseModernRequest (request: Request, headers: IncomingHttpHeaders): ModernRequest {
  const { kind, id, idText, method, params } = request
  const meta = isObject(params._meta) ? params._meta : {}
  const version = meta[metaKeys.protocolVersion]
  const capabilities = meta[metaKeys.clientCapabilities]
  const header = firstHeaderValue(headers[headerNames.version])
  if (version === undefined && header !== undefined && !isModernVersion(header)) throw unsupportedVersion(header)
  if (typeof version !== 'string') throw invalidParams(`_meta must have ${quoteValue(metaKeys.protocolVersion)}`)
  if (isLegacyVersion(version) && (header ?? version) === version) throw unsupportedVersion(version)
  if (header !== version) {
    throw headerMismatch(header === undefined
      ? 'MCP-Protocol-Version is missing'
      : 'MCP-Protocol-Version differs from the version in _meta')
  }
  if (!isModernVersion(version)) throw unsupportedVersion(version)
  checkIdAndMeta(id, meta)
  if (!isObject(capabilities)) {
    throw invalidParams(`_meta must have ${quoteValue(metaKeys.clientCapabilities)}, an object`)
  }
  checkNames(method, params, headers)
  // Some clients write null for an absent value.
  const logLevel = meta[metaKeys.logLevel] ?? undefined
  if (logLevel !== undefined && !isLogLevel(logLevel)) throw invalidParams(`${quoteValue(logLevel)} is not a log level`)
  const { text, capabilitiesText, capabilitiesMemory } = withoutEnvelope(request.paramsText)
  // The members are written out, since a spread is slow and every modern call takes this path.
  return {
    kind, id, idText, method, params, paramsText: text, capabilities, capabilitiesText, capabilitiesMemory, logLevel
  }
}

/** Methods that only earlier revisions have. Requests with these methods are rejected. */
const removedMethods: ReadonlySet<string> = new Set([
  'initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'
])

/**
 * Checks that a method may be requested in MCP 2026-07-28.
 * @throws RpcError -32601 for a method that only earlier revisions have, and for the name of a notification
 */
export function requireModernMethod (method: string): void {
  if (removedMethods.has(method) || method.startsWith('notifications/')) {
    throw new RpcError(rpcCode.methodNotFound, `Method not found: ${method}`)
  }
}

/** Checks the id, the progress token and `clientInfo`. @throws RpcError */
function checkIdAndMeta (id: Request['id'], meta: Readonly<Record<string, unknown>>): void {
  if (!isToken(id)) throw new RpcError(rpcCode.invalidRequest, 'Invalid request: "id" must be a string or an integer')
  const { progressToken, [metaKeys.clientInfo]: clientInfo } = meta
  if ((progressToken ?? undefined) !== undefined && !isToken(progressToken)) {
    throw invalidParams('"progressToken" must be a string or an integer')
  }
  if ((clientInfo ?? undefined) === undefined) return
  if (!isObject(clientInfo) || typeof clientInfo.name !== 'string' || typeof clientInfo.version !== 'string') {
    throw invalidParams(`${quoteValue(metaKeys.clientInfo)} must have a name and a version`)
  }
}

const isToken = (value: unknown): boolean => typeof value === 'string' || Number.isInteger(value)

function unsupportedVersion (requested: string): RpcError {
  const message = 'Unsupported protocol version'
  // A legacy revision is supported, but only after `initialize`.
  const data = {
    supported: isLegacyVersion(requested) ? modernVersions : supportedVersions, requested: requested.slice(0, 200)
  }
  const text = JSON.stringify({ code: modernErrorCode.unsupportedVersion, message, data })
  return new RpcError(modernErrorCode.unsupportedVersion, message, 'request', text)
}

/** Checks `Mcp-Method` and `Mcp-Name`. @throws RpcError */
function checkNames (method: string, params: Readonly<Record<string, unknown>>, headers: IncomingHttpHeaders): void {
  const inHeader = firstHeaderValue(headers[headerNames.method])
  if (inHeader !== method) {
    throw headerMismatch(inHeader === undefined ? 'Mcp-Method is missing' : 'Mcp-Method differs from the method')
  }
  const member = mcpNameMemberOf(method)
  if (member === undefined) return
  const name = firstHeaderValue(headers[headerNames.name])
  if (name === undefined) throw headerMismatch('Mcp-Name is missing')
  const decoded = decodeHeader(name)
  if (decoded === undefined || decoded !== params[member]) {
    throw headerMismatch(`Mcp-Name differs from params.${member}`)
  }
}

/**
 * The envelope: the members of `_meta` that are meant for the gateway, which sends an envelope of its own to servers.
 * The log level is not among them: it is forwarded, so that a server of 2026-07-28 sends the log messages that the
 * client wants.
 */
const envelopeMembers: ReadonlySet<string> =
  new Set([metaKeys.protocolVersion, metaKeys.clientCapabilities, metaKeys.clientInfo])

/** Max length of params whose `_meta` is cached, in characters: the cached part keeps all of the text in memory. */
const maxCached = 16 * 1024

interface WithoutEnvelope extends Pick<MetaParts, 'capabilitiesText' | 'capabilitiesMemory'> { readonly text: string }

/**
 * Returns the text of params without the envelope. All other members keep their bytes.
 * @throws the RpcError of `measureCapabilities`
 */
function withoutEnvelope (paramsText: string): WithoutEnvelope {
  const members = membersOf(paramsText)
  const at = members.findIndex(({ key }) => key === '_meta')
  const meta = members[at]
  if (!meta) return { text: paramsText, capabilitiesText: '{}', capabilitiesMemory: 0 }
  const { rest, capabilitiesText, capabilitiesMemory } =
    partsOf(paramsText.slice(meta.start, meta.end), paramsText.length <= maxCached)
  const text = rest === ''
    ? withoutMember(paramsText, members, at, meta)
    : `${paramsText.slice(0, meta.start)}{${rest}}${paramsText.slice(meta.end)}`
  return { text, capabilitiesText, capabilitiesMemory }
}

/** The parts of a `_meta` (`metaText`): the text of the members to forward (`rest`), and the capabilities. */
interface MetaParts {
  readonly metaText: string
  readonly rest: string
  readonly capabilitiesText: string
  readonly capabilitiesMemory: number
}

/** The parts of the last cached `_meta`. The next request often has the same `_meta`. */
let lastMeta: MetaParts | undefined

/**
 * Returns the parts of a `_meta`, from the cache if it equals the `_meta` of the last cached request.
 * @param isCached whether to cache the parts
 * @throws the RpcError of `measureCapabilities`
 */
function partsOf (metaText: string, isCached: boolean): MetaParts {
  if (lastMeta?.metaText === metaText) return lastMeta
  const rest: string[] = []
  let capabilitiesText = '{}'
  for (const { key, keyStart, start, end } of membersOf(metaText)) {
    if (!envelopeMembers.has(key)) rest.push(metaText.slice(keyStart, end))
    else if (key === metaKeys.clientCapabilities) capabilitiesText = metaText.slice(start, end)
  }
  const capabilitiesMemory = measureCapabilities(capabilitiesText, metaKeys.clientCapabilities)
  const parts = { metaText, rest: rest.join(), capabilitiesText, capabilitiesMemory }
  if (isCached) lastMeta = parts
  return parts
}

function withoutMember (text: string, members: readonly Member[], at: number, { keyStart, end }: Member): string {
  const next = members[at + 1]
  if (next) return `${text.slice(0, keyStart)}${text.slice(next.keyStart)}`
  return `${text.slice(0, members[at - 1]?.end ?? keyStart)}${text.slice(end)}`
}
