/**
 * The authorization server. `uri`: max length of an address that a client states, in characters, `redirectUris`: max of these; beyond:
 * 400. `metadata`: max size of what a client that registers itself states, as it is stored, in bytes; beyond: 400. `registration`: max
 * size of the body of a registration; beyond: 413. `name`: max length of a client's name; beyond: it is cut. Per address and `window` (in
 * ms), beyond: 429: `registrations`: max clients that register or whose documents are fetched, `authorizations`: max authorization
 * requests, `secrets`: max failed authentications of one client. `issuers`: max issuers, by forwarded hosts, that are served at the same
 * time; beyond: the oldest starts anew. `document`: max size of a Client ID Metadata Document, in bytes; beyond: 400.
 */
export const authorization = {
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
} as const
