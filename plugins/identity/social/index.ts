import { randomBytes } from 'node:crypto'
import fp from 'fastify-plugin'
import type { SocialLogins } from '../../../db/ports/social-logins.ts'
import { parseTimerDuration } from '../../../schemas/durations.ts'
import { publicBaseUrl, findBaseUrlSetting, withBasePath } from '../../settings/index.ts'
import type { Outbound } from '../../base/outbound/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { accountSubjectOf } from '../users/account.ts'
import { SocialAccounts } from './local-accounts.ts'
import { originOf, readSocialSettings, type SocialSettings } from './settings.ts'
import { GithubProvider } from './providers/github.ts'
import { OidcProvider, googleSettings } from './providers/oidc.ts'
import type { IdentityProvider } from './providers/provider.ts'
import { SocialLogin } from './social.ts'

declare module 'fastify' {
  interface FastifyInstance { social: SocialLogin }
}

interface SocialOptions {
  /** Absent if the settings are kept in a file. */
  socialLogins?: SocialLogins
}

/** `app.social`: login with accounts at other providers. better-auth is loaded when it is first used. */
export default fp<SocialOptions>(async (app, { socialLogins }) => {
  const { env, basePath } = app.config
  const settings = readSocialSettings(env, app.settings.current.system, socialLogins !== undefined)
  for (const warning of settings.warnings) app.log.warn(warning)
  const social = new SocialLogin({
    settings,
    logins: socialLogins,
    providers: providersOf(settings, app.outbound),
    accounts: new SocialAccounts({
      settings: app.settings,
      users: app.users,
      teams: app.teams,
      logins: socialLogins ?? unavailableLogins,
      logRefusal: (about, reason) => { app.log.warn(about, `a social login was refused: ${reason}`) }
    }),
    addresses: {
      base: () => withBasePath(settings.url, basePath) ?? publicBaseUrl(app),
      defaultOrigins: () => {
        const stated = findBaseUrlSetting(app.settings.current.system, env)?.text
        return [settings.url, stated].flatMap((address) => originOf(address) ?? [])
      }
    },
    sessions: {
      lifetime: parseTimerDuration(env.JWT_EXPIRES_IN),
      secret: sha256(`social cookies ${env.JWT_SECRET ?? randomBytes(32).toString('hex')}`)
    },
    log: app.log
  })
  app.decorate('social', social)
  if (!social.isEnabled || !socialLogins) return
  // Without this rule, somebody could register another person's e-mail address as a username, and would share the
  // account with the owner of the address after the owner's first login.
  app.users.addNameRule((name) => name.includes('@')
    ? 'the username must not contain "@": e-mail addresses are reserved for logins with a provider'
    : undefined)
  app.settings.on('changed', ({ users }, former) => {
    if (users === former.users) return
    for (const user of former.users.values()) {
      const later = users.get(user.username)
      if (later && accountSubjectOf(later) === accountSubjectOf(user)) continue
      social.removeAccountData(user).catch((error: unknown) => {
        // The remaining data is invalid anyway, since it names the former account.
        app.log.warn({ err: error }, 'the social logins of a removed account could not be removed')
      })
    }
  })
}, { name: 'social', dependencies: ['config', 'settings', 'users', 'teams', 'outbound'] })

/** Replaces the storage if there is no database. Social login is then disabled, so nothing calls these functions. */
const unavailableLogins = {
  find: async () => undefined,
  put: async () => {},
  remove: async () => {},
  findCreatingIdentity: async () => undefined
}

function providersOf ({ codehost, idp, oidc }: SocialSettings, outbound: Outbound): IdentityProvider[] {
  return [
    ...(codehost ? [new GithubProvider(codehost, outbound)] : []),
    ...(idp ? [new OidcProvider(googleSettings(idp), outbound, 'Google')] : []),
    ...(oidc ? [new OidcProvider(oidc, outbound)] : [])
  ]
}
