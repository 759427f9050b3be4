import { memberOf, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'

/** The members of `initialize` and `server/discover` results, in all revisions, that each hop sets for itself. */
const ownMembers = {
  protocolVersion: undefined,
  supportedVersions: undefined,
  capabilities: undefined,
  serverInfo: undefined,
  instructions: undefined,
  resultType: undefined,
  ttlMs: undefined,
  cacheScope: undefined
}

/**
 * Returns an object's text with the server's remaining members of an `initialize` or `server/discover` result,
 * including `_meta`.
 */
export function identityExtraOf (result: string): string {
  const meta = memberOf(result, '_meta')
  const ownMeta = meta?.startsWith('{') === true ? withMembers(meta, { [metaKeys.serverInfo]: undefined }) : undefined
  return withMembers(result, { ...ownMembers, _meta: ownMeta === '{}' ? undefined : ownMeta })
}
