/** The limits for users, keys and logins. docs/limits.md is generated from this object and its comments. */
export const identityLimits = {
  /** Max failed logins per user and address per `loginWindow`; beyond that, 429. */
  loginFailures: 10,

  /** Time window in which `loginFailures` are counted, in ms. */
  loginWindow: 5 * 60_000,

  /** Max password checks in progress or queued per user and address; beyond that, 429. */
  passwordChecksPerUser: 64,

  /**
   * Max logins, registrations and password changes in progress or queued, with a share for each address; beyond that,
   * 429 or 503.
   */
  passwordRequests: 128,

  /** Max registrations per address per `registrationWindow`; beyond that, 429. */
  registrations: 10,

  /** Time window in which `registrations` are counted, in ms. */
  registrationWindow: 5 * 60_000,

  /**
   * Max cached access tokens, and max cached families of access tokens; beyond that, the oldest is dropped, and looked
   * up again on demand.
   */
  accessTokens: 20_000,

  /** Look-ups of access tokens. `places`: max look-ups of uncached tokens at the same time; beyond that, they wait. */
  tokenLookUps: { places: 8 },

  /**
   * The authorization server. `uri`: max length of a URI that a client sends, in characters, `redirectUris`: max number
   * of redirect URIs; beyond that, status 400. `metadata`: max size of a self-registered client's metadata, as stored,
   * in bytes; beyond that, status 400. `registration`: max size of the body of a registration; beyond that, 413.
   * `name`: max length of a client's name, in characters; beyond that, it is truncated. `registrations`: max clients
   * that register or whose documents are fetched, `authorizations`: max authorization requests, `secrets`: max failed
   * authentications of one client, each per address and `window` (in ms); beyond that, 429. `issuers`: max cached
   * providers, one for each issuer (forwarded hosts result in several issuers); beyond that, the oldest is dropped, and
   * created again on demand. `document`: max size of a Client ID Metadata Document, in bytes; beyond that, status 400.
   */
  oauth: {
    uri: 2_000,
    redirectUris: 20,
    metadata: 8 * 1024,
    registration: '64kb',
    name: 200,
    window: 5 * 60_000,
    registrations: 100,
    authorizations: 300,
    secrets: 20,
    issuers: 8,
    document: 16 * 1024
  },

  /**
   * Social login. `logins`: max logins begun or ended per address and `window` (in ms); beyond that, 429. `requests`:
   * max logins that exchange a code with a provider at the same time; further logins wait, and addresses take turns.
   * `answer`: max size of a provider's response, in bytes, `timeout`: max time until it is received, in ms; beyond
   * that, the login fails. `keysAge`: min time after a fetch of a provider's keys until an unknown key causes another
   * fetch, in ms. `sessions`: max sessions of one user; beyond that, the oldest ends. `cookies`: max size of
   * the cookies that are read, in characters; beyond that, there is no session.
   */
  social: {
    logins: 300,
    window: 5 * 60_000,
    requests: 16,
    answer: 512 * 1024,
    timeout: 10_000,
    keysAge: 30_000,
    sessions: 100,
    cookies: 8 * 1024
  },

  /** Max accounts; beyond that, only admins can create accounts, others get 503. */
  users: 10_000,

  /**
   * Refused credentials in the log. `linesPerMinute`: max lines; beyond that, only their number is logged. `lockOuts`:
   * max logged lock-outs that are remembered; beyond that, one may be logged again.
   */
  refusals: { linesPerMinute: 20, lockOuts: 1_000 },

  /**
   * Max bearer keys that are cached by their tokens, so that a token is hashed only on its first use; beyond that, the
   * cache is cleared.
   */
  keysAtHand: 1_000,

  /** Max bearer keys per user who is not an admin; beyond that, 429. */
  keysPerUser: 100,

  /**
   * Templates. `requests`: max exports and imports per owner and `window` (in ms); beyond that, 429. `entries`: max
   * servers, and max groups, of an imported template; beyond that, status 400.
   */
  templates: { requests: 200, window: 15 * 60_000, entries: 1_000 },

  /** Max time that a session may be without a request or an open stream, in ms; beyond that, it ends. */
  sessionIdle: 30 * 60_000
} as const
