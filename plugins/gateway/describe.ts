import type { Client } from '../../protocol/exchange.ts'
import type { View } from '../settings/index.ts'
import type { GatewayParts } from './methods/method.ts'

/** What a route states in the results of `initialize` and `server/discover`. */
export interface RouteIdentity {
  readonly capabilities: Record<string, unknown>
  /** The `serverInfo` as JSON text. On the route of a single server, it is the server's, and may be incomplete. */
  readonly serverInfo: string
  readonly instructions: string | undefined
  /** Other members of a single server's `initialize` or `server/discover` result, as JSON; `{}` for other routes. */
  readonly identityExtra: string
}

/** Announced while a provider's lists are unknown: clients do not use a capability that was not announced. */
const allCapabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {}
}

/**
 * Describes a route. Waits, for a limited time, for providers whose lists are unknown.
 * @param serverInfo the gateway's own, as JSON text
 * @param mayBeUnavailable whether to announce all capabilities for a single server about which nothing is known
 * @throws RpcError -32001 if nothing is known about the only server, unless `mayBeUnavailable`
 */
export async function describeRoute (
  { surfaces, providers, resolver }: GatewayParts,
  view: View,
  client: Client,
  serverInfo: string,
  mayBeUnavailable: boolean
): Promise<RouteIdentity> {
  let surface = surfaces.of(view, client)
  const unknown = surface.providers.filter((name) => !surface.capabilities.has(name))
  if (unknown.length > 0) {
    await providers.waitForLists(unknown, client, view.scope.kind === 'server')
    surface = surfaces.of(view, client)
  }
  // A client without a login at the server needs a session, over which it is told to log in, and later notified.
  const needsLogin = view.scope.kind === 'server' && providers.get(view.scope.name)?.refusal?.(client) !== undefined
  if (!needsLogin && !mayBeUnavailable) resolver.requireCatalogue(view, surface, client)
  // A route without servers announces everything, since servers added later may have any capability.
  const hasServers =
    surfaces.visible(view).some(({ server }) => server.unprefixed !== true || view.scope.kind === 'server')
  const isComplete = hasServers && surface.capabilities.size === surface.providers.length
  return {
    capabilities: isComplete ? surface.announced : { ...allCapabilities, ...surface.announced },
    serverInfo: surface.serverInfo ?? serverInfo,
    instructions: surface.instructions,
    identityExtra: surface.identityExtra
  }
}
