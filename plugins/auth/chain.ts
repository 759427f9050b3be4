import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import type { Principal } from '../access/view.ts'

/** The class of routes that is asked for: a credential may be good on one and not on another. `open`: credentials are optional. */
export type RouteClass = 'api' | 'mcp' | 'open'

/** The parts of a request that may carry credentials. */
export interface Credentials { headers: IncomingHttpHeaders, query: Readonly<Record<string, unknown>> }

/** Undefined: no identity. A promise only where something must be waited for: most steps answer at once. */
export type Identified = Principal | undefined | Promise<Principal | undefined>

/**
 * One way to identify the caller. Answers undefined for a credential that is not its own, not valid, or not acceptable on this class of
 * routes: the chain goes on. @throws StorageAway when it cannot tell: that is no "undefined"
 */
export type Step = (credentials: Credentials, routes: RouteClass, snapshot: Snapshot) => Identified

/** The identity that the first matching step gives (SPEC, "Authentication"; DECISIONS §3). */
export function identify (chain: readonly Step[], credentials: Credentials, routes: RouteClass, snapshot: Snapshot): Identified {
  for (const [at, step] of chain.entries()) {
    const found = step(credentials, routes, snapshot)
    if (found instanceof Promise) {
      return found.then((principal) => principal ?? identify(chain.slice(at + 1), credentials, routes, snapshot))
    }
    if (found) return found
  }
  return undefined
}
