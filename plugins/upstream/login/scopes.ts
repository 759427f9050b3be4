/** What is known of the scopes of a server when somebody is to log in. */
interface ScopeSources {
  /** Those of the server's config. */
  readonly configured: readonly string[] | undefined
  /** Those of the challenge. */
  readonly challenged: readonly string[] | undefined
  /** Those of the protected resource metadata (`scopes_supported`). */
  readonly ofResource: readonly string[] | undefined
  /** Those of the authorization server's metadata (`scopes_supported`). */
  readonly ofServer: readonly string[] | undefined
  /** Those that the login has already asked for: a step-up keeps them. */
  readonly former: readonly string[] | undefined
}

/**
 * The scopes to ask for (MCP 2025-11-25, Authorization, "Scope Selection Strategy" and "Step-Up Authorization Flow"): those of the config
 * or the challenge, else all that the resource names, else none; and what the login has had before. A refresh token is asked for with
 * `offline_access` where the authorization server knows that scope.
 */
export function chooseScopes ({ configured, challenged, ofResource, ofServer, former = [] }: ScopeSources): string[] {
  const first = former.length > 0 ? challenged : configured ?? challenged ?? ofResource
  const scopes = new Set([...former, ...first ?? []])
  if (scopes.size > 0 && ofServer?.includes('offline_access') === true) scopes.add('offline_access')
  return [...scopes]
}
