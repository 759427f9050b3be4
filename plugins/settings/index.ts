import fp from 'fastify-plugin'
import type { SettingsOptions } from './parts.ts'

export { type Author, toBearerKeyIdentity, responsibleUsersOf, toAuthor } from './access/author.ts'
export { auditedEntities } from '../../db/audit-trail.ts'
export { listEntityNames } from '../../db/entities.ts'
export { countVisibleServers } from './access/count-servers.ts'
export type { RegisteredProvider } from './access/directory.ts'
export type { Access } from './access/index.ts'
export {
  exposedName, alternativeItemName, hasHashSuffix, canBeShownAs, prefixedName, alternativeName, mapToOwnNames, prefixOf,
  acceptedPrefixesOf, unconvertedPrefixOf
} from './access/item-names.ts'
export { bearerKeyHeaderName } from './access/key-header.ts'
export {
  type ItemKind, itemKinds, isIdentifiedByUri, type OverriddenServer, type OverrideChange, isItemEnabled,
  defaultItemMembers, overrideMembers, overrideOf, individualOverrideOf, selectsItem, unmatchedOverrideWarnings,
  withOverride
} from './access/overrides.ts'
export { chargedUserOfServer, chargedOwnerOf, isOfFormerAccount } from './access/owner.ts'
export {
  keepsStoredRights, isRestrictedConfig, notConnectedSentence, storersOf, withCurrentRights
} from './access/restricted.ts'
export {
  isMemberByLogin, teamOfKeyOwner, findSharedWithEntry, teamMembers, teamReference, teamsOf
} from './access/teams.ts'
export {
  type CredentialReference, type ItemFilter, type PresentationName, type Principal, type View, inPresentation, makeView,
  canUseMcp, hasCredential, mcpScope, routeKeyOf, withFilter
} from './access/view.ts'
export {
  type VisibleServer, canManage, canSee, findGroupByName, isAdminOwner, groupTakesPrecedence
} from './access/visibility.ts'
export type { AuditedChange } from './audit/entries.ts'
export {
  type AddressConfig, configuredBaseUrl, listeningOrigin, publicBaseUrl, findBaseUrlSetting, withBasePath
} from './base-url.ts'
export { withHashedToken } from './hashed-key.ts'
export { danglingReferenceWarnings } from './missing-names.ts'
export { OrderedEntityEntries } from './ordered-entries.ts'
export { withDefaults } from './sections.ts'
export type { Settings } from './settings.ts'
export type { SettingsOptions } from './parts.ts'

/** The settings, and the decision about which principal sees which items. */
export default fp<SettingsOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'settings-wing', dependencies: ['base'] })
