/**
 * The prefixes of credentials that the gateway generates. They share the form `th?_`, so that a credential is
 * recognized wherever it appears.
 */
export const credentialPrefixes = {
  /** Bearer keys. */
  key: 'thk_',
  /** The credential of the command line on the gateway's own machine. */
  local: 'thl_',
  /** Credentials that the gateway issues to itself. */
  internal: 'thc_',
  /** Access and refresh tokens of the authorization server. */
  token: 'tht_',
  refresh: 'thr_'
} as const
