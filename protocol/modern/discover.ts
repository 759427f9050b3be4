import { RpcError, UpstreamError } from '../errors.ts'
import { instance, instanceKey } from '../instance.ts'
import { isObject, memberOf } from '../json.ts'
import { isLegacyVersion } from '../legacy/versions.ts'
import { serverInfo } from '../mended-members.ts'
import { mend } from '../mending.ts'
import { toRpcError } from '../message.ts'
import type { Peer } from '../peer.ts'
import type { ClientIdentity, ServerIdentity } from '../upstream-session.ts'
import { isModernVersion, metaKeys, modernCode, type ModernVersion } from './envelope.ts'
import { Outgoing } from './outgoing.ts'
import type { ToolHeaders } from './param-headers.ts'

/** A server of the modern era, and how it is spoken to. */
export interface DiscoveredServer { readonly identity: ServerIdentity, readonly outgoing: Outgoing }

/** The server does not speak the modern era, or says so by not understanding it. */
export class NotModern extends Error {
  override readonly name = 'NotModern'
}

/**
 * Asks a server what it is, by `server/discover` (MCP 2026-07-28, "Discovery"). Where the server wants another revision
 * that is known here, it is asked again in that one.
 * @throws NotModern; UpstreamError when it cannot be told, or when the server speaks only revisions that are not known
 * here
 */
export async function discoverServer (
  peer: Peer,
  client: ClientIdentity,
  tools: ToolHeaders,
  version: ModernVersion,
  isAgain = false
): Promise<DiscoveredServer> {
  const outgoing = new Outgoing(version, client, tools)
  // By the instance, a gateway notices that it is configured as its own upstream.
  const params = outgoing.ownParams('{}', { [instanceKey]: JSON.stringify(instance) })
  const { resultText, errorText } = await peer.request(
    'server/discover',
    params,
    undefined,
    undefined,
    undefined,
    outgoing.ownHeaders('server/discover')
  ).catch((error: unknown) => { throw unlessMisunderstood(error) })
  if (errorText !== undefined) {
    const wanted = versionWanted(errorText)
    if (wanted === undefined || isAgain) throw new NotModern(toRpcError(errorText).message)
    return await discoverServer(peer, client, tools, wanted, true)
  }
  return { identity: identityOf(resultText ?? '{}', version), outgoing }
}

/** The HTTP statuses of a server that cannot be reached properly now: they say nothing of its era. */
const isOutage = (status: number | undefined): boolean =>
  status === 403 || status === 429 || status === 502 || status === 503 || status === 504

/** A failure to get an answer that says "not this way". */
function unlessMisunderstood (error: unknown): unknown {
  if (!(error instanceof UpstreamError)) return error
  const { fault, status, message } = error
  const isMisunderstood = fault === 'expired' || ((fault === 'refused' || fault === 'broken') && !isOutage(status))
  return isMisunderstood ? new NotModern(message) : error
}

/**
 * The revision that an error asks for.
 * @returns undefined: none of the modern era
 * @throws UpstreamError when none of them is known here
 */
function versionWanted (errorText: string): ModernVersion | undefined {
  const { data, code } = JSON.parse(errorText) as { data?: unknown, code?: unknown }
  if (code !== modernCode.unsupportedVersion || !isObject(data) || !Array.isArray(data.supported)) return undefined
  const supported: readonly unknown[] = data.supported
  const wanted = supported.find(isModernVersion)
  if (wanted !== undefined || supported.some(isLegacyVersion)) return wanted
  throw notSupported(supported)
}

const notSupported = (versions: readonly unknown[]): UpstreamError =>
  new UpstreamError('refused', `the server speaks MCP ${JSON.stringify(versions)}, which Tool-Hub does not support`)

/** @param result of `server/discover`, as text @throws NotModern */
function identityOf (result: string, version: ModernVersion): ServerIdentity {
  const value: unknown = JSON.parse(result)
  const { supportedVersions, capabilities, instructions } = isObject(value) ? value : {}
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(version)) {
    throw new NotModern('it offers no revision of this era')
  }
  // It stood beside the other members in drafts of the revision.
  const info =
    memberOf(memberOf(result, '_meta') ?? '{}', metaKeys.serverInfo) ?? memberOf(result, 'serverInfo') ?? '{}'
  return {
    version,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: mend(info, serverInfo, true).text,
    instructions: typeof instructions === 'string' ? instructions : undefined
  }
}

/** True for an error that asks for a revision before the modern era. @param errorText the text of `error` */
export function asksForLegacy (errorText: string): boolean {
  const { code } = toRpcError(errorText)
  try {
    return code === modernCode.unsupportedVersion && versionWanted(errorText) === undefined
  } catch (error) {
    if (error instanceof UpstreamError || error instanceof RpcError) return false
    throw error
  }
}
