/** Bounds of clients. docs/limits.md is generated from them. */
export const downstreamLimits = {
  /**
   * Max MCP sessions, with a share for each owner; beyond: 429 or 503. The same number of connections of the SSE
   * transport.
   */
  sessions: 10_000,

  /**
   * The capabilities that a client declares, which are kept for as long as it is. `text`: max size of their JSON, and
   * `memory`: of that and their values as `valueCosts` has them, in bytes of memory; beyond: -32602. Kept values take
   * less than half of what they count.
   */
  capabilities: { text: 8 * 1024, memory: 16 * 1024 },

  /** Max time that a connection of the SSE transport has to begin its session, in ms; beyond: it is closed. */
  initializeTimeout: 60_000,

  /** Max requests in flight per session; beyond: -32000. */
  requestsPerSession: 1_000,

  /** Max messages per JSON-RPC batch; beyond: 400. */
  batch: 1_000,

  /** Max open GET streams per session; beyond: 409. */
  streamsPerSession: 8,

  /** Max messages buffered per session while it has no open stream; beyond: the oldest are dropped. */
  waitingMessages: 64,

  /**
   * Max size of those messages per session, in bytes of memory; beyond: the oldest are dropped. A larger one is not
   * buffered at all.
   */
  waitingSize: 256 * 1024,

  /**
   * Max size of buffered and replayable messages of all sessions together, in bytes of memory; beyond: the oldest of
   * the owner that holds most are dropped.
   */
  keptSize: 64 * 1024 * 1024,

  /**
   * Max unread bytes per stream for `streamBacklogTime`; beyond, or at once at four times as much: the connection is
   * closed.
   */
  streamBacklog: 8 * 1024 * 1024,

  /** In ms. */
  streamBacklogTime: 10_000,

  /** Max events kept for `Last-Event-ID` per session; beyond: the oldest are dropped. */
  replayEvents: 256,

  /** Max size of those events per session, in bytes of memory; beyond: the oldest are dropped. */
  replaySize: 1024 * 1024,

  /** Max age of those events, in ms; beyond: they are dropped. */
  replayTime: 5 * 60_000,

  /** Max resumable streams per session; beyond: the oldest that carries no call is forgotten. */
  resumableStreams: 64,

  /** Max time for a client to resume a stream that broke, in ms; beyond: its call is cancelled. */
  resumeGrace: 5_000,

  /**
   * Max time for a client to resume a stream that the gateway closed for polling, in ms; beyond: its call is cancelled.
   */
  pollGrace: 60_000,

  /**
   * Max wait of a server's request outside of any call for its client to open a stream, in ms; beyond: the server gets
   * an error.
   */
  streamOpenTimeout: 5_000,

  /** Max open requests from servers per session; beyond: the server gets an error. */
  questionsPerSession: 256,

  /**
   * Max size of those requests per session, their values included, in bytes of memory; beyond: the server gets an
   * error.
   */
  questionsSize: 32 * 1024 * 1024,

  /** The same of all sessions together, with a share for each owner; beyond: the server gets an error. */
  allQuestionsSize: 64 * 1024 * 1024,

  /**
   * Calls of modern clients that wait for answers. `calls`: max number, with a share for each owner; `questions`: max
   * per call; `size`: max size of what is held for all of them (requests, questions and answers, with the values of the
   * first two), in bytes of memory, with a share for each owner; beyond: the server gets an error. `gather`: time for
   * which questions are collected, `time`: max time until a client answers, in ms; beyond: the call is cancelled.
   * `again`: how long an answer can be fetched once more, in ms; `answers`: max answers that are kept for that; beyond:
   * the oldest are dropped.
   */
  parked: {
    calls: 10_000, questions: 256, size: 64 * 1024 * 1024, gather: 10, time: 10 * 60_000, again: 60_000, answers: 1_000
  },

  /**
   * Clients of modern requests that no request holds now, on which links may hang. `idle`: max number, with a share for
   * each owner; beyond: one ends with its request. `time`: max time without a request, in ms; beyond: it ends. `key`:
   * max size of what identifies one, in bytes of memory; beyond: it is not kept.
   */
  leases: { idle: 1_000, time: 5 * 60_000, key: 4 * 1024 },

  /** Max open `subscriptions/listen` streams, with a share for each owner; beyond: 429 or 503. */
  listens: 10_000,

  /**
   * Tasks that a `subscriptions/listen` tells of. `tasks`: max number per stream; beyond: -32602. A task is asked for
   * at the interval of its server, within `least` and `most`; else every `usual` ms.
   */
  taskWatch: { tasks: 100, least: 250, usual: 1_000, most: 30_000 },

  /** Max session rebuilds per principal per minute; beyond: 404. */
  rebuildsPerMinute: 600,

  /**
   * Max sessions of REST callers (`x-session-id`), with a share for each owner; beyond: the least recently used one
   * ends.
   */
  restSessions: 1_000,

  /** Max time that a session of a REST caller may go without a call, in ms; beyond: it ends. */
  restSessionIdle: 30 * 60_000,

  /** Max size of one OpenAPI document, in bytes; beyond: 503, with the advice to ask for fewer servers. */
  documentSize: 32 * 1024 * 1024,

  /**
   * OpenAPI documents, which worker threads write. `threads`: max number; beyond: documents wait, and owners take
   * turns. `tasks`: max documents that are written or wait, with a share for each owner; beyond: 429 or 503. `time`:
   * max time for one, in ms, `heap`: max heap, in MB; beyond: tools whose definition has more than `large` characters
   * are described as taking any object. `idle`: time without a task after which a thread ends, in ms. `kept`: max
   * documents that are kept for the next who ask, each of at most `keptSize` bytes; beyond: the oldest are written
   * again.
   */
  documents: {
    threads: 1, tasks: 64, time: 20_000, heap: 512, large: 8_000, idle: 60_000, kept: 16, keptSize: 2 * 1024 * 1024
  }
} as const
