import { createHash } from 'node:crypto'
import { isPlainObject } from '../schemas/unknown-members.ts'
import type { OAuthClient } from './ports/clients.ts'

/** The name of the settings section that contains the OAuth clients. */
export const clientsSectionName = 'oauthClients'

/**
 * An OAuth client as an entry of the settings. The lists of grant types and scopes have the names that MCPHub (another
 * gateway) gives them: `grants` and `scopes`. Unknown members are kept.
 */
export type ClientEntry = Readonly<Record<string, unknown>>

/** The optional string members that have the same name in an `OAuthClient` and in its entry. */
const textMembers = [
  'tokenEndpointAuthMethod',
  'clientUri',
  'logoUri',
  'policyUri',
  'tosUri',
  'softwareId',
  'softwareVersion',
  'applicationType'
] as const
/** The optional members with lists of strings that have the same name in an `OAuthClient` and in its entry. */
const listMembers = ['responseTypes', 'contacts'] as const
/**
 * The members of an entry that belong to the client; all others are unknown members. `clientSecret` is the secret in
 * plain text: a person may write it into the file, but the gateway never does.
 */
const knownMembers: ReadonlySet<string> = new Set([
  ...textMembers,
  ...listMembers,
  'clientId',
  'clientSecret',
  'secretHash',
  'registrationTokenHash',
  'name',
  'redirectUris',
  'grants',
  'scopes',
  'origin',
  'createdAt',
  'lastUsedAt'
])

/** The grant types and the scopes of a client whose entry lacks `grants` or `scopes`. */
const defaultGrants = ['authorization_code', 'refresh_token']
const defaultScope = 'mcp profile'

const cachedClients = new WeakMap<object, OAuthClient>()

/**
 * Parses an entry of the settings into an OAuth client. A client is cached by its entry, since entries are immutable.
 * @returns undefined if the entry is not a valid client; the caller then keeps the entry unchanged
 */
export function parseClientEntry (entry: unknown): OAuthClient | undefined {
  if (!isPlainObject(entry)) return undefined
  const known = cachedClients.get(entry)
  if (known !== undefined) return known
  const { clientId, registrationTokenHash, name, redirectUris = [], grants = defaultGrants, scopes } = entry
  if (!isText(clientId) || clientId === '' || !isTextList(redirectUris) || !isTextList(grants)) return undefined
  if (scopes !== undefined && !isTextList(scopes)) return undefined
  const own = entry.origin === undefined ? translateMcpHubEntry(entry) : entry
  const secretHash = secretHashOf(entry)
  const client: OAuthClient = {
    clientId,
    ...(secretHash === undefined ? {} : { secretHash }),
    ...(isText(registrationTokenHash) ? { registrationTokenHash } : {}),
    name: isText(name) ? name : clientId,
    redirectUris,
    grantTypes: grants,
    scope: scopes === undefined ? defaultScope : scopes.join(' '),
    ...pickMembers(own, textMembers, isText),
    ...pickMembers(own, listMembers, isTextList),
    origin: own.origin === 'registered' ? 'registered' : 'admin',
    createdAt: isTime(entry.createdAt) ? entry.createdAt : 0,
    ...(isTime(entry.lastUsedAt) ? { lastUsedAt: entry.lastUsedAt } : {})
  }
  cachedClients.set(entry, client)
  return client
}

/**
 * Converts an OAuth client to an entry of the settings.
 * @param former the client's former entry, whose unknown members are kept
 */
export function toClientEntry (client: OAuthClient, former: ClientEntry = {}): ClientEntry {
  const { grantTypes, scope, createdAt, lastUsedAt, ...sharedMembers } = client
  const entry = {
    ...unknownClientMembers(former),
    ...sharedMembers,
    grants: grantTypes,
    scopes: scope === '' ? [] : scope.split(' '),
    ...(createdAt === 0 ? {} : { createdAt }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt })
  }
  // The round trip removes undefined members, so that the result equals the entry as it would be read from the file.
  return JSON.parse(JSON.stringify(entry)) as ClientEntry
}

/** Returns the members of an entry that are not part of the client. */
export const unknownClientMembers = (entry: ClientEntry): Record<string, unknown> =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => !knownMembers.has(name)))

/** Whether an entry contains its secret in plain text. */
export const hasPlainSecret = (entry: unknown): boolean => isPlainObject(entry) && isText(entry.clientSecret)

const isText = (value: unknown): value is string => typeof value === 'string'
const isTextList = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText)
const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0

/** Picks the members named in `names` whose values pass the test. */
function pickMembers<Name extends string, Value> (
  entry: ClientEntry,
  names: readonly Name[],
  test: (value: unknown) => value is Value
): { [name in Name]?: Value } {
  return Object.fromEntries(names.map((name) => [name, entry[name]]).filter(([, value]) => test(value)))
}

/**
 * Returns the SHA-256 of an entry's secret, in hex; undefined if it has none. A plain-text secret takes precedence over
 * a stored hash, since a person must have added it later.
 */
function secretHashOf ({ clientSecret, secretHash }: ClientEntry): string | undefined {
  if (isText(clientSecret) && clientSecret !== '') return createHash('sha256').update(clientSecret).digest('hex')
  return isText(secretHash) ? secretHash : undefined
}

/**
 * Converts an entry that MCPHub has written: the members of its `metadata`, with names of RFC 7591, become members in
 * camel case, and `origin` is derived from its `owner`, which marks self-registered clients.
 */
function translateMcpHubEntry (entry: ClientEntry): ClientEntry {
  const metadata = isPlainObject(entry.metadata) ? entry.metadata : {}
  const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return {
    ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [camelCase(name), value])),
    ...entry,
    origin: entry.owner === 'dynamic-registration' ? 'registered' : 'admin'
  }
}
