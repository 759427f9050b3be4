// What the tests of the ports keep: grants, tokens, clients, consents and activities.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Activity } from '../../db/ports/activities.ts'
import type { TokenFamily, HashedToken, TokenKind } from '../../db/ports/tokens.ts'
import type { OAuthClient } from '../../db/ports/clients.ts'
import type { Consent } from '../../db/ports/consents.ts'

export const minute = 60_000
export const hour = 60 * minute
export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')
/** A hash that nothing else has. */
export const fresh = (): string => randomBytes(32).toString('hex')
/** Later than any test ends, whatever time passes in it. */
export const soon = (): number => Date.now() + 1_000 * hour
export const issued = (kind: TokenKind, more: Partial<HashedToken> = {}): HashedToken => ({
  hash: fresh(),
  kind,
  scope: 'mcp profile',
  expiresAt: soon(),
  ...more
})
export const authorization = (more: Partial<TokenFamily> = {}): TokenFamily => ({
  family: randomUUID(),
  clientId: 'client',
  username: 'ann',
  ...more
})
/** A client that an admin created, unless said otherwise. */
export const client = (more: Partial<OAuthClient> = {}): OAuthClient => ({
  clientId: randomUUID(),
  name: 'a client',
  redirectUris: ['http://127.0.0.1/callback'],
  grantTypes: ['authorization_code', 'refresh_token'],
  tokenEndpointAuthMethod: 'none',
  scope: 'mcp profile',
  origin: 'admin',
  createdAt: Date.now(),
  ...more
})
/** A client with all members. */
export const fullClient = (more: Partial<OAuthClient> = {}): OAuthClient => client({
  secretHash: fresh(),
  registrationTokenHash: fresh(),
  redirectUris: ['https://app.example.com/callback', 'com.example.app:/callback'],
  responseTypes: ['code'],
  tokenEndpointAuthMethod: 'client_secret_basic',
  clientUri: 'https://app.example.com/',
  logoUri: 'https://app.example.com/logo.png',
  policyUri: 'https://app.example.com/policy',
  tosUri: 'https://app.example.com/tos',
  contacts: ['a@example.com', 'b@example.com'],
  softwareId: 'app',
  softwareVersion: '1.0',
  applicationType: 'native',
  origin: 'registered',
  lastUsedAt: Date.now(),
  ...more
})
export const consent = (more: Partial<Consent> = {}): Consent => ({
  username: `user-${randomUUID()}`,
  clientId: randomUUID(),
  scope: 'mcp profile',
  grantedAt: Date.now(),
  ...more
})
export const activity = (more: Partial<Activity> = {}): Activity => ({
  id: randomUUID(),
  timestamp: 1_790_000_000_000,
  server: 'files',
  tool: 'read',
  duration: 12.25,
  status: 'success',
  ...more
})

/** So many at once. */
export const race = async <Result>(count: number, run: (n: number) => Promise<Result>): Promise<Result[]> =>
  await Promise.all(Array.from({ length: count }, async (_, n) => await run(n)))
export const counted = (answers: readonly string[]): Record<string, number> =>
  Object.fromEntries([...new Set(answers)].sort().map((answer) => [answer, answers.filter((each) => each === answer).length]))
