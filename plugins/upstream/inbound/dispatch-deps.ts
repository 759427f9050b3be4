import type { UpstreamCatalogues } from '../catalogues/catalogues.ts'
import type { Placement } from '../links/placement.ts'
import type { UpstreamListener } from '../upstream-deps.ts'
import type { DispatchDeps } from './dispatch.ts'

/**
 * Creates the dependencies that are needed to dispatch the messages of one server.
 * @param wake opens the links of slots with subscriptions
 */
export function createDispatchDeps (
  name: string,
  { broadcast, log, ...listener }: UpstreamListener,
  placement: Placement,
  catalogues: UpstreamCatalogues,
  wake: () => void
): DispatchDeps {
  const { base } = placement.pool
  return {
    ...listener,
    name,
    refresh: (slot) => {
      const listing = placement.canList(slot) ? slot : base
      catalogues.refresh(listing, listing === base)
    },
    onContested: () => {
      if (!placement.isolateClients()) return
      const consequence = 'from now on, clients that accept requests get separate connections'
      log('warn', `it sent a request while calls of several clients were in flight: ${consequence}`)
      wake()
    },
    broadcast: (slot, link, method, paramsText) => {
      broadcast(method, paramsText, (client) => link.isUsedOnlyBy(client) && placement.serves(slot, client))
    },
    onDropped: (method) => { log('debug', `${method} could not be attributed to one client and was dropped`) }
  }
}
