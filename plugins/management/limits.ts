/** Bounds of the management API. docs/limits.md is generated from them. */
export const managementLimits = {
  /** Max servers per user who is not an admin; beyond: 503. */
  serversPerUser: 100,

  /** Max size of the configs of all servers of a user who is not an admin, in characters of JSON; beyond: 503. */
  configPerUser: 4 * 1024 * 1024,

  /** Max groups per user who is not an admin; beyond: 503. */
  groupsPerUser: 100,

  /** Max values in a server's config, its OpenAPI description apart; beyond: 400. */
  configValues: 10_000,

  /** Max words, and parameters of addresses, in the texts of a server's config that may be secrets; beyond: 400. */
  configWords: 4_000,

  /** Max values in the members of a group, the items that they select included; beyond: 400. */
  groupValues: 20_000,

  /**
   * Catalogues of other services. `answer`: max size of one answer, in bytes, `depth`: max nesting of it, `time`: max
   * time for it, in ms; beyond: 502, or what the service said before. `requests`: max requests at the same time, with a
   * share for each owner; beyond: 429 or
   * 503. `answers`, `size`: max answers that are kept, and their size together, in bytes; beyond: the oldest is
   *      dropped. `fresh`: time until an answer is asked for again, `retry`: time until a service that failed is, in
   *      ms. `entries`: max entries of one answer; beyond: the rest is left out. `pages`: max pages of a list that is
   *      read as a whole; beyond: the same.
   */
  catalogues: {
    answer: 4 * 1024 * 1024,
    depth: 64,
    time: 10_000,
    requests: 32,
    answers: 256,
    size: 16 * 1024 * 1024,
    fresh: 60_000,
    retry: 15_000,
    entries: 1_000,
    pages: 10
  },

  /**
   * Uploads of bundles. `upload`: max size, in bytes; beyond: 413. `uploads`: max that are received or wait to be
   * unpacked, which happens one at a time, with a share for each owner; beyond: 429 or 503. `idle`, `time`: max time
   * without a byte, and of the whole upload, in ms; beyond: 408. `manifest`: max size of the manifest, in bytes.
   * `archive`: the content, as `ArchiveBounds` says; beyond all of these: 400.
   */
  bundles: {
    upload: 100 * 1024 * 1024,
    uploads: 4,
    idle: 30_000,
    time: 10 * 60_000,
    manifest: 1024 * 1024,
    archive: {
      entries: 10_000,
      file: 100 * 1024 * 1024,
      total: 500 * 1024 * 1024,
      ratio: 200,
      ratioFrom: 1024 * 1024,
      depth: 32,
      name: 255,
      path: 1_024
    }
  },

  /**
   * The console. `idle`: time without use after which a session ends, `renewal`: time after which a use is stored,
   * `welcome`: time for which the link of the first start is good, in ms. `form`: max size of a form, in bytes; beyond:
   * 413. `tokens`: max tokens of forms that are remembered; beyond: others are made. `streams`: max open pages of one
   * user that are told of changes; beyond: the oldest is not any more.
   */
  console: {
    idle: 12 * 60 * 60_000,
    renewal: 10 * 60_000,
    welcome: 15 * 60_000,
    form: 2 * 1024 * 1024,
    tokens: 1_000,
    streams: 32
  }
} as const
