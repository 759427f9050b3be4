import { createHash } from 'node:crypto'
import { isObject } from '../schemas/unknown-members.ts'
import type { OAuthClient } from './ports/clients.ts'

/** The name of the section of clients. */
export const clientSection = 'oauthClients'

/**
 * An OAuth client as an entry of the settings. Its grants and scopes have the member names of MCPHub; unknown members
 * are kept.
 */
export type ClientEntry = Readonly<Record<string, unknown>>

/** The text members that have the same name in a client and in its entry. */
const texts = [
  'tokenEndpointAuthMethod',
  'clientUri',
  'logoUri',
  'policyUri',
  'tosUri',
  'softwareId',
  'softwareVersion',
  'applicationType'
] as const
/** The members with lists of texts that have the same name in both. */
const lists = ['responseTypes', 'contacts'] as const
/**
 * The members of an entry that are derived from its client. `clientSecret` is a secret in plain text that a person
 * wrote.
 */
const ownMembers: ReadonlySet<string> = new Set([
  ...texts,
  ...lists,
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

/** The grants and scopes of an entry without these members. */
const defaultGrants = ['authorization_code', 'refresh_token']
const defaultScope = 'mcp profile'

const clients = new WeakMap<object, OAuthClient>()

/**
 * Reads an entry. The result is cached by entry, since entries are immutable.
 * @returns undefined: it is not a valid client; the entry is kept unchanged
 */
export function readClient (entry: unknown): OAuthClient | undefined {
  if (!isObject(entry)) return undefined
  const known = clients.get(entry)
  if (known !== undefined) return known
  const { clientId, registrationTokenHash, name, redirectUris = [], grants = defaultGrants, scopes } = entry
  if (!isText(clientId) || clientId === '' || !isTextList(redirectUris) || !isTextList(grants)) return undefined
  if (scopes !== undefined && !isTextList(scopes)) return undefined
  const own = entry.origin === undefined ? withMetadata(entry) : entry
  const secretHash = hashOf(entry)
  const client: OAuthClient = {
    clientId,
    ...(secretHash === undefined ? {} : { secretHash }),
    ...(isText(registrationTokenHash) ? { registrationTokenHash } : {}),
    name: isText(name) ? name : clientId,
    redirectUris,
    grantTypes: grants,
    scope: scopes === undefined ? defaultScope : scopes.join(' '),
    ...membersOf(own, texts, isText),
    ...membersOf(own, lists, isTextList),
    origin: own.origin === 'registered' ? 'registered' : 'admin',
    createdAt: isTime(entry.createdAt) ? entry.createdAt : 0,
    ...(isTime(entry.lastUsedAt) ? { lastUsedAt: entry.lastUsedAt } : {})
  }
  clients.set(entry, client)
  return client
}

/** Converts a client to an entry. @param former the client's former entry, whose unknown members are kept */
export function toClientEntry (client: OAuthClient, former: ClientEntry = {}): ClientEntry {
  const { grantTypes, scope, createdAt, lastUsedAt, ...same } = client
  const entry = {
    ...furtherMembers(former),
    ...same,
    grants: grantTypes,
    scopes: scope === '' ? [] : scope.split(' '),
    ...(createdAt === 0 ? {} : { createdAt }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt })
  }
  // The round trip removes undefined members, so that the result equals the entry as it would be read from the file.
  return JSON.parse(JSON.stringify(entry)) as ClientEntry
}

/** The members of an entry that are not derived from its client. */
export const furtherMembers = (entry: ClientEntry): Record<string, unknown> =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => !ownMembers.has(name)))

/** Whether an entry holds its secret in plain text. */
export const holdsSecret = (entry: unknown): boolean => isObject(entry) && isText(entry.clientSecret)

const isText = (value: unknown): value is string => typeof value === 'string'
const isTextList = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText)
const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0

/** The members with these names whose values pass the test. */
function membersOf<Name extends string, Value> (
  entry: ClientEntry,
  names: readonly Name[],
  test: (value: unknown) => value is Value
): { [name in Name]?: Value } {
  return Object.fromEntries(names.map((name) => [name, entry[name]]).filter(([, value]) => test(value)))
}

/** The hash of an entry's secret. A plain secret takes precedence over a stored hash, since somebody wrote it later. */
function hashOf ({ clientSecret, secretHash }: ClientEntry): string | undefined {
  if (isText(clientSecret) && clientSecret !== '') return createHash('sha256').update(clientSecret).digest('hex')
  return isText(secretHash) ? secretHash : undefined
}

/**
 * Translates an entry written by MCPHub: its metadata has the names of RFC 7591, and its owner shows that it is
 * self-registered.
 */
function withMetadata (entry: ClientEntry): ClientEntry {
  const metadata = isObject(entry.metadata) ? entry.metadata : {}
  const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return {
    ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [camelCase(name), value])),
    ...entry,
    origin: entry.owner === 'dynamic-registration' ? 'registered' : 'admin'
  }
}
