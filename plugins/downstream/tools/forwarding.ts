import type { IncomingHttpHeaders } from 'node:http'
import { memberOf, withMembers } from '../../../protocol/json.ts'
import { metaKeys } from '../../../protocol/modern/envelope.ts'
import type { Snapshot } from '../../../db/store.ts'
import { withoutHeaders } from '../../../protocol/exchange.ts'
import { passthroughHeaderNames } from '../../../schemas/server.ts'
import type { Principal } from '../../settings/index.ts'

const noChanges: Readonly<Record<string, string | undefined>> = {}

/**
 * The changes for `withMembers` that remove the envelope of a modern server's result: its type, caching, and
 * `serverInfo`. Results of legacy servers are unchanged, since there such members belong to the server.
 */
export function envelopeRemoval (result: string): Readonly<Record<string, string | undefined>> {
  if (!result.includes('"resultType"') || memberOf(result, 'resultType') === undefined) return noChanges
  const changes = { resultType: undefined, ttlMs: undefined, cacheScope: undefined }
  const meta = result.includes(metaKeys.serverInfo) ? memberOf(result, '_meta') : undefined
  if (meta?.startsWith('{') !== true) return changes
  const rest = withMembers(meta, { [metaKeys.serverInfo]: undefined })
  return { ...changes, _meta: rest === '{}' ? undefined : rest }
}

/** Removes the modern envelope from a result. Other results keep their bytes. */
export function withoutEnvelope (result: string): string {
  const changes = envelopeRemoval(result)
  return changes === noChanges ? result : withMembers(result, changes)
}

/** Selects the headers of a plain HTTP caller that may be forwarded to a server. */
export type SelectHeaders = (principal: Principal, server: string, headers: IncomingHttpHeaders) => IncomingHttpHeaders

/**
 * Creates a function that removes `Authorization` if it identified the user. Bearer keys, and other credentials of the
 * gateway in any header, are removed later (`selectPassedHeaders`). Headers are not copied for a server that gets none.
 */
export const createHeaderSelector = (snapshot: () => Snapshot): SelectHeaders => ({ kind }, server, headers) => {
  const config = snapshot().servers.get(server)?.config
  if (config === undefined || passthroughHeaderNames(config).length === 0) return headers
  const isByToken = kind === 'access-token' || (kind === 'user' && headers['x-auth-token'] === undefined)
  return isByToken ? withoutHeaders(headers, ['authorization']) : headers
}
