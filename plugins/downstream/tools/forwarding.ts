import type { IncomingHttpHeaders } from 'node:http'
import { memberOf, withMembers } from '../../../protocol/json.ts'
import { metaKeys } from '../../../protocol/modern/envelope.ts'
import type { Snapshot } from '../../../db/store.ts'
import { omitHeaders } from '../../../protocol/exchange.ts'
import { passthroughHeaderNames } from '../../../schemas/server.ts'
import type { Principal } from '../../settings/index.ts'

const noChanges: Readonly<Record<string, string | undefined>> = {}

/**
 * Returns the changes for `withMembers` that remove the envelope of a modern server's result: `resultType`, caching,
 * and `serverInfo`. There are no changes for results of legacy servers, where such members have no special meaning.
 */
export function resultEnvelopeRemovalChanges (result: string): Readonly<Record<string, string | undefined>> {
  if (!result.includes('"resultType"') || memberOf(result, 'resultType') === undefined) return noChanges
  const changes = { resultType: undefined, ttlMs: undefined, cacheScope: undefined }
  const meta = result.includes(metaKeys.serverInfo) ? memberOf(result, '_meta') : undefined
  if (meta?.startsWith('{') !== true) return changes
  const rest = withMembers(meta, { [metaKeys.serverInfo]: undefined })
  return { ...changes, _meta: rest === '{}' ? undefined : rest }
}

/** Removes the envelope from the result of a modern server. Results of legacy servers keep their bytes. */
export function withoutResultEnvelope (result: string): string {
  const changes = resultEnvelopeRemovalChanges(result)
  return changes === noChanges ? result : withMembers(result, changes)
}

/** Selects the headers of a plain HTTP caller that may be forwarded to a server. */
export type SelectHeaders = (principal: Principal, server: string, headers: IncomingHttpHeaders) => IncomingHttpHeaders

/**
 * Creates a function that removes `Authorization` if that header identified the caller. Bearer keys, and other
 * credentials of the gateway in any header, are removed later (`selectPassedHeaders`). For a server to which no headers
 * are forwarded, the headers are returned as they are, since copying takes time.
 */
export const createHeaderSelector = (snapshot: () => Snapshot): SelectHeaders => ({ kind }, server, headers) => {
  const config = snapshot().servers.get(server)?.config
  if (config === undefined || passthroughHeaderNames(config).length === 0) return headers
  const isByToken = kind === 'access-token' || (kind === 'user' && headers['x-auth-token'] === undefined)
  return isByToken ? omitHeaders(headers, ['authorization']) : headers
}
