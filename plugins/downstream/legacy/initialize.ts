import { legacyRouteCapabilities, type ClientCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { instanceId, instanceMetaKey, selfReferenceMessage } from '../../../protocol/instance.ts'
import { isObject, parseSmallMember, withMembers } from '../../../protocol/json.ts'
import { negotiateVersion } from '../../../protocol/legacy/versions.ts'
import { isServerInfo } from '../../../protocol/lists.ts'
import type { Request } from '../../../protocol/message.ts'
import type { View } from '../../settings/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { measureCapabilities } from '../read-message.ts'
import type { SessionReservation, Session } from './session.ts'
import type { Sessions } from './sessions.ts'

/**
 * Handles `initialize` (MCP up to 2025-11-25, "Lifecycle"), which starts a session.
 * @param reservation the place of the new session; released on failure
 * @returns the session, and the JSON text of the result
 * @throws RpcError, with which the request is to be answered
 */
export async function initialize (
  gateway: Gateway,
  sessions: Sessions,
  view: View,
  { params }: Request,
  reservation: SessionReservation
): Promise<{ session: Session, result: string }> {
  const session = begin(sessions, view, params, reservation)
  try {
    const { capabilities, serverInfo, instructions, identityExtra } = await gateway.describe(view, session)
    // The session may have ended while providers connected. A listener added now would never be removed.
    if (session.hasEnded) {
      throw new RpcError(rpcCode.unavailable, 'The session ended before it was initialized', 'cancelled')
    }
    gateway.addListener(session, session)
    const info = completeServerInfo(serverInfo, view)
    const described = `"capabilities":${JSON.stringify(legacyRouteCapabilities(capabilities))},"serverInfo":${info}`
    const instructed = instructions === undefined ? '' : `,"instructions":${JSON.stringify(instructions)}`
    const rest = identityExtra === '{}' ? '}' : `,${identityExtra.slice(identityExtra.indexOf('{') + 1)}`
    return { session, result: `{"protocolVersion":${JSON.stringify(session.version)},${described}${instructed}${rest}` }
  } catch (error) {
    sessions.end(session, 'a session could not be initialized')
    throw error
  }
}

/** Returns a server's info with the name and version that legacy clients require but modern servers may omit. */
function completeServerInfo (serverInfo: string, { scope }: View): string {
  if (isServerInfo(serverInfo)) return serverInfo
  const { name, version } =
    { name: parseSmallMember(serverInfo, 'name'), version: parseSmallMember(serverInfo, 'version') }
  return withMembers(serverInfo, {
    name: JSON.stringify(typeof name === 'string' ? name : scope.kind === 'server' ? scope.name : 'tool-hub'),
    version: JSON.stringify(typeof version === 'string' ? version : 'unknown')
  })
}

function begin (
  sessions: Sessions,
  view: View,
  { protocolVersion, capabilities, _meta }: Request['params'],
  reservation: SessionReservation
): Session {
  try {
    if (typeof protocolVersion !== 'string') {
      throw new RpcError(rpcCode.invalidParams, 'Invalid params: "protocolVersion" must be a string')
    }
    if (isObject(_meta) && _meta[instanceMetaKey] === instanceId) {
      throw new RpcError(rpcCode.invalidRequest, selfReferenceMessage)
    }
    return sessions.begin(view, negotiateVersion(protocolVersion), declaredCapabilities(capabilities), reservation)
  } catch (error) {
    reservation.release()
    throw error
  }
}

/**
 * Reads the `capabilities` of an `initialize` request.
 * @throws RpcError -32602 beyond `downstreamLimits.capabilities`
 */
function declaredCapabilities (capabilities: unknown): ClientCapabilities {
  if (!isObject(capabilities)) return {}
  measureCapabilities(JSON.stringify(capabilities), 'capabilities')
  return capabilities
}
