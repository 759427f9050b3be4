import { RpcError } from '../../../protocol/errors.ts'
import type { Notification } from '../../../protocol/message.ts'
import type { Gateway } from '../../gateway/index.ts'
import type { InboundRequest } from '../endpoint.ts'
import type { ModernClientPool } from './leases.ts'
import { parseModernRequest } from './request.ts'

/** The notifications that clients send in earlier revisions, and to servers over stdio. */
const ignored: ReadonlySet<string> = new Set([
  'notifications/initialized', 'notifications/cancelled', 'notifications/progress', 'notifications/roots/list_changed'
])

/**
 * Relays a modern client's notification to the server of its route. MCP 2026-07-28 defines none over HTTP, so only
 * those of extensions are relayed. Without a valid envelope, it is ignored, as it cannot be answered.
 */
export function relayNotification (
  gateway: Gateway, leases: ModernClientPool, { view, headers, address }: InboundRequest, notification: Notification
): void {
  if (ignored.has(notification.method)) return
  try {
    const { capabilities, capabilitiesText, logLevel, method, paramsText } =
      parseModernRequest({ ...notification, kind: 'request', id: 0, idText: '0' }, headers)
    const client = leases.first(view, address, capabilities, capabilitiesText, logLevel)
    gateway.notify(view, client, method, paramsText)
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
  }
}
