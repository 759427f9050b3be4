import { memberOf, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'

/** The members of `initialize` and `server/discover` results that the gateway sets itself, in all revisions. */
const hopMembers = {
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
 * Returns the members of a server's `initialize` or `server/discover` result that the gateway does not set itself
 * (`_meta` and unknown ones), as the text of an object.
 */
export function extraIdentityMembersOf (result: string): string {
  const meta = memberOf(result, '_meta')
  const ownMeta = meta?.startsWith('{') === true ? withMembers(meta, { [metaKeys.serverInfo]: undefined }) : undefined
  return withMembers(result, { ...hopMembers, _meta: ownMeta === '{}' ? undefined : ownMeta })
}
