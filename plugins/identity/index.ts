import fp from 'fastify-plugin'
import type { IdentityOptions } from './parts.ts'

export { identityLimits } from './limits.ts'
export { checkScopes } from './auth/rights.ts'
export { isFromHere } from './auth/steps/login-token.ts'
export type { StandingOf } from './auth/standings.ts'
export { legacyKeyIgnored, legacyKeyOf, legacyKeyOfGuest, legacyKeyWarning, legacyPeople } from './keys/legacy-key.ts'
export { withNewName, withoutNames } from './keys/state.ts'
export { toRegistered } from './oauth/client-metadata.ts'
export { type IssuedClient, toClientRecord } from './oauth/client-statement.ts'
export { type BrowserAnswer, type BrowserRequest, type Fields } from './oauth/interactions.ts'
export { newCsrfKey } from './oauth/csrf.ts'
export { issuerPath } from './oauth/identifiers.ts'
export { resourceMetadata, serverMetadata } from './oauth/settings.ts'
export { addressTo, handOver } from './oauth/provider/grants.ts'
export { resourceName } from './oauth/identifiers.ts'
export type { Redirect } from './social/social.ts'
export { goneAccounts, principalOfUser, rightsMarkOf, subjectOf, toAccount } from './users/account.ts'
export { defaultOwner, knownName } from './users/rules.ts'
export type { FirstAdmin } from './users/first-admin.ts'
export type { IdentityOptions } from './parts.ts'

/** The identification of callers: accounts, keys, tokens, logins, and the authorization server. */
export default fp<IdentityOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'identity', dependencies: ['settings-wing'] })
