import fp from 'fastify-plugin'
import type { IdentityOptions } from './parts.ts'

export { identityLimits } from './limits.ts'
export { checkScopes } from './auth/rights.ts'
export { isLocalRequest } from './auth/steps/local-credential.ts'
export type { FindCurrentPrincipal } from './auth/access-changes.ts'
export {
  legacyKeyIgnoredWarning, convertLegacyKey, guestLegacyKeyWarning, legacyKeyConvertedWarning, legacyKeyOwnerAndCreator
} from './keys/legacy-key.ts'
export { changesForKeyScopeRename, changesForKeyScopeRemoval } from './keys/scope-changes.ts'
export { toClientInformation } from './oauth/client-metadata.ts'
export { type IssuedClient, toShownClient } from './oauth/client-api.ts'
export { type BrowserResponse, type BrowserRequest, type FormFields } from './oauth/interactions.ts'
export { newCsrfKey } from './oauth/csrf.ts'
export { issuerPath } from './oauth/identifiers.ts'
export { protectedResourceMetadata, authorizationServerMetadata } from './oauth/settings.ts'
export { rewriteToIssuerAddress, passToProvider } from './oauth/provider/requests.ts'
export { resourcePathAsSent } from './oauth/identifiers.ts'
export type { BrowserRedirect } from './social/social.ts'
export {
  removedAccountNames, principalOfUser, rightsMarkOf, accountSubjectOf, toAccountRecord
} from './users/account.ts'
export { consequencesOf } from './users/consequences.ts'
export { defaultOwner, storedUsernameOf } from './users/rules.ts'
export type { FirstAdmin } from './users/first-admin.ts'
export type { IdentityOptions } from './parts.ts'

/** The plugins that identify callers: accounts, teams, keys, tokens, logins, and the authorization server. */
export default fp<IdentityOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'identity', dependencies: ['settings-wing'] })
