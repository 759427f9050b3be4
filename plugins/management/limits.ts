/** Bounds of the management API. docs/limits.md is generated from them. */
export const managementLimits = {
  /** Max servers per user who is not an admin; beyond that, 429. */
  serversPerUser: 100,

  /** Max size of the configs of all servers of a user who is not an admin, in characters of JSON; beyond that, 429. */
  configPerUser: 4 * 1024 * 1024,

  /** Max groups per user who is not an admin; beyond that, 429. */
  groupsPerUser: 100,

  /** Max values in a server's config, without its OpenAPI description; beyond that, status 400. */
  configValues: 10_000,

  /**
   * Max total of words and URL query parameters in those texts of a server's config that may be secrets; beyond that,
   * status 400.
   */
  configWords: 4_000,

  /** Max values in the members of a group, including the items they select; beyond that, status 400. */
  groupValues: 20_000,

  /**
   * Catalogues of other services. `answerSize`: max size of one response, in bytes, `answerDepth`: its max nesting
   * depth, `time`: max time until it is complete, in ms; beyond that, 502, or the cached response.
   * `concurrentRequests`: max requests at the same time, with a share for each owner; beyond that, 429 or 503.
   * `cachedAnswers`, `cachedSize`: max cached responses, and their max total size, in bytes; beyond that, the oldest is
   * dropped. `freshFor`: time until a cached response is revalidated, `retryDelay`: time until a failed service is
   * requested again, in ms. `answerEntries`: max entries of one response; beyond that, the rest is omitted.
   * `listPages`: max pages of a list of which all pages are needed; beyond that, the rest is omitted.
   */
  catalogues: {
    answerSize: 4 * 1024 * 1024,
    answerDepth: 64,
    time: 10_000,
    concurrentRequests: 32,
    cachedAnswers: 256,
    cachedSize: 16 * 1024 * 1024,
    freshFor: 60_000,
    retryDelay: 15_000,
    answerEntries: 1_000,
    listPages: 10
  },

  /**
   * Uploads of bundles. `uploadSize`: max size of an upload, in bytes; beyond that, 413. `concurrentUploads`: max
   * uploads at the same time, with a share for each owner, including those that wait while another one is unpacked;
   * beyond that, 429 or 503. `idleTimeout`: max time without a byte, `uploadTimeout`: max time of the whole upload, in
   * ms; beyond that, 408. `manifestSize`: max size of the manifest, in bytes; beyond that, status 400. `archiveBounds`:
   * bounds of a bundle's content, `skillBounds`: bounds of an uploaded skill's content, both described at
   * `ArchiveBounds`; beyond that, status 400.
   */
  bundles: {
    uploadSize: 100 * 1024 * 1024,
    concurrentUploads: 4,
    idleTimeout: 30_000,
    uploadTimeout: 10 * 60_000,
    manifestSize: 1024 * 1024,
    archiveBounds: {
      maxEntries: 10_000,
      maxFileSize: 100 * 1024 * 1024,
      maxTotalSize: 500 * 1024 * 1024,
      maxRatio: 200,
      ratioCheckedFrom: 1024 * 1024,
      maxDepth: 32,
      maxNameLength: 255,
      maxPathLength: 1_024
    },
    skillBounds: {
      maxEntries: 1_024,
      maxFileSize: 12 * 1024 * 1024,
      maxTotalSize: 12 * 1024 * 1024,
      maxRatio: 200,
      ratioCheckedFrom: 1024 * 1024,
      maxDepth: 32,
      maxNameLength: 255,
      maxPathLength: 1_024
    }
  },

  /**
   * The console. `sessionIdleTimeout`: time without use after which a session ends, `sessionRenewal`: min time between
   * two renewals of a session in the store, `welcomeLinkLifetime`: validity of the link of the first start, in ms.
   * `formSize`: max size of a form, in bytes; beyond that, 413. `keptForm`: max size of a form without a session, in
   * bytes; beyond that, 413, or, if a session has ended, 401 without what was typed. `formTokens`: max cached CSRF
   * tokens; beyond that, the oldest is dropped, and a new one is made on demand. `streamsPerUser`: max open pages of
   * one user that are notified of changes; beyond that, the stream of the oldest page is closed. `pastedServers`: max
   * servers in one pasted text; beyond that, status 400. `formSteps`: max steps to make a form from a schema (a field
   * takes at least 20 steps); beyond that, the form has less depth, or is a JSON field. `templateVariables`: max
   * variables of a URI template; beyond that, the console does not list the template. `openQuestions`: max questions
   * of a server that wait for answers on a page, `questionsSize`: max size of the fields that contain the questions,
   * in bytes; beyond that, the questions are refused. `lists`: max lists of items that are read for pages at a time,
   * one for each user; beyond that, pages wait.
   */
  console: {
    sessionIdleTimeout: 12 * 60 * 60_000,
    sessionRenewal: 10 * 60_000,
    welcomeLinkLifetime: 15 * 60_000,
    formSize: 2 * 1024 * 1024,
    keptForm: 64 * 1024,
    formTokens: 1_000,
    streamsPerUser: 32,
    pastedServers: 500,
    formSteps: 200_000,
    templateVariables: 100,
    openQuestions: 20,
    questionsSize: 1024 * 1024,
    lists: 3
  }
} as const
