import { RpcError, UpstreamError } from '../errors.ts'
import { extraIdentityMembersOf } from '../identity.ts'
import { instanceId, instanceMetaKey } from '../instance.ts'
import { isObject, memberOf } from '../json.ts'
import { isLegacyVersion } from '../legacy/versions.ts'
import { serverInfoShape } from '../message-shapes.ts'
import { mend } from '../mending.ts'
import { parseRpcError } from '../message.ts'
import type { RpcConnection } from '../peer.ts'
import type { ClientIdentity, ServerIdentity } from '../upstream-session.ts'
import { isModernVersion, metaKeys, modernErrorCode, type ModernVersion } from './envelope.ts'
import { OutgoingEnvelope } from './outgoing.ts'
import type { ToolParamHeaders } from './param-headers.ts'

/** The identity of a modern server, and the envelope for requests to it. */
export interface DiscoveredServer { readonly identity: ServerIdentity, readonly outgoing: OutgoingEnvelope }

/** Thrown if the server does not support the modern era, or does not understand `server/discover`. */
export class NotModernError extends Error {
  override readonly name = 'NotModernError'
}

/**
 * Sends `server/discover` (MCP 2026-07-28, "Discovery"). If the server asks for another revision that the gateway
 * supports, the request is repeated in that revision.
 * @param timeout max wait for each answer, in ms
 * @throws NotModernError; UpstreamError if there is no answer, or if server and gateway have no revision in common
 */
export async function discoverServer (
  connection: RpcConnection,
  client: ClientIdentity,
  tools: ToolParamHeaders,
  version: ModernVersion,
  timeout = client.initTimeout,
  isRetry = false
): Promise<DiscoveredServer> {
  const outgoing = new OutgoingEnvelope(version, client, tools)
  // The instance id lets a gateway detect that it is its own upstream.
  const params = outgoing.ownParams('{}', { [instanceMetaKey]: JSON.stringify(instanceId) })
  const protocol = outgoing.ownHeaders('server/discover')
  try {
    const result = await connection.requestResult('server/discover', params, timeout, { protocol })
    return { identity: identityOf(result, version), outgoing }
  } catch (error) {
    if (!(error instanceof RpcError)) throw toNotModernError(error)
    const wanted = requestedVersion(error.toText())
    if (wanted === undefined || isRetry) throw new NotModernError(error.message)
    return await discoverServer(connection, client, tools, wanted, timeout, true)
  }
}

/**
 * Whether an HTTP status reports a temporary problem, independent of the server's era. 403 is not included, since some
 * proxies refuse methods that they do not know.
 */
const isOutage = (status: number | undefined): boolean =>
  status === 429 || status === 502 || status === 503 || status === 504

/** Converts an error if it means that the server does not understand the request; returns other errors unchanged. */
function toNotModernError (error: unknown): unknown {
  if (!(error instanceof UpstreamError)) return error
  const { fault, status, message } = error
  const isMisunderstood = fault === 'expired' || ((fault === 'refused' || fault === 'broken') && !isOutage(status))
  return isMisunderstood ? new NotModernError(message) : error
}

/**
 * Reads the revision that an error requests.
 * @returns undefined if it requests no modern revision
 * @throws UpstreamError if the gateway supports none of the server's revisions
 */
function requestedVersion (errorText: string): ModernVersion | undefined {
  const { data, code } = JSON.parse(errorText) as { data?: unknown, code?: unknown }
  if (code !== modernErrorCode.unsupportedVersion || !isObject(data) || !Array.isArray(data.supported)) return undefined
  const supported: readonly unknown[] = data.supported
  const wanted = supported.find(isModernVersion)
  if (wanted !== undefined || supported.some(isLegacyVersion)) return wanted
  throw unsupportedVersionError(supported)
}

const unsupportedVersionError = (versions: readonly unknown[]): UpstreamError =>
  new UpstreamError('refused', `the server speaks MCP ${JSON.stringify(versions)}, which Tool-Hub does not support`)

/** Reads a server's identity from the result of `server/discover`, a JSON text. @throws NotModernError */
function identityOf (result: string, version: ModernVersion): ServerIdentity {
  const value: unknown = JSON.parse(result)
  const { supportedVersions, capabilities, instructions } = isObject(value) ? value : {}
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(version)) {
    throw new NotModernError('it supports no revision of this era')
  }
  // Drafts of the revision had `serverInfo` outside `_meta`.
  const info =
    memberOf(memberOf(result, '_meta') ?? '{}', metaKeys.serverInfo) ?? memberOf(result, 'serverInfo') ?? '{}'
  return {
    version,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: mend(info, serverInfoShape, true).text,
    instructions: typeof instructions === 'string' ? instructions : undefined,
    identityExtra: extraIdentityMembersOf(result)
  }
}

/** Whether an error requests a revision of the legacy era. @param errorText the member `error`, as JSON text */
export function asksForLegacyVersion (errorText: string): boolean {
  const { code } = parseRpcError(errorText)
  try {
    return code === modernErrorCode.unsupportedVersion && requestedVersion(errorText) === undefined
  } catch (error) {
    if (error instanceof UpstreamError || error instanceof RpcError) return false
    throw error
  }
}
