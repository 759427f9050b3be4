import type { StoredToken } from '../../../../db/ports/tokens.ts'
import type { Snapshot } from '../../../../db/store.ts'
import type { SystemConfig } from '../../../../schemas/settings.ts'
import type { AccessTokens } from '../../access-tokens.ts'
import { type AddressConfig, configuredBaseUrl, type Principal } from '../../../settings/index.ts'
import { rightsMarkOf } from '../../users/account.ts'
import { type AuthStep, bearerTokenIn } from '../chain.ts'

/**
 * Authenticates by an access token of the gateway's own authorization server, in `Authorization: Bearer`. The user of
 * the token is read from the current settings: the token becomes invalid as soon as the user is deleted, or gets
 * another password or other admin rights. The scopes of the token limit the user's rights.
 */
export const accessTokenStep = (tokens: AccessTokens, config: AddressConfig): AuthStep =>
  (credentials, _routes, snapshot) => {
    if (snapshot.system.oauthServer?.enabled !== true) return undefined
    const text = bearerTokenIn(credentials.headers.authorization)
    const found = text === undefined ? undefined : tokens.find(text, credentials.ip)
    return found instanceof Promise
      ? found.then((token) => token && principalOf(token, snapshot, config))
      : found && principalOf(found, snapshot, config)
  }

const principals = new WeakMap<Snapshot, WeakMap<StoredToken, Principal>>()

/** Returns the principal of a token, cached per snapshot, since views are cached by principal. */
function principalOf (token: StoredToken, snapshot: Snapshot, config: AddressConfig): Principal | undefined {
  let known = principals.get(snapshot)
  if (!known) principals.set(snapshot, known = new WeakMap())
  const principal = known.get(token) ?? toPrincipal(token, snapshot, config)
  if (principal) known.set(token, principal)
  return principal
}

/** Returns a URI's path without trailing slashes, with `%24` decoded to `$`; `''` if the URI is missing or invalid. */
const pathOf = (uri: string | undefined): string => uri !== undefined && URL.canParse(uri)
  ? new URL(uri).pathname.replace(/\/+$/, '').replaceAll('%24', '$')
  : ''

/**
 * Returns the audience of a token: the path of its resource (RFC 8707) as the gateway receives it. The path prefix of
 * the public base URL before the base path is removed, since the proxy strips it from requests. If no path remains, the
 * token is for the whole gateway.
 * @param base the public base URL
 */
function audienceOf (resource: string | undefined, base: string | undefined, basePath: string): { audience?: string } {
  const [path, whole] = [pathOf(resource), pathOf(base)]
  const prefix = whole.slice(0, whole.length - basePath.length)
  const audience = path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path
  return audience === '' ? {} : { audience }
}

/** Returns the scopes of a credential that the settings still allow. */
export function allowedScopesAmong (scopes: readonly string[], { oauthServer }: SystemConfig): readonly string[] {
  const allowed = oauthServer?.allowedScopes
  return Array.isArray(allowed) ? scopes.filter((scope) => allowed.includes(scope)) : scopes
}

function toPrincipal (token: StoredToken, { users, system }: Snapshot, config: AddressConfig): Principal | undefined {
  const { family, clientId, username = '', mark, scope, resource } = token
  const user = users.get(username)
  if (system.oauthServer?.enabled !== true || !user || mark !== rightsMarkOf(user)) return undefined
  return {
    key: `token ${family}`,
    kind: 'access-token',
    user: user.username,
    username: user.username,
    isAdmin: user.isAdmin === true,
    credential: { id: family, name: clientId },
    scopes: allowedScopesAmong(scope.split(' '), system),
    ...audienceOf(resource, configuredBaseUrl(system, config), config.basePath),
    inSnapshot: (later) => toPrincipal(token, later, config)
  }
}
