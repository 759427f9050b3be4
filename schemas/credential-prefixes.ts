/**
 * The prefixes of credentials that the gateway generates. They all have the form `th?_`, so that credentials can be
 * recognized in any text, for example to mask them.
 */
export const ownCredentialPrefixes = {
  /** Bearer keys. */
  key: 'thk_',
  /** The credential that the CLI uses on the gateway's own machine. */
  local: 'thl_',
  /** Credentials that the gateway issues to itself. */
  internal: 'thc_',
  /** Access tokens of the authorization server. */
  token: 'tht_',
  /** Refresh tokens of the authorization server. */
  refresh: 'thr_'
} as const
