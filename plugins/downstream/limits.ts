/** The limits for clients. docs/limits.md is generated from this object and its comments. */
export const downstreamLimits = {
  /**
   * Max MCP sessions, with a share for each owner; beyond that, HTTP 429 or 503. The same number limits the connections
   * of the SSE transport.
   */
  sessions: 10_000,

  /**
   * The capabilities that a client declares, which are kept as long as the client. `text`: max size of their JSON text,
   * and `memory`: max size of the text and its values (counted by `valueCosts`), in bytes of memory; beyond that,
   * error -32602. The values actually take less than half of what is counted.
   */
  capabilities: { text: 8 * 1024, memory: 16 * 1024 },

  /** Max time for a connection of the SSE transport to start its session, in ms; beyond that, it is closed. */
  initializeTimeout: 60_000,

  /** Max open requests per session; beyond that, error -32000. */
  requestsPerSession: 1_000,

  /** Max messages per JSON-RPC batch; beyond that, HTTP 400. */
  batch: 1_000,

  /** Max open GET streams per session; beyond that, HTTP 409. */
  streamsPerSession: 8,

  /** Max messages buffered per session while it has no open stream; beyond that, the oldest are dropped. */
  waitingMessages: 64,

  /**
   * Max size of the messages in `waitingMessages` per session, in bytes of memory; beyond that, the oldest are dropped.
   * A larger message is not buffered at all.
   */
  waitingSize: 256 * 1024,

  /**
   * Max total size of buffered and replayable messages of all sessions, in bytes of memory; beyond that, the oldest
   * messages of the owner whose messages take the most memory are dropped.
   */
  keptSize: 64 * 1024 * 1024,

  /**
   * Max unread bytes per stream. The connection is closed if more are unread for longer than `streamBacklogTime`, or as
   * soon as more than four times as many are unread.
   */
  streamBacklog: 8 * 1024 * 1024,

  /** Max time for which more than `streamBacklog` bytes may be unread, in ms; beyond that, the connection is closed. */
  streamBacklogTime: 10_000,

  /** Max events kept for `Last-Event-ID` per session; beyond that, the oldest are dropped. */
  replayEvents: 256,

  /** Max size of the events in `replayEvents` per session, in bytes of memory; beyond that, the oldest are dropped. */
  replaySize: 1024 * 1024,

  /** Max age of the events in `replayEvents`, in ms; beyond that, they are dropped. */
  replayTime: 5 * 60_000,

  /** Max resumable streams per session; beyond that, the oldest one without a connection or a call is dropped. */
  resumableStreams: 64,

  /** Max time for a client to resume a stream that broke, in ms; beyond that, the call on the stream is cancelled. */
  resumeGrace: 5_000,

  /**
   * Max time for a client to resume a stream that the gateway closed for polling, in ms; beyond that, the call on the
   * stream is cancelled.
   */
  pollGrace: 60_000,

  /**
   * Max time that a request from a server, unless it belongs to a call, waits for the client to open a stream, in ms;
   * beyond that, the server gets an error.
   */
  streamOpenTimeout: 5_000,

  /** Max open requests from servers per session; beyond that, the server gets an error. */
  questionsPerSession: 256,

  /**
   * Max total size of the open requests from servers per session, including their values, in bytes of memory; beyond
   * that, the server gets an error.
   */
  questionsSize: 32 * 1024 * 1024,

  /**
   * Max memory of the unanswered requests from servers to the clients of all sessions, in bytes: their JSON texts and
   * the values parsed from them. Each owner has a share; beyond that, the server gets an error.
   */
  allQuestionsSize: 64 * 1024 * 1024,

  /**
   * Calls of modern clients that wait for answers to questions. `calls`: max number, with a share for each owner;
   * `questions`: max questions per call; `size`: max total size of the kept requests, questions and answers (with the
   * values in requests and questions), in bytes of memory, with a share for each owner; beyond that, the server gets an
   * error. `gather`: time for which questions are collected before they are asked, in ms. `time`: max time until a
   * client answers, in ms; beyond that, the call is cancelled. `again`: time for which the result of a call can be
   * fetched again, in ms. `answers`: max results that are kept to be fetched again; beyond that, the oldest are
   * dropped.
   */
  parked: {
    calls: 10_000, questions: 256, size: 64 * 1024 * 1024, gather: 10, time: 10 * 60_000, again: 60_000, answers: 1_000
  },

  /**
   * Modern clients that no request currently uses, but that may have links to servers. `idle`: max number, with a share
   * for each owner; beyond that, a client ends with its request. `time`: max time without a request, in ms; beyond
   * that, the client ends. `key`: max size of the key that identifies such clients (principal, route and capabilities),
   * in bytes of memory; beyond that, a client is not kept.
   */
  leases: { idle: 1_000, time: 5 * 60_000, key: 4 * 1024 },

  /** Max open `subscriptions/listen` streams, with a share for each owner; beyond that, HTTP 429 or 503. */
  listens: 10_000,

  /**
   * Tasks that a `subscriptions/listen` stream reports. `tasks`: max number per stream; beyond that, error -32602. A
   * task is polled at the interval that its server states, bounded by `least` and `most`, or else every `usual` ms.
   */
  taskWatch: { tasks: 100, least: 250, usual: 1_000, most: 30_000 },

  /** Max session rebuilds per principal per minute; beyond that, HTTP 404. */
  rebuildsPerMinute: 600,

  /**
   * Max sessions of REST callers (`x-session-id`), with a share for each owner; beyond that, the least recently used
   * session ends.
   */
  restSessions: 1_000,

  /** Max time that a REST caller's session may go without a call, in ms; beyond that, it ends. */
  restSessionIdle: 30 * 60_000,

  /** Max size of one OpenAPI document, in bytes; beyond that, HTTP 503, with the advice to request fewer servers. */
  documentSize: 32 * 1024 * 1024,

  /**
   * OpenAPI documents, which worker threads write. `threads`: max number; beyond that, documents wait, and owners take
   * turns. `tasks`: max documents being written or waiting, with a share for each owner; beyond that, HTTP 429 or 503.
   * `time`: max time for a document, in ms, `heap`: max heap, in MB; beyond that, tools whose definition has at least
   * `large` characters are described as taking any object. `idle`: time in ms after which a thread without a task ends.
   * `kept`: max cached documents, each of at most `keptSize` bytes; beyond that, documents are written again.
   */
  documents: {
    threads: 1, tasks: 64, time: 20_000, heap: 512, large: 8_000, idle: 60_000, kept: 16, keptSize: 2 * 1024 * 1024
  }
} as const
