import fp from 'fastify-plugin'
import type { IdentityOptions } from './parts.ts'

export { checkScopes } from './auth/check-scopes.ts'
export type { StandingOf } from './auth/standings.ts'
export { legacyKeyIgnored, legacyKeyWarning } from './keys/legacy-key.ts'
export { withNewName, withoutNames } from './keys/scope.ts'
export { toRegistered } from './oauth/client-metadata.ts'
export { type IssuedClient, toClientRecord } from './oauth/client-statement.ts'
export { type BrowserAnswer, type BrowserRequest, type Fields, newCsrfKey } from './oauth/interactions.ts'
export { issuerPath } from './oauth/issuer.ts'
export { resourceMetadata, serverMetadata } from './oauth/metadata.ts'
export { addressTo, handOver } from './oauth/provider/hand-over.ts'
export { resourceName } from './oauth/resources.ts'
export type { Redirect } from './social/social.ts'
export { toAccount } from './users/account.ts'
export { goneAccounts, subjectOf } from './users/mark.ts'
export { defaultOwner, knownName } from './users/username.ts'
export type { FirstAdmin } from './users/users.ts'
export type { IdentityOptions } from './parts.ts'

/** Who is asking. */
export default fp<IdentityOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'identity', dependencies: ['settings-wing'] })
