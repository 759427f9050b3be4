import type { Catalogues } from '../catalogues/catalogues.ts'
import type { Placement } from '../links/placement.ts'
import type { UpstreamListener } from '../upstream-deps.ts'
import type { DispatchDeps } from './dispatch.ts'

/** Creates the callbacks that forward a server's messages to clients. @param wake opens links that clients wait for */
export function makeDispatch (
  name: string,
  { broadcast, log, ...listener }: UpstreamListener,
  placement: Placement,
  catalogues: Catalogues,
  wake: () => void
): DispatchDeps {
  const { base } = placement.pool
  return {
    ...listener,
    name,
    refresh: (slot) => {
      const from = placement.canList(slot) ? slot : base
      catalogues.refresh(from, from === base)
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
