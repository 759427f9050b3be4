import fp from 'fastify-plugin'
import type { SettingsOptions } from './parts.ts'

export { type Author, authorKey, sponsorsOf, toAuthor } from './access/author.ts'
export { auditedEntities } from '../../db/audit-trail.ts'
export { listNames } from '../../db/entities.ts'
export { countServers } from './access/count-servers.ts'
export type { Access } from './access/index.ts'
export {
  exposedName, itemOtherName, looksHashed, maybeShownAs, nameAfter, otherName, ownNames, prefixOf, prefixesOf,
  writtenPrefixOf
} from './access/item-names.ts'
export { headerOf } from './access/key-header.ts'
export {
  type ItemKind, type Overridden, type OverrideChange, isEnabled, itemDefaults, overrideMembers, overrideOf,
  ownOverrideOf, selects, unmatchedIn, withOverride
} from './access/overrides.ts'
export { chargedUser, ownerOf } from './access/owner.ts'
export { isInForce, isRestricted, storersOf, withPresentRights } from './access/restricted.ts'
export {
  type Credential, type PresentationName, type Principal, type View, inPresentation, makeView, mayRun, mcpScope, routeOf
} from './access/view.ts'
export { type VisibleServer, canManage, canSee, groupNamed, isAdmins, takesPlace } from './access/visibility.ts'
export type { Parts } from './audit/entries.ts'
export {
  type AddressConfig, configuredBase, listeningOrigin, publicBase, statedAddress, withBasePath
} from './base-url.ts'
export { withoutToken } from './hashed-key.ts'
export { namesOfNothing } from './names-of-nothing.ts'
export type { Settings } from './settings.ts'
export type { SettingsOptions } from './parts.ts'

/** The settings, and the decision which principal sees which item. */
export default fp<SettingsOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'settings-wing', dependencies: ['base'] })
