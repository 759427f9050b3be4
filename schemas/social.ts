import { Type, type Static } from '@sinclair/typebox'
import { Env } from './env.ts'
import { AccountRecord } from './login.ts'

type SocialVariableName = Extract<keyof Env, `${'SOCIAL_AUTH' | 'CODEHOST' | 'IDP' | 'OIDC'}_${string}`>

/** The names of the environment variables of social login. */
export const socialVariableNames = Object.keys(Env.properties)
  .filter((name): name is SocialVariableName => /^(?:SOCIAL_AUTH|CODEHOST|IDP|OIDC)_/.test(name))

const Provider = Type.Object({ enabled: Type.Optional(Type.Boolean()) })
const List = Type.Union([Type.String(), Type.Array(Type.String())])

/** `systemConfig.auth.betterAuth` in the settings file or database. Unlisted members are ignored. */
export const SocialConfig = Type.Object({
  enabled: Type.Optional(Type.Boolean()),
  url: Type.Optional(Type.String({ pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$' })),
  basePath: Type.Optional(Type.String({ pattern: '^(/(?!\\.{1,2}(/|$))[A-Za-z0-9._~-]+)+/?$' })),
  trustedOrigins: Type.Optional(List),
  providers: Type.Optional(
    Type.Object({
      codehost: Type.Optional(Provider),
      idp: Type.Optional(Provider),
      oidc: Type.Optional(
        Type.Object({
          enabled: Type.Optional(Type.Boolean()),
          providerId: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' })),
          discoveryUrl: Type.Optional(Type.String()),
          scopes: Type.Optional(List),
          pkce: Type.Optional(Type.Boolean()),
          prompt: Type.Optional(Type.String()),
          groupsClaim: Type.Optional(Type.String())
        })
      )
    })
  )
})
export type SocialConfig = Static<typeof SocialConfig>

/** The query of the route at which a browser begins a social login. */
export const SignInQuery = Type.Object({
  provider: Type.String({ description: 'A provider that `/public-config` lists' }),
  callbackURL: Type.Optional(
    Type.String({
      description: 'Where the browser is redirected afterwards: a path of this gateway, or an address of a trusted ' +
        'origin'
    })
  )
})

export const CallbackParams = Type.Object({ provider: Type.String() })

export const SignInBody = Type.Object({
  provider: Type.String({ description: 'A provider that `/public-config` lists' }),
  callbackURL: Type.Optional(Type.String({ description: 'Where the browser is redirected afterwards' })),
  disableRedirect: Type.Optional(Type.Boolean({ default: false }))
}, { examples: [{ provider: 'oidc', callbackURL: '/docs' }] })

export const SignInStartResult = Type.Object({
  url: Type.String({ description: 'The address at which the provider asks its user' }),
  redirect: Type.Boolean()
})

/**
 * The session of a social login; null for a request without a session. The response does not contain the token, which
 * is only in the cookie.
 */
export const SocialSession = Type.Union([
  Type.Null(),
  Type.Object({
    session: Type.Object(
      { id: Type.String(), userId: Type.String(), createdAt: Type.String(), expiresAt: Type.String() }
    ),
    user: Type.Object({ id: Type.String(), name: Type.String(), username: Type.String(), isAdmin: Type.Boolean() })
  })
])

export const SignOutResult = Type.Object({ success: Type.Literal(true) })

export const SocialUserResult = Type.Object({ success: Type.Literal(true), user: AccountRecord })
