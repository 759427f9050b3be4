// Every queue and map that a stranger can grow, and what happens beyond its bound. One table, so that one look tells them all.

export const limits = {
  /** Writes of the management API that are remembered: how many, and how many characters of what was written in all; beyond: the oldest are forgotten. One before or after that is larger than a part may be is not kept. */
  audit: { entries: 1_000, part: 32 * 1024, size: 16 * 1024 * 1024 },
  /** Failed logins of one user from one address in so many ms; beyond: 429. */
  loginFailures: 10,
  loginWindow: 5 * 60_000,
  /** Checks of one user's password from one address that wait for their turn; beyond: 429. */
  checksInTurn: 64,
  /** Logins, registrations and changes of a password at once, waiting ones included; beyond: 503. */
  passwordRequests: 128,
  /** Passwords that are hashed at once; the rest wait. */
  hashing: 2,
  /** Registrations from one address in so many ms; beyond: 429. */
  registrations: 10,
  registrationWindow: 5 * 60_000,
  /** Accounts; beyond: nobody but an admin adds one, 503. */
  users: 10_000,
  /** Bearer keys of one user who is no admin; beyond: 503. */
  keysPerUser: 100,
  /** Servers and groups of one user who is no admin; beyond: 503. */
  serversPerUser: 100,
  groupsPerUser: 100,
  /** Sessions at once; beyond: 503. */
  sessions: 10_000,
  /** A session without a request or an open stream ends after so many ms. */
  sessionIdle: 30 * 60_000,
  /** Requests of one session in flight at once; beyond: -32000. */
  requestsPerSession: 1_000,
  /** Elements of one batch; beyond: 400. */
  batch: 1_000,
  /** GET streams of one session at once; beyond: 409. */
  streamsPerSession: 8,
  /** Messages kept for a session that holds no stream open: how many, and how many characters in all; beyond: the oldest go. One that is larger is not kept. */
  waitingMessages: 64,
  waitingSize: 256 * 1024,
  /** Characters kept for all sessions together, what waits and what can be replayed; beyond: the oldest go. */
  keptSize: 128 * 1024 * 1024,
  /** Characters that one log message for everybody comes to, with all who hear it; beyond: it is dropped. */
  broadcastSize: 128 * 1024 * 1024,
  /** What a reader may leave unread on a stream for so many ms, in bytes; beyond, or at once with four times as much: its connection is dropped. */
  streamBacklog: 8 * 1024 * 1024,
  streamBacklogTime: 10_000,
  /** What all readers of answers and streams may leave unread together, in bytes; beyond: the connection that most is left on is dropped. */
  unread: 256 * 1024 * 1024,
  /** Events kept for `Last-Event-ID`, of one session: how many, how many characters in all, and for how many ms; beyond: the oldest go. */
  replayEvents: 256,
  replaySize: 1024 * 1024,
  replayTime: 5 * 60_000,
  /** Streams of one session that can be resumed; beyond: the oldest that carries nothing is forgotten. */
  resumableStreams: 64,
  /** A call whose resumable stream broke is cancelled after so many ms, unless its client comes back. */
  resumeGrace: 5_000,
  /** The same when we closed the stream ourselves, to be polled. */
  pollGrace: 60_000,
  /** A question outside of any request waits so many ms for its client to open a stream. */
  streamPatience: 5_000,
  /** Questions open to one session at once: how many, how many characters in all, and how many to all sessions together; beyond: the upstream gets an error. */
  questionsPerSession: 256,
  questionsSize: 32 * 1024 * 1024,
  allQuestionsSize: 128 * 1024 * 1024,
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
  /** Resources that results linked to; beyond: the oldest is forgotten, and found on the routes of single servers only. */
  linked: 10_000,
  /** Tasks whose owner is remembered; beyond: the oldest is forgotten. */
  tasks: 10_000,
  /** Tasks and pages that a connection's clients wait for, and for how many ms at most; beyond: the oldest is forgotten, and its news are dropped. */
  pending: 1_000,
  pendingTime: 60 * 60_000,
  /** Links of one server; beyond: the oldest idle one goes, or 503. */
  linksPerServer: 64,
  /** One header of a client that goes on to a server (`passthroughHeaders`), in bytes; beyond: 400, or -32602. */
  passedHeader: 8 * 1024,
  /** Children that are being spawned at once; the rest queue. */
  spawning: 4,
  /** Nesting of JSON taken from a client; beyond: 400. */
  requestDepth: 200,
  /** Values of a body of which all that is wrong is told; beyond: the first thing. */
  findingValues: 256,
  /** Pages followed, and items taken, of one upstream's list; beyond: the rest is left out, with a warning. */
  listPages: 1_000,
  listItems: 100_000,
  /** All items of one list, in characters; beyond: the rest is left out, with a warning. */
  listSize: 24 * 1024 * 1024,
  /** One item of a list, and what stands beside the items, in characters; beyond: it is left out, with a warning. */
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
  /** A server's list that is not answered within so many ms counts as failed; one that failed is asked for again after so many ms, and then ever later. */
  listTime: 15_000,
  listAgain: 5_000,
  /** Look-up, connection and TLS to one address take so many ms at most; then it counts as away. */
  connectTimeout: 10_000,
  /** The head of one HTTP answer, in bytes; beyond: the request fails. */
  upstreamHeaders: 16 * 1024,
  /** Proxies whose connections are shared; beyond: the one used first is opened anew when needed. */
  proxies: 64,
  /** Sessions that callers without MCP name in `x-session-id`; beyond: the one used longest ago ends. One without calls ends after so many ms. */
  restSessions: 1_000,
  restSessionIdle: 30 * 60_000,
  /** Tool calls at once of callers without MCP, and of each one of them (all whom nobody knows are one) and on each server; beyond: 503. */
  plainCalls: 1_000,
  plainCallsEach: 250,
  /** Input schemas that arguments are checked by, in characters; beyond: the upstream checks them. */
  checkedSchema: 256 * 1024,
  /** OpenAPI documents kept ready: how many, and how many bytes in all; beyond: the one used longest ago is made again when needed. */
  documents: 64,
  documentsSize: 64 * 1024 * 1024,
  /** ... and how many may wait for being written; beyond: 503. */
  documentsWaiting: 64,
  /** What an OpenAPI description may be; beyond: it is refused, or what is too much of it is left out with a warning. */
  openapi: {
    /** The description, in bytes. */
    document: 32 * 1024 * 1024,
    /** Values in it, what YAML's aliases stand for counted each time, and their nesting. */
    values: 5_000_000,
    depth: 300,
    /** Descriptions that are read at once; how long one may take, in ms, and how many MB of memory. */
    readers: 2,
    readTime: 30_000,
    readHeap: 1_024,
    /** A thread that reads them ends after so many ms without any. */
    readIdle: 5_000,
    /** Operations of one description, and the characters of all their tools. */
    operations: 10_000,
    total: 24 * 1024 * 1024,
    /** One tool's schema, in characters; beyond: it loses descriptions, then depth. */
    schema: 64 * 1024,
    /** What it says of itself, in characters. */
    instructions: 4 * 1024,
    /** Warnings that are told one by one. */
    warnings: 20,
    /** One page of the list of tools, in characters. */
    page: 128 * 1024,
    /** An API's answer, in bytes; and so many characters of it when it is an error. */
    answer: 16 * 1024 * 1024,
    errorBody: 64 * 1024,
    /** An answer of a token endpoint, in bytes, and how long it may take, in ms. */
    token: 1024 * 1024,
    tokenTime: 30_000
  },
  /** Lines of one child's stderr that are logged in a second; the rest are counted. */
  stderrLines: 100
} as const
