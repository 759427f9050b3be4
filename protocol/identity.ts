import { memberOf, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'

/** The members of `initialize` and `server/discover` results, of all revisions, that each hop states for itself. */
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

/** The server's own members of an `initialize` or `server/discover` result, with `_meta`, as an object's text. */
export function identityExtraOf (result: string): string {
  const meta = memberOf(result, '_meta')
  const ownMeta = meta?.startsWith('{') === true ? withMembers(meta, { [metaKeys.serverInfo]: undefined }) : undefined
  return withMembers(result, { ...ownMembers, _meta: ownMeta === '{}' ? undefined : ownMeta })
}
