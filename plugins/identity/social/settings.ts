import type { IncomingHttpHeaders } from 'node:http'
import { Value } from '@sinclair/typebox/value'
import { parseIfJson } from '../../../protocol/json.ts'
import { quotedValue } from '../../../schemas/read-env.ts'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { SocialConfig, type socialVariableNames } from '../../../schemas/social.ts'
import type { SharedEnv } from '../../base/config/index.ts'
import { identityLimits } from '../limits.ts'

/** The client id and secret that a provider has issued to this gateway. */
export interface ClientCredentials { readonly clientId: string, readonly clientSecret: string }

export interface OidcSettings extends ClientCredentials {
  readonly id: string
  readonly discoveryUrl: string
  readonly scopes: readonly string[]
  readonly pkce: boolean
  readonly prompt?: string
  readonly groupsClaim?: string
}

/** The configuration of social login, fixed until the next start. */
export interface SocialSettings {
  /** Why social login is disabled, as a clause; undefined if it is enabled. */
  readonly offReason?: string
  /** Sentences for the operator about settings that have no effect. */
  readonly warnings: readonly string[]
  /** The path of social login, below the base path. */
  readonly path: string
  /** The public address of social login; undefined if it is the public address of the gateway. */
  readonly url?: string
  /** The origins to which a login may redirect; undefined if none are configured, so that defaults apply. */
  readonly trustedOrigins?: readonly string[]
  readonly codehost?: ClientCredentials
  readonly idp?: ClientCredentials
  readonly oidc?: OidcSettings
}

const defaultPath = '/api/auth/better'
const defaultScopes = ['openid', 'profile', 'email']

type SocialEnv = Pick<SharedEnv, typeof socialVariableNames[number]>

/**
 * Reads the settings from the environment, otherwise from `systemConfig.auth.betterAuth`, otherwise from the defaults.
 * Credentials come only from the environment.
 * @param hasDatabase whether the settings are in a database, which social login requires
 * @throws Error naming the invalid variable or member
 */
export function readSocialSettings (env: SocialEnv, system: SystemConfig, hasDatabase: boolean): SocialSettings {
  const stored = storedConfig(system)
  const warnings: string[] = []
  const path = (env.SOCIAL_AUTH_BASE_PATH ?? stored.basePath ?? defaultPath).replace(/\/$/, '')
  const origins = env.SOCIAL_AUTH_TRUSTED_ORIGINS ?? stored.trustedOrigins
  const common = {
    warnings,
    path,
    url: env.SOCIAL_AUTH_URL ?? stored.url,
    trustedOrigins: origins === undefined ? undefined : parseOrigins(origins)
  }
  const providers = providersOf(env, stored, warnings)
  const isAny = Object.keys(providers).length > 0
  if (!(env.SOCIAL_AUTH_ENABLED ?? stored.enabled ?? true)) {
    return {
      ...common,
      offReason: 'it is turned off (SOCIAL_AUTH_ENABLED)'
    }
  }
  if (!hasDatabase) {
    const off = 'it requires a database: set DB_URL'
    if (isAny || env.SOCIAL_AUTH_ENABLED === true) warnings.push(`Social login is configured, but ${off}`)
    return { ...common, offReason: off }
  }
  if (!isAny) {
    const off = 'no provider is enabled with its credentials'
    if (env.SOCIAL_AUTH_ENABLED === true) {
      warnings.push(`Social login is off, although SOCIAL_AUTH_ENABLED is set: ${off}`)
    }
    return { ...common, offReason: off }
  }
  return { ...common, ...providers }
}

/** Returns `systemConfig.auth.betterAuth`. @throws Error naming an invalid member */
function storedConfig ({ auth }: SystemConfig): SocialConfig {
  const stored: unknown = typeof auth === 'object' && auth !== null && 'betterAuth' in auth ? auth.betterAuth : {}
  const [problem] = Value.Errors(SocialConfig, stored)
  if (problem) {
    throw new Error(`systemConfig.auth.betterAuth${problem.path.replaceAll('/', '.')} cannot be ` +
      `${JSON.stringify(problem.value)}: ${problem.message}. Correct it in the settings file or the database.`)
  }
  return stored as SocialConfig
}

