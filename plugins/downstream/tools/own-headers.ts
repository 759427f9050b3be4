import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../../db/store.ts'
import { withoutHeaders } from '../../../protocol/exchange.ts'
import { passthroughNames } from '../../../schemas/server.ts'
import type { Principal } from '../../settings/index.ts'

/** The headers of a caller that a server may be passed. */
export type OwnHeaders = (principal: Principal, server: string, headers: IncomingHttpHeaders) => IncomingHttpHeaders

/**
 * A caller's headers without `Authorization` where nothing else says who a user is. Credentials that begin as those of this gateway do, and
 * bearer keys, are left out later, wherever they stand (`passedOn`). For a server that is passed no headers they stay as they came: nobody
 * reads them.
 */
export const ownHeaders = (snapshot: () => Snapshot): OwnHeaders => ({ kind }, server, headers) => {
  const config = snapshot().servers.get(server)?.config
  if (config === undefined || passthroughNames(config).length === 0) return headers
  const isByToken = kind === 'access-token' || (kind === 'user' && headers['x-auth-token'] === undefined)
  return isByToken ? withoutHeaders(headers, ['authorization']) : headers
}
