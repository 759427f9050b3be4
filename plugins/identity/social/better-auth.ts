import type { BetterAuthOptions, BetterAuthPlugin } from 'better-auth'
import { APIError } from 'better-auth/api'
import { betterAuth } from 'better-auth/minimal'
import type { OAuthProvider } from 'better-auth/oauth2'
import type { CookieNames } from './settings.ts'
import { emailOf, identityHash } from './local-accounts.ts'
import type { IdentityProvider, Person } from './providers/provider.ts'

/** The account that a login enters: its name, and its mark. */
export interface Entered { readonly username: string, readonly mark: string }

interface BetterAuthDeps {
  /** The `database` option. */
  readonly database: object
  readonly secret: string
  /** The address of social login, as browsers know it. */
  readonly mount: URL
  /** Origins to which a login may lead in the end. */
  readonly trustedOrigins: readonly string[]
  readonly cookies: CookieNames
  /** How long a session lasts, in s. */
  readonly lifetime: number
  readonly providers: readonly IdentityProvider[]
  /** Enters the local account of the person whom a provider identifies, for the login in progress. */
  readonly enter: (provider: IdentityProvider, identify: () => Promise<Person>) =>
  Promise<{ person: Person, username: string }>
  /** The account that the login in progress has entered. */
  readonly entered: () => Entered
  /** Runs a step of the login in progress, whose failure is remembered. */
  readonly step: <Result>(run: () => Promise<Result>) => Promise<Result>
  readonly trim: (userId: string) => Promise<void>
  readonly log: (level: string, message: string) => void
}

/**
 * better-auth as far as it is used: sign-in by providers, sessions in the database, and sign-out. It makes no request
 * of its own, since the providers are ours, and gets no token of a provider.
 */
export function makeBetterAuth (deps: BetterAuthDeps) {
  const { cookies, database, lifetime, mount, secret, trustedOrigins } = deps
  const options = {
    appName: 'Tool-Hub',
    baseURL: mount.origin,
    basePath: mount.pathname,
    // As a list, since a variable of better-auth's own would override `secret`.
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
    // The state of a login is in a cookie, encrypted, so that logins that are begun take no place in the database.
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
          before: async (session) => ({ data: { ...session, ...deps.entered(), userAgent: null, ipAddress: null } }),
          after: async ({ userId }) => { await deps.trim(userId) }
        }
      }
    },
    // Its messages may hold what a provider or a stranger sent.
    logger: { level: 'debug', log: (level, message) => { deps.log(level, message) } }
  } satisfies BetterAuthOptions
  return betterAuth(options)
}

export type BetterAuth = ReturnType<typeof makeBetterAuth>

/** The plugin that gives better-auth our providers. */
function providersOf ({ providers, enter, step: remembered }: BetterAuthDeps): BetterAuthPlugin {
  // The library prints errors that it does not know: it gets one of its own kind, and the cause is kept.
  const step: BetterAuthDeps['step'] = async (run) => {
    try {
      return await remembered(run)
    } catch {
      throw new APIError('BAD_REQUEST')
    }
  }
  return {
    id: 'tool-hub',
    init: () => ({ context: { socialProviders: providers.map((provider) => adapt(provider, enter, step)) } })
  }
}

/** The code of a login with what belongs to it, in place of tokens: better-auth hands it on, and stores none of it. */
interface Unspent {
  readonly raw: { readonly code: string, readonly codeVerifier: string, readonly redirectUri: string }
}

/** A provider of ours as one of better-auth's. */
function adapt (
  provider: IdentityProvider, enter: BetterAuthDeps['enter'], step: BetterAuthDeps['step']
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
      ({ raw: { code, codeVerifier, redirectUri } } satisfies Unspent),
    getUserInfo: async (tokens) => await step(async () => {
      const { raw } = tokens as unknown as Unspent
      const nonce = tokens.expectedIdTokenNonce ?? ''
      const { person, username } = await enter(provider, async () => await provider.identify({ ...raw, nonce }))
      const email = emailOf(identityHash(person))
      return { user: { name: username, email, emailVerified: true }, data: person }
    })
  }
}
