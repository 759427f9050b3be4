import { createHash } from 'node:crypto'
import { isPlainObject } from '../schemas/unknown-members.ts'
import type { OAuthClient } from './ports/clients.ts'

/** The section of the settings with the OAuth clients. */
export const clientsSectionName = 'oauthClients'

/** An OAuth client as an entry of the settings, with MCPHub's names of grants and scopes; unknown members are kept. */
export type ClientEntry = Readonly<Record<string, unknown>>

/** The string members that have the same name in a client and in its entry. */
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
/** The members with lists of strings that have the same name in a client and in its entry. */
const listMembers = ['responseTypes', 'contacts'] as const
/**
 * The members of an entry that `parseClientEntry` reads; all others are unknown members. `clientSecret` is the secret
 * in plain text, as a person may write it into the file.
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

/** The grant types and the scopes of an entry that does not state them. */
const defaultGrants = ['authorization_code', 'refresh_token']
const defaultScope = 'mcp profile'

const cachedClients = new WeakMap<object, OAuthClient>()

/**
 * Reads the client of an entry. The result is cached by entry, since entries are immutable.
 * @returns undefined if the entry is not a valid client; the caller keeps such an entry unchanged
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

/** Converts a client to an entry. @param former the client's former entry, whose unknown members are kept */
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

/** Returns the members of an entry that `parseClientEntry` does not read. */
export const unknownClientMembers = (entry: ClientEntry): Record<string, unknown> =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => !knownMembers.has(name)))

/** Whether an entry contains its secret in plain text. */
export const hasPlainSecret = (entry: unknown): boolean => isPlainObject(entry) && isText(entry.clientSecret)

const isText = (value: unknown): value is string => typeof value === 'string'
const isTextList = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText)
const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0

/** Returns the members of an entry with these names whose values pass the test. */
function pickMembers<Name extends string, Value> (
  entry: ClientEntry,
  names: readonly Name[],
  test: (value: unknown) => value is Value
): { [name in Name]?: Value } {
  return Object.fromEntries(names.map((name) => [name, entry[name]]).filter(([, value]) => test(value)))
}

/**
 * Returns the hash of an entry's secret. A plain-text secret takes precedence over a hash, since it was added later.
 */
function secretHashOf ({ clientSecret, secretHash }: ClientEntry): string | undefined {
  if (isText(clientSecret) && clientSecret !== '') return createHash('sha256').update(clientSecret).digest('hex')
  return isText(secretHash) ? secretHash : undefined
}

/**
 * Converts an entry of MCPHub: metadata with the names of RFC 7591, and an owner that marks self-registered clients.
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
