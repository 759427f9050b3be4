/** What the header `WWW-Authenticate` of an upstream says (RFC 6750 §3, RFC 9728 §5.1). */
export interface BearerChallenge {
  /** The address of the protected resource metadata. */
  readonly resourceMetadata?: URL
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[]
}

/**
 * The parameters of a challenge, by name in lower case. They are read in order, so that quoted text is never taken for
 * one.
 */
function parametersOf (text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of text.matchAll(/([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    const key = name.toLowerCase()
    if (!found.has(key)) found.set(key, quoted?.replace(/\\(.)/g, '$1') ?? plain)
  }
  return found
}

/** @param header may hold several challenges; undefined: there is none */
export function parseChallenge (header: string | undefined): BearerChallenge {
  const text = /(?:^|[\s,])bearer\s+(.*)$/is.exec(header?.slice(0, 8_192) ?? '')?.[1]
  if (text === undefined) return {}
  const parameters = parametersOf(text)
  const address = parameters.get('resource_metadata')
  const scope = parameters.get('scope')
  return {
    ...(address !== undefined && URL.canParse(address) ? { resourceMetadata: new URL(address) } : {}),
    ...(scope === undefined || scope.trim() === '' ? {} : { scopes: scopesIn(scope) })
  }
}

/** The scopes in a text, without repetition (RFC 6749 §3.3). */
export const scopesIn = (text: string | undefined): string[] => [
  ...new Set((text ?? '').split(' ').filter((each) => each !== ''))
]

/** Where scopes of a server come from. */
interface ScopeSources {
  readonly configured: readonly string[] | undefined
  readonly challenged: readonly string[] | undefined
  /** `scopes_supported` of the protected resource metadata. */
  readonly ofResource: readonly string[] | undefined
  /** `scopes_supported` of the authorization server's metadata. */
  readonly ofServer: readonly string[] | undefined
  /** Scopes that the login has asked for before: a step-up keeps them. */
  readonly former: readonly string[] | undefined
}

/**
 * The scopes to ask for (MCP 2025-11-25, Authorization, "Scope Selection Strategy" and "Step-Up Authorization Flow"):
 * those of the config or the challenge, else all that the resource names, else none; and former ones. `offline_access`,
 * if the authorization server knows it, asks for a refresh token.
 */
export function chooseScopes ({ configured, challenged, ofResource, ofServer, former = [] }: ScopeSources): string[] {
  const first = former.length > 0 ? challenged : configured ?? challenged ?? ofResource
  const scopes = new Set([...former, ...first ?? []])
  if (scopes.size > 0 && ofServer?.includes('offline_access') === true) scopes.add('offline_access')
  return [...scopes]
}
