import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import { withoutHeaders } from '../../protocol/headers.ts'
import { passthroughNames } from '../../schemas/server.ts'
import { headerOf } from '../access/key-header.ts'
import type { Principal } from '../access/view.ts'
import type { Keys } from '../keys/keys.ts'

/** The headers of a caller that a server may be passed. */
export type OwnHeaders = (principal: Principal, server: string, headers: IncomingHttpHeaders) => IncomingHttpHeaders

/**
 * A caller's headers without those that authenticated it, or may have: bearer keys, and `Authorization` where nothing else says who a
 * user is. For a server that is passed no headers they stay as they came: nobody reads them.
 */
export const ownHeaders = (keys: Keys, snapshot: () => Snapshot): OwnHeaders => ({ kind }, server, headers) => {
  const current = snapshot()
  const config = current.servers.get(server)?.config
  if (config === undefined || passthroughNames(config).length === 0) return headers
  const holdsKey = (value: unknown): boolean =>
    typeof value === 'string' && keys.find(value.replace(/^bearer +/i, '').trim()) !== undefined
  const withheld = ['authorization', headerOf(current)].filter((name) => holdsKey(headers[name]))
  if (kind === 'access-token' || (kind === 'user' && headers['x-auth-token'] === undefined)) withheld.push('authorization')
  return withoutHeaders(headers, withheld)
}
