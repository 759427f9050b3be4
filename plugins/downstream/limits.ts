/** Limits of clients. docs/limits.md is generated from them. */
export const downstreamLimits = {
  /**
   * Max MCP sessions, with a share for each owner; beyond that, 429 or 503. Connections of the SSE transport have the
   * same limit of their own.
   */
  sessions: 10_000,

  /**
   * The capabilities that a client declares, which are kept as long as the client. `text`: max size of their JSON, and
   * `memory`: of that and their values (counted by `valueCosts`), in bytes of memory; beyond that, -32602. The values
   * actually take less than half of that.
   */
  capabilities: { text: 8 * 1024, memory: 16 * 1024 },

  /** Max time for a connection of the SSE transport to start its session, in ms; beyond that, it is closed. */
  initializeTimeout: 60_000,

  /** Max open requests per session; beyond that, -32000. */
  requestsPerSession: 1_000,

  /** Max messages per JSON-RPC batch; beyond that, 400. */
  batch: 1_000,

  /** Max open GET streams per session; beyond that, 409. */
  streamsPerSession: 8,

  /** Max messages buffered per session while it has no open stream; beyond that, the oldest are dropped. */
  waitingMessages: 64,

  /**
   * Max size of those messages per session, in bytes of memory; beyond that, the oldest are dropped. A larger one is
   * not buffered at all.
   */
  waitingSize: 256 * 1024,

  /**
   * Max total size of buffered and replayable messages of all sessions, in bytes of memory; beyond that, the oldest of
   * the owner with the most are dropped.
   */
  keptSize: 64 * 1024 * 1024,

  /**
   * Max unread bytes per stream for `streamBacklogTime`; beyond, or immediately at four times as much: the connection
   * is closed.
   */
  streamBacklog: 8 * 1024 * 1024,

  /** See `streamBacklog`; in ms. */
  streamBacklogTime: 10_000,

  /** Max events kept for `Last-Event-ID` per session; beyond that, the oldest are dropped. */
  replayEvents: 256,

  /** Max size of those events per session, in bytes of memory; beyond that, the oldest are dropped. */
  replaySize: 1024 * 1024,

  /** Max age of those events, in ms; beyond that, they are dropped. */
  replayTime: 5 * 60_000,

  /** Max resumable streams per session; beyond that, the oldest that carries no call is dropped. */
  resumableStreams: 64,

  /** Max time for a client to resume a stream that broke, in ms; beyond that, its call is cancelled. */
  resumeGrace: 5_000,

  /**
   * Max time for a client to resume a stream that the gateway closed for polling, in ms; beyond that, its call is
   * cancelled.
   */
  pollGrace: 60_000,

  /**
   * Max wait of a server's request that belongs to no call for its client to open a stream, in ms; beyond that, the
   * server gets an error.
   */
  streamOpenTimeout: 5_000,

  /** Max open requests from servers per session; beyond that, the server gets an error. */
  questionsPerSession: 256,

  /**
   * Max total size of those requests per session, including their values, in bytes of memory; beyond that, the server
   * gets an error.
   */
  questionsSize: 32 * 1024 * 1024,

  /** The same for all sessions together, with a share for each owner; beyond that, the server gets an error. */
  allQuestionsSize: 64 * 1024 * 1024,

  /**
   * Calls of modern clients that wait for answers. `calls`: max number, with a share for each owner; `questions`: max
   * per call; `size`: max total size of what is kept for them (requests, questions and answers, with the values of the
   * first two), in bytes of memory, with a share for each owner; beyond that, the server gets an error. `gather`: time
   * for which questions are collected, `time`: max time until a client answers, in ms; beyond that, the call is
   * cancelled. `again`: time for which an answer can be fetched again, in ms; `answers`: max answers kept for that;
   * beyond that, the oldest are dropped.
   */
  parked: {
    calls: 10_000, questions: 256, size: 64 * 1024 * 1024, gather: 10, time: 10 * 60_000, again: 60_000, answers: 1_000
  },

  /**
   * Clients of modern requests that no request currently uses, but that may have links. `idle`: max number, with a
   * share for each owner; beyond that, one ends with its request. `time`: max time without a request, in ms; beyond
   * that, it ends. `key`: max size of what identifies one, in bytes of memory; beyond that, it is not kept.
   */
  leases: { idle: 1_000, time: 5 * 60_000, key: 4 * 1024 },

  /** Max open `subscriptions/listen` streams, with a share for each owner; beyond that, 429 or 503. */
  listens: 10_000,

  /**
   * Tasks that a `subscriptions/listen` stream reports. `tasks`: max number per stream; beyond that, -32602. A task is
   * polled at the interval of its server, bounded by `least` and `most`, otherwise every `usual` ms.
   */
  taskWatch: { tasks: 100, least: 250, usual: 1_000, most: 30_000 },

  /** Max session rebuilds per principal per minute; beyond that, 404. */
  rebuildsPerMinute: 600,

  /**
   * Max sessions of REST callers (`x-session-id`), with a share for each owner; beyond that, the least recently used
   * one ends.
   */
  restSessions: 1_000,

  /** Max time that a REST caller's session may go without a call, in ms; beyond that, it ends. */
  restSessionIdle: 30 * 60_000,

  /** Max size of one OpenAPI document, in bytes; beyond that, 503, with the advice to request fewer servers. */
  documentSize: 32 * 1024 * 1024,

  /**
   * OpenAPI documents, which worker threads write. `threads`: max number; beyond that, documents wait, and owners take
   * turns. `tasks`: max documents being written or waiting, with a share for each owner; beyond that, 429 or 503.
   * `time`: max time for one, in ms, `heap`: max heap, in MB; beyond that, tools whose definition has more than `large`
   * characters are described as taking any object. `idle`: time without a task after which a thread ends, in ms.
   * `kept`: max cached documents, each of at most `keptSize` bytes; beyond that, the oldest are written again.
   */
  documents: {
    threads: 1, tasks: 64, time: 20_000, heap: 512, large: 8_000, idle: 60_000, kept: 16, keptSize: 2 * 1024 * 1024
  }
} as const
