import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import { headerOf } from '../auth/steps/bearer-key.ts'
import type { Principal } from '../access/view.ts'
import type { Keys } from '../keys/keys.ts'
import { passthroughNames, withoutHeaders } from '../upstream/links/passthrough.ts'

/** The headers of a caller that a server may be passed on. */
export type OwnHeaders = (principal: Principal, server: string, headers: IncomingHttpHeaders) => IncomingHttpHeaders

/**
 * A caller's headers without those that told who is asking, or may have: bearer keys, and what Authorization holds where nothing
 * else says who a user is. For a server that is passed none on they stay as they came: nobody reads them.
 */
export const ownHeaders = (keys: Keys, snapshot: () => Snapshot): OwnHeaders => ({ kind }, server, headers) => {
  const now = snapshot()
  const config = now.servers.get(server)?.config
  if (config === undefined || passthroughNames(config).length === 0) return headers
  const holdsKey = (value: unknown): boolean => typeof value === 'string' && keys.find(value.replace(/^bearer +/i, '').trim()) !== undefined
  const withheld = ['authorization', headerOf(now)].filter((name) => holdsKey(headers[name]))
  if (kind === 'user' && headers['x-auth-token'] === undefined) withheld.push('authorization')
  return withoutHeaders(headers, withheld)
}
