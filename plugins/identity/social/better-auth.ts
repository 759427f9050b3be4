import type { BetterAuthOptions, BetterAuthPlugin } from 'better-auth'
import { APIError } from 'better-auth/api'
import { betterAuth } from 'better-auth/minimal'
import type { OAuthProvider } from 'better-auth/oauth2'
import type { CookieSettings } from './settings.ts'
import { syntheticEmailOf, identityHash } from './local-accounts.ts'
import type { IdentityProvider, Person } from './providers/provider.ts'

/** The local account to which a social login leads: its username, and its mark (`accountMarkOf`). */
export interface LoginAccount { readonly username: string, readonly mark: string }

interface BetterAuthDeps {
  /** The `database` option of better-auth. */
  readonly database: object
  readonly secret: string
  /** The public URL below which browsers reach the routes of social login. */
  readonly mountUrl: URL
  /** Origins to which a login may finally redirect. */
  readonly trustedOrigins: readonly string[]
  readonly cookies: CookieSettings
  /** Lifetime of a session, in seconds. */
  readonly lifetime: number
  readonly providers: readonly IdentityProvider[]
  /** Runs `identify` in the login in progress, and finds or creates the local account of the person it returns. */
  readonly resolveAccount: (provider: IdentityProvider, identify: () => Promise<Person>) =>
  Promise<{ person: Person, username: string }>
  /** Returns the account that `resolveAccount` has found in the login in progress. */
  readonly resolvedAccount: () => LoginAccount
  /** Runs a step of the login in progress. If the step fails, records the error, and throws it. */
  readonly runStep: <Result>(run: () => Promise<Result>) => Promise<Result>
  /** Ends the oldest sessions of a user beyond the max number. */
  readonly trimSessions: (userId: string) => Promise<void>
  readonly log: (level: string, message: string) => void
}

/**
 * Creates a better-auth instance that is limited to sign-in by providers, sessions in the database, and sign-out.
 * The instance makes no requests and never receives a provider's tokens, since the providers are our own classes.
 */
export function createBetterAuth (deps: BetterAuthDeps) {
  const { cookies, database, lifetime, mountUrl: mount, secret, trustedOrigins } = deps
  const options = {
    appName: 'Tool-Hub',
    baseURL: mount.origin,
    basePath: mount.pathname,
    // Passed as a list, since an environment variable of better-auth would override `secret`.
    secrets: [{ version: 1, value: secret }],
    database: database as NonNullable<BetterAuthOptions['database']>,
    emailAndPassword: { enabled: false },
    trustedOrigins: [...trustedOrigins],
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    plugins: [providersOf(deps)],
    session: {
      expiresIn: lifetime,
      disableSessionRefresh: true,
      cookieCache: { enabled: false },
      additionalFields: { username: { type: 'string', input: false }, mark: { type: 'string', input: false } }
    },
    // The state of a login is kept in an encrypted cookie, so that unfinished logins take no space in the database.
    account: { storeStateStrategy: 'cookie', updateAccountOnSignIn: false },
    onAPIError: { errorURL: `${mount.href}/error` },
    advanced: {
      useSecureCookies: false,
      ipAddress: { disableIpTracking: true },
      disableOriginCheck: false,
      defaultCookieAttributes: { httpOnly: true, sameSite: 'lax', secure: cookies.isSecure, path: cookies.path },
      cookies: { session_token: { name: cookies.session }, oauth_state: { name: cookies.state } }
    },
    databaseHooks: {
      session: {
        create: {
          before: async (session) =>
            ({ data: { ...session, ...deps.resolvedAccount(), userAgent: null, ipAddress: null } }),
          after: async ({ userId }) => { await deps.trimSessions(userId) }
        }
      }
    },
    // The library's messages may contain untrusted text, so `log` writes them only at the level debug.
    logger: { level: 'debug', log: (level, message) => { deps.log(level, message) } }
  } satisfies BetterAuthOptions
  return betterAuth(options)
}

export type BetterAuth = ReturnType<typeof createBetterAuth>

function providersOf ({ providers, resolveAccount, runStep }: BetterAuthDeps): BetterAuthPlugin {
  // The library prints errors of unknown classes, so it gets an APIError; `runStep` has recorded the cause.
  const step: BetterAuthDeps['runStep'] = async (run) => {
    try {
      return await runStep(run)
    } catch {
      throw new APIError('BAD_REQUEST')
    }
  }
  return {
    id: 'tool-hub',
    init: () => ({ context: { socialProviders: providers.map((provider) => adapt(provider, resolveAccount, step)) } })
  }
}

/**
 * The authorization code of a login, with the parameters of its redemption. better-auth passes it on in place of
 * tokens, and does not store it.
 */
interface UnredeemedCode {
  readonly raw: { readonly code: string, readonly codeVerifier: string, readonly redirectUri: string }
}

/** Wraps a provider of this gateway as a better-auth provider. */
function adapt (
  provider: IdentityProvider, resolveAccount: BetterAuthDeps['resolveAccount'], step: BetterAuthDeps['runStep']
): OAuthProvider<Person> {
  return {
    id: provider.id,
    name: provider.name,
    requiresIdTokenNonce: true,
    accountSubject: ({ profile }) => identityHash(profile),
    createAuthorizationURL: async ({ state, codeVerifier, redirectURI, idTokenNonce = '' }) =>
      await step(async () =>
        await provider.authorizationUrl({ state, codeVerifier, redirectUri: redirectURI, nonce: idTokenNonce })),
    validateAuthorizationCode: async ({ code, codeVerifier = '', redirectURI: redirectUri }) =>
      ({ raw: { code, codeVerifier, redirectUri } } satisfies UnredeemedCode),
    getUserInfo: async (tokens) => await step(async () => {
      const { raw } = tokens as unknown as UnredeemedCode
      const nonce = tokens.expectedIdTokenNonce ?? ''
      const { person, username } =
        await resolveAccount(provider, async () => await provider.identify({ ...raw, nonce }))
      const email = syntheticEmailOf(identityHash(person))
      return { user: { name: username, email, emailVerified: true }, data: person }
    })
  }
}
