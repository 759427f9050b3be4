import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Provider, type Configuration } from 'oidc-provider'
import bcrypt from 'bcryptjs'
import { Browser, type Visit } from './oauth.ts'
import { database } from './database.ts'
import { freePort, startHub, type Cleanup, type Hub } from './hub.ts'
import { settings } from './client.ts'

/** What the provider says of a person, beside the subject. */
export interface Claims { email?: string, email_verified?: unknown, name?: string, groups?: unknown }

/** A provider of OpenID Connect, on loopback. */
export interface IdentityProvider {
  url: string
  discoveryUrl: string
  /** By subject. */
  people: Map<string, Claims>
  /** The subject that the next login gives. */
  current: string
  /** While set, every request is answered by it. */
  broken?: (request: IncomingMessage, reply: ServerResponse) => void
  /** The paths that were asked for. */
  asked: string[]
  /** Whether a login shows a page with a button first. */
  isInteractive: boolean
}

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const key = { ...privateKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' }

/** Starts oidc-provider, which logs `current` in without asking. @param redirectUris of the client `hub` */
export async function startIdentityProvider (t: Cleanup, redirectUris: string[], more: Configuration = {}): Promise<IdentityProvider> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const idp: IdentityProvider = {
    url,
    discoveryUrl: `${url}/.well-known/openid-configuration`,
    people: new Map([['ada-1', { email: 'ada@example.com', email_verified: true, name: 'Ada' }]]),
    current: 'ada-1',
    asked: [],
    isInteractive: false
  }
  const provider = new Provider(url, {
    clients: [{ client_id: 'hub', client_secret: 'hub-secret', redirect_uris: redirectUris }],
    jwks: { keys: [key] as never },
    cookies: { keys: ['a key of a test'] },
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: async (_context, sub) => ({ accountId: sub, claims: async () => ({ ...idp.people.get(sub), sub }) as never }),
    loadExistingGrant: async (context) => {
      const { client, session } = context.oidc
      const grant = new context.oidc.provider.Grant({ clientId: client?.clientId, accountId: session?.accountId })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
    // A code is good for as long as its session. Each login comes in a new browser, and so says again who somebody is.
    ttl: { Session: 600, Interaction: 600, Grant: 600, AccessToken: 600, AuthorizationCode: 60, IdToken: 600 },
    ...more
  })
  const answer = provider.callback()
  const server = createServer((request, reply) => {
    idp.asked.push(request.url ?? '')
    if (idp.broken) { idp.broken(request, reply); return }
    if (request.url?.startsWith('/interaction/') !== true) { void answer(request, reply); return }
    if (idp.isInteractive && request.method === 'GET') {
      reply.setHeader('content-type', 'text/html')
      reply.end('<!doctype html><title>The provider</title><form method="post"><button>Continue as Ada</button></form>')
      return
    }
    void provider.interactionFinished(request, reply, { login: { accountId: idp.current } })
  })
  await new Promise<void>((resolve) => { server.listen(port, '127.0.0.1', () => { resolve() }) })
  t.after(() => { server.close(); server.closeAllConnections() })
  return idp
}

/** The users of a test's gateway: the password of each is `Same-1234`. */
export const localUsers = ['admin', 'root@example.com', 'bob'].map((username) => ({
  username,
  password: bcrypt.hashSync('Same-1234', 4),
  isAdmin: username !== 'bob',
  createdAt: '2026-01-01T00:00:00.000Z'
}))

export const mount = '/api/auth/better'

/** What a gateway is told of the provider. */
export const providerEnv = ({ discoveryUrl }: IdentityProvider): Record<string, string> =>
  ({ SOCIAL_AUTH_OIDC_DISCOVERY_URL: discoveryUrl, OIDC_CLIENT_ID: 'hub', OIDC_CLIENT_SECRET: 'hub-secret' })

/** A gateway on a database whose OpenID provider is a real one. */
export async function socialHub (
  t: Cleanup,
  { env = {}, dbUrl, systemConfig = {}, idp: configuration }: {
    env?: Record<string, string>, dbUrl?: string, systemConfig?: object, idp?: Configuration
  } = {}
): Promise<{ hub: Hub, idp: IdentityProvider, query?: Awaited<ReturnType<typeof database>>['query'] }> {
  const port = await freePort()
  const base = `http://127.0.0.1:${port}${env.BASE_PATH ?? ''}`
  const redirectUri = `${env.SOCIAL_AUTH_URL ?? base}${env.SOCIAL_AUTH_BASE_PATH ?? mount}/callback/${env.SOCIAL_AUTH_OIDC_PROVIDER_ID ?? 'oidc'}`
  const idp = await startIdentityProvider(t, [redirectUri], configuration)
  const made = dbUrl === undefined ? await database(t) : undefined
  const hub = await startHub(t, {
    settings: settings({}, { users: localUsers, systemConfig }),
    env: {
      PORT: String(port), DB_URL: dbUrl ?? made?.url ?? '', JWT_SECRET: 'a secret of a test that is long enough', ...providerEnv(idp), ...env
    }
  })
  return { hub, idp, query: made?.query }
}

/** Goes the way of a login in a browser, up to the callback's answer. @param at changes the address of the callback first */
export async function logIn (
  hub: Hub,
  idp: IdentityProvider,
  browser = new Browser(new URL(hub.url).origin),
  { provider = 'oidc', callbackURL, at = (url) => url }: { provider?: string, callbackURL?: string, at?: (url: URL) => URL } = {}
): Promise<{ browser: Browser, end: Visit, callback: URL }> {
  const target = callbackURL === undefined ? '' : `&callbackURL=${encodeURIComponent(callbackURL)}`
  const begun = await browser.get(`${hub.url}${mount}/signIn/social?provider=${provider}${target}`)
  if (begun.location === undefined) return { browser, end: begun, callback: new URL(hub.url) }
  const callback = at(await throughProvider(idp, begun.location))
  return { browser, callback, end: await browser.get(callback.href) }
}

/** The way at the provider, to where it sends the browser back. */
export async function throughProvider (idp: IdentityProvider, address: string): Promise<URL> {
  const browser = new Browser(idp.url)
  let url = new URL(address)
  for (let step = 0; step < 8 && url.origin === idp.url; step++) {
    const { location, status, text } = await browser.get(url.href)
    if (location === undefined) throw new Error(`the provider answers ${status}: ${text.slice(0, 500)}`)
    url = new URL(location, url)
  }
  return url
}
