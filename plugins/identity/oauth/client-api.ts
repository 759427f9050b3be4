import type { Static } from '@sinclair/typebox'
import type { OAuthClient } from '../../../db/ports/clients.ts'
import { type OAuthClientRecord, OAuthClientUpdate } from '../../../schemas/oauth.ts'
import { reservedNameProblem } from '../../../schemas/names.ts'
import { checkReadOnlyMembers } from '../../base/body/index.ts'
import { errors, OAuthError } from '../../base/errors/index.ts'
import { readRedirectUris, type ClientMetadata } from './client-metadata.ts'
import { allGrantTypes, manageScope, type OAuthSettings } from './settings.ts'

/** The members that an admin sends to the management API, to create or change an OAuth client. */
export type AdminClientInput = Static<typeof OAuthClientUpdate>

/** The members of a client record that an admin cannot change, but may send back. */
const readOnlyMembers = new Set(['clientId', 'clientSecret', 'origin', 'clientUri', 'createdAt', 'lastUsedAt'])
const changeableMembers = Object.keys(OAuthClientUpdate.properties)

/** A client with its newly issued secrets, if any. They are stored as hashes, so they cannot be shown again. */
export interface IssuedClient {
  readonly client: OAuthClient, readonly secret?: string, readonly registrationToken?: string
}

const timeOf = (time: number | undefined): string | undefined =>
  time === undefined || time === 0 ? undefined : new Date(time).toISOString()

/** Returns a client as the management API shows it. */
export const toShownClient = ({ client, secret }: IssuedClient): Static<typeof OAuthClientRecord> => ({
  clientId: client.clientId,
  ...(secret === undefined ? {} : { clientSecret: secret }),
  name: client.name,
  redirectUris: [...client.redirectUris],
  grants: [...client.grantTypes],
  scopes: splitScopes(client.scope),
  requireSecret: client.secretHash !== undefined,
  origin: client.origin,
  clientUri: client.clientUri,
  createdAt: timeOf(client.createdAt),
  lastUsedAt: timeOf(client.lastUsedAt)
})

/** Splits a scope string into its scopes (RFC 6749, section 3.3). */
export const splitScopes = (scope: string): string[] => scope.split(' ').filter((each) => each !== '')

/**
 * Checks that an update of a client contains a changeable member and no unknown member, and does not alter a read-only
 * member (`clientSecret` and `lastUsedAt` are ignored).
 * @throws InvalidInput
 */
export function checkClientChange (input: object, client: OAuthClient): void {
  checkReadOnlyMembers(input, toShownClient({ client }), ['clientId', 'origin', 'clientUri', 'createdAt'])
  const names = Object.keys(input)
  const unknown = names.find((name) => !changeableMembers.includes(name) && !readOnlyMembers.has(name))
  if (unknown !== undefined) {
    throw new errors.InvalidInput(
      `${JSON.stringify(unknown)} is not known; the members are ${changeableMembers.join(', ')}`
    )
  }
  if (names.some((name) => changeableMembers.includes(name))) return
  throw new errors.InvalidInput(`There is nothing to change: the members are ${changeableMembers.join(', ')}`)
}

/**
 * Checks the members that an admin sends for a client, and returns them in their stored form. Members that are not sent
 * are absent from the result: they keep their values, even if the settings no longer allow these values.
 * @param client the client to change; undefined for a new one
 * @throws InvalidInput with the member names of the management API
 */
export function readAdminClientInput (
  { name, redirectUris, grants, scopes, requireSecret }: AdminClientInput,
  settings: OAuthSettings,
  client?: OAuthClient
): Partial<ClientMetadata> {
  const hasSecret = client ? client.secretHash !== undefined : undefined
  if (requireSecret === false && settings.requireClientSecret) {
    throw new errors.InvalidInput('"requireSecret" cannot be false while oauthServer.requireClientSecret is on')
  }
  return {
    ...(name === undefined ? {} : { name: nameOf(name) }),
    ...(redirectUris === undefined ? {} : { redirectUris: urisOf(redirectUris) }),
    ...(grants === undefined ? {} : { grantTypes: grantsOf(grants) }),
    ...(scopes === undefined ? {} : { scope: scopeOf(scopes, settings, client) }),
    // The authentication method changes only if the client gets its first secret or loses its secret.
    ...(requireSecret === undefined || requireSecret === hasSecret
      ? {}
      : { tokenEndpointAuthMethod: requireSecret ? 'client_secret_basic' : 'none' })
  }
}

function nameOf (name: string): string {
  if (name.trim() === '') {
    throw new errors.InvalidInput(
      '"name" must not be blank: people see it when they are asked for consent'
    )
  }
  const problem = reservedNameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"name" ${problem}`)
  return name
}

function urisOf (uris: readonly string[]): readonly string[] {
  try {
    return readRedirectUris(uris, 'redirectUris')
  } catch (error) {
    throw error instanceof OAuthError ? new errors.InvalidInput(error.message) : error
  }
}

function grantsOf (grants: readonly string[]): readonly string[] {
  if (!grants.includes('authorization_code')) {
    throw new errors.InvalidInput(
      '"grants" must contain "authorization_code"'
    )
  }
  return allGrantTypes.filter((type) => grants.includes(type))
}

function scopeOf (
  scopes: readonly string[], { allowedScopes }: OAuthSettings, client: OAuthClient | undefined
): string {
  if (scopes.length === 0) {
    throw new errors.InvalidInput(
      '"scopes" is empty, so the client could not be used: list at least one, or omit it'
    )
  }
  const formerScopes = client?.scope.split(' ') ?? []
  for (const scope of scopes) {
    if (!allowedScopes.includes(scope) && !formerScopes.includes(scope)) {
      throw new errors.InvalidInput(`"scopes": ${JSON.stringify(scope)} is not one of ${allowedScopes.join(', ')}`)
    }
    if (scope === manageScope && client?.origin === 'registered') {
      throw new errors.InvalidInput(
        `"scopes": a client that registered itself cannot have "${manageScope}"; create one for it`
      )
    }
  }
  return [...new Set(scopes)].join(' ')
}
