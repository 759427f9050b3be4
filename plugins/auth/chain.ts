import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import type { Principal } from '../access/view.ts'

/** Which class of routes is asked for: a credential may be good on one and not on another. `open`: credentials are optional. */
export type RouteClass = 'api' | 'mcp' | 'open'

/** What a request carries that may tell who is asking. */
export interface Credentials { headers: IncomingHttpHeaders, query: Readonly<Record<string, unknown>> }

/** One way to know who is asking: an identity, or undefined for "not mine", or not acceptable on this class of routes. */
export type Step = (credentials: Credentials, routes: RouteClass, snapshot: Snapshot) => Principal | undefined

/** The first identity that a step knows (SPEC, "Authentication"; DECISIONS §3). */
export function identify (chain: readonly Step[], credentials: Credentials, routes: RouteClass, snapshot: Snapshot): Principal | undefined {
  for (const step of chain) {
    const principal = step(credentials, routes, snapshot)
    if (principal) return principal
  }
  return undefined
}
