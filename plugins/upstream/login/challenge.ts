/** The content of an upstream's `WWW-Authenticate` header (RFC 6750, section 3; RFC 9728, section 5.1). */
export interface BearerChallenge {
  readonly resourceMetadata?: URL
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[]
}

/**
 * A challenge's parameters, by name in lower case. The text is read in order, so quoted text is never taken for a
 * parameter.
 */
function parametersOf (text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of text.matchAll(/([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    const key = name.toLowerCase()
    if (!found.has(key)) found.set(key, quoted?.replace(/\\(.)/g, '$1') ?? plain)
  }
  return found
}

/** Parses the Bearer challenge. @param header may contain several challenges; undefined if there is none */
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

/** The scopes in a text, without duplicates (RFC 6749, section 3.3). */
export const parseScopes = (text: string | undefined): string[] => [
  ...new Set((text ?? '').split(' ').filter((each) => each !== ''))
]

interface ScopeSources {
  readonly configured: readonly string[] | undefined
  readonly challenged: readonly string[] | undefined
  /** `scopes_supported` of the protected resource metadata. */
  readonly ofResource: readonly string[] | undefined
  /** `scopes_supported` of the authorization server's metadata. */
  readonly ofServer: readonly string[] | undefined
  /** Scopes that the login has requested before: a step-up keeps them. */
  readonly former: readonly string[] | undefined
}

/**
 * Selects the scopes to request (MCP 2025-11-25, Authorization, "Scope Selection Strategy" and "Step-Up Authorization
 * Flow"): those of the config or the challenge, otherwise all scopes of the resource, otherwise none; plus former ones.
 * `offline_access` is added if the authorization server supports it, to get a refresh token.
 */
export function chooseScopes ({ configured, challenged, ofResource, ofServer, former = [] }: ScopeSources): string[] {
  const first = former.length > 0 ? challenged : configured ?? challenged ?? ofResource
  const scopes = new Set([...former, ...first ?? []])
  if (scopes.size > 0 && ofServer?.includes('offline_access') === true) scopes.add('offline_access')
  return [...scopes]
}
