// Every queue and map that a stranger can grow, and what happens beyond its bound. One table, so that one look tells them all.

export const limits = {
  /** Failed logins of one user from one address in so many ms; beyond: 429. */
  loginFailures: 10,
  loginWindow: 5 * 60_000,
  /** Sessions at once; beyond: 503. */
  sessions: 10_000,
  /** A session without a request or an open stream ends after so many ms. */
  sessionIdle: 30 * 60_000,
  /** Requests of one session in flight at once; beyond: -32000. */
  requestsPerSession: 1_000,
  /** GET streams of one session at once; beyond: 409. */
  streamsPerSession: 8,
  /** Messages kept for a session that holds no stream open; beyond: the oldest go. */
  waitingMessages: 64,
  /** What one slow reader may leave unread on a stream, in bytes; beyond: its connection is dropped. */
  streamBacklog: 8 * 1024 * 1024,
  /** Events kept for `Last-Event-ID`, of one session: how many, and how many characters in all; beyond: the oldest go. */
  replayEvents: 256,
  replaySize: 1024 * 1024,
  /** Streams of one session that can be resumed; beyond: the oldest that carries nothing is forgotten. */
  resumableStreams: 64,
  /** A call whose resumable stream broke is cancelled after so many ms, unless its client comes back. */
  resumeGrace: 5_000,
  /** The same when we closed the stream ourselves, to be polled. */
  pollGrace: 60_000,
  /** A question outside of any request waits so many ms for its client to open a stream. */
  streamPatience: 5_000,
  /** Questions open to one session at once; beyond: the upstream gets an error. */
  questionsPerSession: 256,
  /** A question is given up after so many ms. */
  questionTimeout: 10 * 60_000,
  /** Session rebuilds of one principal in a minute; beyond: 404. */
  rebuildsPerMinute: 600,
  /** Resource subscriptions of one session; beyond: -32000. */
  subscriptionsPerSession: 1_000,
  /** Surfaces kept at once; beyond: the oldest is folded again when needed. */
  surfaces: 256,
  /** Capability classes of clients whose catalogues one server keeps; beyond: the oldest is read again when needed. */
  classesPerServer: 32,
  /** Tasks whose owner is remembered; beyond: the oldest is forgotten. */
  tasks: 10_000,
  /** Links of one server; beyond: the oldest idle one goes, or 503. */
  linksPerServer: 64,
  /** Children that are being spawned at once; the rest queue. */
  spawning: 4,
  /** Nesting of JSON taken from a client; beyond: 400. */
  requestDepth: 200,
  /** Pages followed, and items taken, of one upstream's list; beyond: the rest is left out, with a warning. */
  listPages: 1_000,
  listItems: 100_000,
  /** One item of a list, in characters; beyond: it is left out, with a warning. */
  itemSize: 1024 * 1024,
  /** A description, in characters; beyond: it is cut. */
  description: 16 * 1024,
  /** A merged list waits for servers that have never answered until so many ms after they began to connect. */
  firstAnswer: 900,
  /** A list waits so many ms to learn what a connected server shows to a new kind of client. */
  newClass: 5_000,
  /** ... and not again before so many ms have passed. */
  learnAgain: 60_000,
  /** A call or list aimed at one connecting server waits so many ms. */
  connectPatience: 10_000,
  /** Lines of one child's stderr that are logged in a second; the rest are counted. */
  stderrLines: 100
} as const
