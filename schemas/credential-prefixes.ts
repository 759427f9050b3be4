/** How the credentials begin that the gateway makes. One family, by which they are recognised wherever they stand. */
export const credentialPrefixes = {
  /** Bearer keys. */
  key: 'thk_',
  /** The command line's, on the gateway's own machine. */
  local: 'thl_',
  /** Those that the gateway lends to itself. */
  lent: 'thc_',
  /** Access and refresh tokens of the authorization server. */
  token: 'tht_',
  refresh: 'thr_'
} as const
