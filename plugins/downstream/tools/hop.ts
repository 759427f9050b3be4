import type { IncomingHttpHeaders } from 'node:http'
import { memberOf, withMembers } from '../../../protocol/json.ts'
import { metaKeys } from '../../../protocol/modern/envelope.ts'
import type { Snapshot } from '../../../db/store.ts'
import { withoutHeaders } from '../../../protocol/headers.ts'
import { passthroughNames } from '../../../schemas/server.ts'
import type { Principal } from '../../settings/index.ts'

/** No changes. */
const none: Readonly<Record<string, string | undefined>> = {}

/**
 * The members of a modern server's result that say how it came here, and nothing to plain HTTP callers: its type, how long it may be
 * kept, and in `_meta` who answered. As changes for `withMembers`; none for results of earlier revisions, where such members are the
 * server's own.
 */
export function ofHop (result: string): Readonly<Record<string, string | undefined>> {
  if (!result.includes('"resultType"') || memberOf(result, 'resultType') === undefined) return none
  const changes = { resultType: undefined, ttlMs: undefined, cacheScope: undefined }
  const meta = result.includes(metaKeys.serverInfo) ? memberOf(result, '_meta') : undefined
  if (meta?.startsWith('{') !== true) return changes
  const rest = withMembers(meta, { [metaKeys.serverInfo]: undefined })
  return { ...changes, _meta: rest === '{}' ? undefined : rest }
}

/** The text of a result without them; one that has none keeps its bytes. */
export function withoutHop (result: string): string {
  const changes = ofHop(result)
  return changes === none ? result : withMembers(result, changes)
}

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
