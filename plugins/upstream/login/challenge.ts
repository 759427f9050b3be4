/** The Bearer challenge of a `WWW-Authenticate` header (RFC 6750, section 3; RFC 9728, section 5.1). */
export interface BearerChallenge {
  /** The URL of the protected resource metadata. */
  readonly resourceMetadata?: URL
  /** The scopes that the refused request needs. */
  readonly scopes?: readonly string[]
}

/**
 * Matches each parameter of a challenge. A match begins only at the start of a word: otherwise the search in a long
 * word without `=` after it would take quadratic time.
 */
const parameterPattern = /(?<![\w-])([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g

/**
 * Returns a challenge's parameters, by name in lower case; of repeated parameters, the first. The pattern consumes
 * quoted values as a whole, so that text within quotes is not taken for a parameter.
 */
function parametersOf (text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of text.matchAll(parameterPattern)) {
    const key = name.toLowerCase()
    if (!found.has(key)) found.set(key, quoted?.replace(/\\(.)/g, '$1') ?? plain)
  }
  return found
}

/**
 * Parses the Bearer challenge of a `WWW-Authenticate` header.
 * @param header the header, which may contain several challenges; undefined if there is none
 * @returns an empty object if there is no Bearer challenge
 */
export function parseChallenge (header: string | undefined): BearerChallenge {
  const text = /(?:^|[\s,])bearer\s+(.*)$/is.exec(header?.slice(0, 8_192) ?? '')?.[1]
  if (text === undefined) return {}
  const parameters = parametersOf(text)
  const address = parameters.get('resource_metadata')
  const scope = parameters.get('scope')
  return {
    ...(address !== undefined && URL.canParse(address) ? { resourceMetadata: new URL(address) } : {}),
    ...(scope === undefined || scope.trim() === '' ? {} : { scopes: parseScopes(scope) })
  }
}

/** Splits a text with scopes (RFC 6749, section 3.3) into the scopes, without duplicates. */
export const parseScopes = (text: string | undefined): string[] => [
  ...new Set((text ?? '').split(' ').filter((each) => each !== ''))
]

/** The scopes among which `chooseScopes` selects, by their source. */
interface ScopeSources {
  /** `oauth.scopes` of the server's config. */
  readonly configured: readonly string[] | undefined
  /** The scopes that the server's challenge names. */
  readonly challenged: readonly string[] | undefined
  /** `scopes_supported` of the protected resource metadata. */
  readonly ofResource: readonly string[] | undefined
  /** `scopes_supported` of the authorization server's metadata. */
  readonly ofServer: readonly string[] | undefined
  /** Scopes that the existing login has requested: a step-up requests them again. */
  readonly former: readonly string[] | undefined
}

/**
 * Selects the scopes to request (MCP 2025-11-25, Authorization, "Scope Selection Strategy" and "Step-Up Authorization
 * Flow"). A new login requests the scopes of the config, or else of the challenge, or else of the resource's metadata.
 * A step-up requests the former scopes and those of the challenge. If scopes are requested, and the authorization
 * server supports `offline_access`, this scope is added to get a refresh token.
 */
export function chooseScopes ({ configured, challenged, ofResource, ofServer, former = [] }: ScopeSources): string[] {
  const first = former.length > 0 ? challenged : configured ?? challenged ?? ofResource
  const scopes = new Set([...former, ...first ?? []])
  if (scopes.size > 0 && ofServer?.includes('offline_access') === true) scopes.add('offline_access')
  return [...scopes]
}