function providersOf (
  env: SocialEnv,
  { providers = {} }: SocialConfig,
  warnings: string[]
): Pick<SocialSettings, 'codehost' | 'idp' | 'oidc'> {
  const { codehost, idp, oidc } = providers
  /**
   * Returns the credentials of a provider; undefined if the provider is disabled or a required value is missing. Adds a
   * warning about missing values if the provider is explicitly enabled, or if some of the values are set.
   * @param more further required values, by the names of their variables
   */
  const credentialsOf = (
    name: 'CODEHOST' | 'IDP' | 'OIDC',
    stored: boolean | undefined,
    more: Readonly<Record<string, string | undefined>> = {}
  ): ClientCredentials | undefined => {
    const [clientId, clientSecret] = [env[`${name}_CLIENT_ID`], env[`${name}_CLIENT_SECRET`]]
    const isEnabled = env[`SOCIAL_AUTH_${name}_ENABLED`] ?? stored
    if (isEnabled === false) return undefined
    const needed = { [`${name}_CLIENT_ID`]: clientId, [`${name}_CLIENT_SECRET`]: clientSecret, ...more }
    const missing = Object.entries(needed).filter(([, value]) => value === undefined).map(([variable]) => variable)
    if (missing.length === 0 && clientId !== undefined && clientSecret !== undefined) return { clientId, clientSecret }
    // A provider for which nothing is set is not meant to be enabled.
    if (isEnabled === true || missing.length < Object.keys(needed).length) {
      warnings.push(
        `Social login by ${name} is off: ${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not set`
      )
    }
    return undefined
  }
  const discoveryUrl = env.SOCIAL_AUTH_OIDC_DISCOVERY_URL ?? env.OIDC_DISCOVERY_URL ?? oidc?.discoveryUrl
  const [byCodehost, byIdp] = [credentialsOf('CODEHOST', codehost?.enabled), credentialsOf('IDP', idp?.enabled)]
  const byOidc = credentialsOf('OIDC', oidc?.enabled, { SOCIAL_AUTH_OIDC_DISCOVERY_URL: discoveryUrl })
  return {
    ...(byCodehost ? { codehost: byCodehost } : {}),
    ...(byIdp ? { idp: byIdp } : {}),
    ...(byOidc && discoveryUrl !== undefined ? { oidc: { ...byOidc, ...oidcSettings(env, oidc, discoveryUrl) } } : {})
  }
}

type StoredOidc = NonNullable<SocialConfig['providers']>['oidc']

/** Reads the settings of the OpenID Connect provider. @throws Error naming an invalid variable */
function oidcSettings (
  env: SocialEnv, stored: StoredOidc, discoveryUrl: string
): Omit<OidcSettings, keyof ClientCredentials> {
  const id = env.SOCIAL_AUTH_OIDC_PROVIDER_ID ?? stored?.providerId ?? 'oidc'
  if (id === 'codehost' || id === 'idp') {
    throw new Error(`SOCIAL_AUTH_OIDC_PROVIDER_ID cannot be ${JSON.stringify(id)}, the name of another provider.`)
  }
  if (!/^https?:\/\/\S+$/.test(discoveryUrl) || !URL.canParse(discoveryUrl)) {
    throw new Error(
      `SOCIAL_AUTH_OIDC_DISCOVERY_URL cannot be ${quotedValue(discoveryUrl)}: ` +
      'expected an address such as "https://id.example.com/.well-known/openid-configuration".'
    )
  }
  const scopes = env.SOCIAL_AUTH_OIDC_SCOPES ?? stored?.scopes ?? defaultScopes
  const listed = (typeof scopes === 'string' ? scopes.split(/[\s,]+/) : scopes).filter((scope) => scope !== '')
  const prompt = env.SOCIAL_AUTH_OIDC_PROMPT ?? stored?.prompt
  const groupsClaim = env.SOCIAL_AUTH_OIDC_GROUPS_CLAIM ?? stored?.groupsClaim
  return {
    id,
    discoveryUrl,
    // Without the scope `openid`, the provider issues no ID token.
    scopes: listed.includes('openid') ? listed : ['openid', ...listed],
    pkce: env.SOCIAL_AUTH_OIDC_PKCE ?? stored?.pkce ?? true,
    ...(prompt === undefined ? {} : { prompt }),
    ...(groupsClaim === undefined ? {} : { groupsClaim })
  }
}

