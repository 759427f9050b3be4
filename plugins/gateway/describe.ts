import type { Client } from '../../protocol/exchange.ts'
import type { View } from '../settings/index.ts'
import type { GatewayParts } from './methods/method.ts'

/** The identity of a route, for `initialize`. */
export interface RouteIdentity {
  readonly capabilities: Record<string, unknown>
  /** As JSON text. That of a single server may lack what MCP requires of one. */
  readonly serverInfo: string
  readonly instructions: string | undefined
}

/** Announced for providers whose lists are unknown: clients never ask for a capability that was not announced at the beginning. */
const anything = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {}
}

/**
 * @param serverInfo the gateway's own, as JSON text
 * @param mayBeAway the route's only server may be one of which nothing is known: anything is announced then
 * @throws RpcError when it must not, and is
 */
export async function describe (
  { surfaces, providers, resolver }: GatewayParts,
  view: View,
  client: Client,
  serverInfo: string,
  mayBeAway: boolean
): Promise<RouteIdentity> {
  let surface = surfaces.of(view, client)
  const unknown = surface.providers.filter((name) => !surface.capabilities.has(name))
  if (unknown.length > 0) {
    await providers.learn(unknown, client, view.scope.kind === 'server')
    surface = surfaces.of(view, client)
  }
  // A client that has to log in there first learns so from its next request: its session is where it hears of the end of that.
  const waits = view.scope.kind === 'server' && providers.get(view.scope.name)?.refusal?.(client) !== undefined
  if (!waits && !mayBeAway) resolver.mustBeKnown(view, surface, client)
  // Servers that come later may have anything, so a route without any announces everything.
  const hasServers = surfaces.visible(view).some(({ server }) => server.unprefixed !== true || view.scope.kind === 'server')
  const isComplete = hasServers && surface.capabilities.size === surface.providers.length
  return {
    capabilities: isComplete ? surface.shown : { ...anything, ...surface.shown },
    serverInfo: surface.serverInfo ?? serverInfo,
    instructions: surface.instructions
  }
}