/** Returns the origin of a URL; undefined for an invalid URL, and for a scheme without origins, such as `data:`. */
export function originOf (address: string | undefined): string | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined
  const { origin } = new URL(address)
  return origin === 'null' ? undefined : origin
}

/**
 * Parses origins, given as a list, as the text of a JSON array, or as text with commas or white space between them.
 * @throws Error naming the first entry that is not an origin
 */
export function parseOrigins (input: string | readonly string[]): string[] {
  const entries = typeof input === 'string' ? splitOrigins(input) : input
  return entries.filter((each) => each !== '').map((each) => {
    const origin = originOf(each)
    if (origin === undefined || !/^https?:\/\/[^/\\?#@*\s]+\/?$/i.test(each)) {
      throw new Error(
        `SOCIAL_AUTH_TRUSTED_ORIGINS cannot contain ${quotedValue(each)}: expected origins such as ` +
        '"https://app.example.com", without a path.'
      )
    }
    return origin
  })
}

function splitOrigins (text: string): readonly string[] {
  if (!text.trimStart().startsWith('[')) return text.split(/[\s,]+/)
  const list = parseIfJson(text)
  if (Array.isArray(list) && list.every((each) => typeof each === 'string')) return list as string[]
  throw new Error('SOCIAL_AUTH_TRUSTED_ORIGINS looks like a JSON array, but is not an array of strings.')
}

/**
 * Returns the target to which the browser is redirected after a login; undefined if it is neither a path on this
 * gateway nor an address of a trusted origin.
 */
export function allowedRedirectTarget (target: string, isTrusted: (origin: string) => boolean): string | undefined {
  // Browsers read a backslash as a slash, and remove tabs and line breaks.
  if (/[\s\\]|\p{Cc}/u.test(target)) return undefined
  if (target.startsWith('/')) return target.startsWith('//') ? undefined : target
  const origin = originOf(target)
  return origin !== undefined && /^https?:/i.test(target) && isTrusted(origin) ? target : undefined
}

/** The names and attributes of the cookies of social login. `session`, `state`: names of cookies. */
export interface CookieSettings {
  readonly session: string
  readonly state: string
  readonly path: string
  readonly isSecure: boolean
}

const sessionCookie = 'tool-hub-social'
const stateCookie = 'tool-hub-social-state'

/**
 * Returns the names and attributes of the cookies for a public address. With https, the names get the prefix `__Host-`
 * if the address has no path, so that no other host of the domain can set the cookies, otherwise `__Secure-`.
 * @param base the public address with the base path
 */
export function cookieSettingsFor (base: string): CookieSettings {
  const { protocol, pathname } = new URL(base)
  const path = pathname.replace(/\/$/, '') || '/'
  const isSecure = protocol === 'https:'
  const prefix = !isSecure ? '' : path === '/' ? '__Host-' : '__Secure-'
  return { session: `${prefix}${sessionCookie}`, state: `${prefix}${stateCookie}`, path, isSecure }
}

/** Whether a request may have a session cookie of social login: a quick check, without parsing the cookies. */
export const mayHaveSessionCookie = ({ cookie }: IncomingHttpHeaders): boolean =>
  cookie !== undefined && cookie.length <= identityLimits.social.cookies && cookie.includes(`${sessionCookie}=`)

/**
 * Returns the value of a `Cookie` header with only the cookies of these names. A cookie that is sent twice is left out.
 * If the header is too long, returns `''`.
 */
export function pickCookies ({ cookie = '' }: IncomingHttpHeaders, names: readonly string[]): string {
  if (cookie.length > identityLimits.social.cookies) return ''
  const pairs = cookie.split(';').map((pair) => pair.trim())
  return names.flatMap((name) => {
    const found = pairs.filter((pair) => pair.startsWith(`${name}=`))
    return found.length === 1 ? found : []
  }).join('; ')
}
