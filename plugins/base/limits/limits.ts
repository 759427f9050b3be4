import { availableParallelism } from 'node:os'
import { authorization } from './authorization.ts'
import { openapiServers } from './openapi-servers.ts'

// The bounds of every queue and map that a stranger can grow, in one table. Each entry says what happens beyond its bound. Those of two
// subsystems are in files beside it. Sizes "in bytes of memory" are those in V8: of a text one byte a character, or two where any is beyond
// U+00FF (`memoryOf`).

export const limits = {
  /**
   * `entries`: max entries of the audit log in memory, or that wait for the database; `size`: max memory of all of them, in bytes;
   * beyond: the oldest of the actor (a user with all of the user's keys, or a system key) that has most are dropped.
   * `stored`: max entries in a database; beyond: the oldest are removed.
   * `part`: max size of one `before` or `after`, in characters; beyond: it is replaced by its id, its name and `truncated: true`.
   */
  audit: { entries: 1_000, part: 32 * 1024, size: 16 * 1024 * 1024, stored: 100_000 },

  /**
   * Records of calls that wait for a slow database. `entries`: max number, `size`: max memory in bytes; beyond: new calls are not
   * recorded, and counted. `payload`: max size of an input or output, in bytes, `message`: of an error; beyond: they are cut.
   */
  activities: { entries: 10_000, size: 32 * 1024 * 1024, payload: 100 * 1024, message: 2 * 1024 },
  /**
   * The log that admins read. `entries`: max entries; beyond: the oldest are dropped. `message`: max length of one, in characters; beyond:
   * it is cut. `streams`: max open streams; beyond: 503.
   */
  logs: { entries: 5_000, message: 2 * 1024, streams: 20 },
  /**
   * What the log tells of a part that fails for long: its first failure, then a summary each `summary`, and when it is well again; one that
   * has failed twice is well once it has worked for `healthy` (both in ms). `sentences`: max different remarks about one server within
   * `summary`; beyond, and repeated ones: they are left out.
   */
  outages: { summary: 10 * 60_000, healthy: 60_000, sentences: 100 },
  /**
   * How long the storage may be away, in ms, until the process is not ready any more, and a replica refuses credentials (503): it cannot
   * know which of them still count.
   */
  storageAway: 60_000,

  /** Max failed logins per user and address per `loginWindow`; beyond: 429. */
  loginFailures: 10,
  /** In ms. */
  loginWindow: 5 * 60_000,
  /** Max password checks in progress or queued per user and address; beyond: 429. */
  passwordChecksPerUser: 64,
  /** Max logins, registrations and password changes in progress or queued, with a share for each address; beyond: 429 or 503. */
  passwordRequests: 128,
  /**
   * Max passwords hashed at the same time; beyond: the others wait, and addresses take turns. One core is left for calls: two hashes on two
   * cores made them wait for their turn of the CPU (p99 of a second user 5 times as long, and more, while somebody guessed passwords).
   */
  concurrentHashes: Math.min(2, Math.max(1, availableParallelism() - 1)),
  /** Max registrations per address per `registrationWindow`; beyond: 429. */
  registrations: 10,
  /** In ms. */
  registrationWindow: 5 * 60_000,
  /**
   * Max length of strangers' texts on HTML pages, in characters; beyond: they are cut. `name`: names of clients; `host`: the host that a
   * redirect leads to, which is cut at its start; `text`: sentences, addresses, users' names.
   */
  pageTexts: { name: 80, host: 256, text: 1_000 },

  /**
   * Look-ups of unknown keys, users and passwords in a database, where another replica may have stored them a moment ago. `perSecond`: max
   * look-ups per second, each for all that wait for it; beyond: they are refused at once. `timeout`: max time of one, in ms; beyond: they
   * are refused.
   */
  freshLookUps: { perSecond: 10, timeout: 1_000 },
  /** Max access tokens, and families of them, that are cached; beyond: the oldest is forgotten, and looked up again on demand. */
  accessTokens: 20_000,
  /**
   * Look-ups of access tokens. `places`: max at the same time, of known tokens and of unknown ones each; `waiting`: max of unknown ones
   * that run or wait, of which each address has a share; beyond: 429 or 503.
   */
  tokenLookUps: { places: 8 },

  /** Bounds of the authorization server. */
  oauth: authorization,

  /**
   * Social login. `logins`: max logins begun or ended per address and `window` (in ms); beyond: 429. `requests`: max logins that wait for
   * a provider at the same time; beyond: the others wait, and addresses take turns. `answer`: max size of an answer of a provider, in
   * bytes, and `timeout`: max time for one, in ms; beyond: the login fails. `keysAge`: min age of a provider's keys before they are
   * fetched again for one that is unknown, in ms. `sessions`: max sessions of one person; beyond: the oldest ends. `cookies`: max size of
   * the cookies that are read, in characters; beyond: there is no session.
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

  /**
   * Logins at upstream servers. `holders`: max logins of one server in memory; beyond: the one that was used longest ago is dropped, and
   * read again on demand. `flows`: max of them that wait for their user; beyond: the oldest address is of no use. `told`: max clients that
   * are told of the end of one; beyond: the others try again by themselves. `flowTime`: how long an address is good for, in ms. `document`:
   * max size of one answer of an authorization server, in bytes, `time`: max time for it, in ms; beyond: the login fails. `token`: max
   * length of a token, in characters; beyond: the login fails.
   */
  login: { holders: 1_000, flows: 1_000, told: 100, flowTime: 60 * 60_000, document: 256 * 1024, time: 15_000, token: 12 * 1024 },

  /** Max accounts; beyond: 503 for everybody but admins. */
  users: 10_000,
  /**
   * Refused credentials in the log: `linesPerMinute`: max lines; beyond, their number is told. `lockOuts`: max lock-outs remembered
   * as told; beyond: one may be told again.
   */
  refusals: { linesPerMinute: 20, lockOuts: 1_000 },
  /** Bearer keys that are found without hashing their tokens, once used since keys changed; beyond: all are hashed again. */
  keysAtHand: 1_000,
  /** Max bearer keys per user who is not an admin; beyond: 503. */
  keysPerUser: 100,
  /** Max servers per user who is not an admin; beyond: 503. */
  serversPerUser: 100,
  /**
   * Tests of servers before they are stored. `places`: max at the same time, `perOwner`: of one owner; beyond: 429. `time`: max time of
   * one, in ms; beyond: it ends without a connection.
   */
  serverTests: { places: 8, time: 60_000 },
  /** Max size of the configs of all servers of a user who is not an admin, in characters of JSON; beyond: 503. */
  configPerUser: 4 * 1024 * 1024,
  /**
   * Changes of the settings by a user who is not an admin, in characters: each counts as `each`, and more where its body, or the stored
   * config of its server, has more than `steppedBody`. `burst`: max at once, `perSecond`: per second; beyond: 429. `owners`: max users
   * that are counted.
   */
  userChanges: { each: 8 * 1024, burst: 2 * 1024 * 1024, perSecond: 64 * 1024, owners: 10_000 },
  /** Max changes of the settings that wait for those before them, with a share for each owner; beyond: 429 or 503. Owners take turns. */
  changes: 1_000,
  /** Max groups per user who is not an admin; beyond: 503. */
  groupsPerUser: 100,

  /**
   * Built-in prompts and resources. `items`: max of each kind; `size`: max size of all of both together, in characters of JSON; beyond:
   * 503. `name`, `uri`, `text`: max length of a prompt's name, a resource's URI, a template or content, in characters; `arguments`: max
   * per prompt; beyond: 400. `filled`: max length of a prompt with its arguments, in characters; beyond: -32602.
   */
  builtIns: { items: 1_000, size: 16 * 1024 * 1024, name: 64, uri: 2_048, text: 1024 * 1024, arguments: 100, filled: 1024 * 1024 },
  /**
   * Templates. `requests`: max exports and imports per owner and `window` (in ms); beyond: 429. `entries`: max servers, and max groups, of
   * one that is imported; beyond: 400.
   */
  templates: { requests: 200, window: 15 * 60_000, entries: 1_000 },

  /**
   * Clients that send slowly, in ms. `headers`: max time for the head of a request to arrive, `request`: for the whole of it; beyond: 408,
   * and the connection is closed. `interval`: how often connections are checked, which adds to both.
   */
  slowSenders: { headers: 15_000, request: 30_000, interval: 5_000 },
  /**
   * Open connections of clients. `most`: max number, with a share for each address that is no trusted proxy's; beyond the share, the one of
   * that address that has been idle for longest is closed, or else the new one; beyond the bound, one of the address that holds most. There
   * are fewer where the process may open few files: a quarter of these, and at least `reserve`, but never more than half, is for files,
   * processes and upstreams. `elsewhere`: max number where the system does not tell that limit. `logInterval`: min time between two lines
   * in the log, in ms.
   */
  connections: { most: 30_000, reserve: 100, elsewhere: 4_000, logInterval: 60_000 },
  /**
   * HTTP/1.1 requests on one connection, that of a trusted proxy included. `requests`: max pipelined requests without an answer, and max
   * requests received in one turn of the event loop; beyond: the connection is closed. `chunks`: max chunks of a chunked body whose
   * average size is below `chunk`, in bytes; beyond: 400, and the connection is closed. After the answer, of a body that is still being
   * sent, `unread` bytes and `unreadChunks` chunks are read and dropped, for `linger` ms; beyond: the connection is closed.
   */
  arriving: { requests: 8, chunks: 1_000, chunk: 64, unread: 8 * 1024 * 1024, unreadChunks: 1_000, linger: 1_000 },
  /** Max MCP sessions, with a share for each owner; beyond: 429 or 503. The same number of connections of the SSE transport. */
  sessions: 10_000,
  /**
   * The capabilities that a client declares, which are kept for as long as it is. `text`: max size of their JSON, and `memory`: of that and
   * their values as `valueCosts` has them, in bytes of memory; beyond: -32602. Kept values take less than half of what they count.
   */
  capabilities: { text: 8 * 1024, memory: 16 * 1024 },
  /** Max time that a connection of the SSE transport has to begin its session, in ms; beyond: it is closed. */
  initializeTimeout: 60_000,
  /** Max time that a session may go without a request or an open stream, in ms; beyond: it ends. */
  sessionIdle: 30 * 60_000,
  /** Max requests in flight at servers, with a share for each owner; beyond: 429, 503 or -32001. */
  calls: 10_000,
  /** Max requests in flight per session; beyond: -32000. */
  requestsPerSession: 1_000,
  /** Max messages per JSON-RPC batch; beyond: 400. */
  batch: 1_000,
  /** Max open GET streams per session; beyond: 409. */
  streamsPerSession: 8,
  /** Max messages buffered per session while it has no open stream; beyond: the oldest are dropped. */
  waitingMessages: 64,
  /** Max size of those messages per session, in bytes of memory; beyond: the oldest are dropped. A larger one is not buffered at all. */
  waitingSize: 256 * 1024,
  /**
   * Max size of buffered and replayable messages of all sessions together, in bytes of memory; beyond: the oldest of the owner that
   * holds most are dropped.
   */
  keptSize: 64 * 1024 * 1024,
  /** Max size of one broadcast log message times its listeners, in characters; beyond: it is dropped. */
  broadcastSize: 128 * 1024 * 1024,
  /** Max unread bytes per stream for `streamBacklogTime`; beyond, or at once at four times as much: the connection is closed. */
  streamBacklog: 8 * 1024 * 1024,
  /** In ms. */
  streamBacklogTime: 10_000,
  /**
   * Default of `MEMORY_BUDGET`: max memory of answers that are being read, replies that are not read, and bodies of requests together, in
   * bytes; beyond: the connection with the most unread bytes is closed, then 429 or 503 or -32001. Bodies have a share for each owner.
   */
  memory: 256 * 1024 * 1024,
  /** Time without reading after which a client may be closed to make room for others' answers, in ms. */
  readStall: 2_000,
  /** Texts up to this size, in bytes, are not counted: they are short-lived, and calls with them are most calls. */
  smallText: 64 * 1024,
  /** Memory that an answer of an upstream takes while it is read and passed on, per byte: its bytes, its text, and that of the reply. */
  answerCost: 4,
  /** Memory that an unread reply takes, per byte: its text, and its bytes in the socket's buffers. */
  unreadCost: 2,
  /** Bodies up to this size, in bytes, are not counted. */
  smallBody: 1024,
  /** Memory that a body takes, per byte: a text of empty arrays is that much once it is parsed. */
  bodyCost: 16,
  /** The same for one whose values are counted before they are made: its bytes and its text. */
  bodyTextCost: 4,
  /**
   * Memory that the values of a large body take while they are made, in bytes, what is thrown away meanwhile included: each `value`, in
   * addition each `container` (array or object) and each `member` of an object. Beyond the memory budget: 429 or 503.
   */
  valueCosts: { value: 48, container: 64, member: 192 },
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
  /** Max time for a client to resume a stream that the gateway closed for polling, in ms; beyond: its call is cancelled. */
  pollGrace: 60_000,
  /** Max wait of a server's request outside of any call for its client to open a stream, in ms; beyond: the server gets an error. */
  streamOpenTimeout: 5_000,
  /** Max open requests from servers per session; beyond: the server gets an error. */
  questionsPerSession: 256,
  /** Max size of those requests per session, their values included, in bytes of memory; beyond: the server gets an error. */
  questionsSize: 32 * 1024 * 1024,
  /** The same of all sessions together, with a share for each owner; beyond: the server gets an error. */
  allQuestionsSize: 64 * 1024 * 1024,
  /** Max time for a client to answer a server's request, in ms; beyond: the server gets an error. */
  questionTimeout: 10 * 60_000,
  /**
   * Calls of modern clients that wait for answers. `calls`: max number, with a share for each owner; `questions`: max per call; `size`:
   * max size of what is held for all of them (requests, questions and answers, with the values of the first two), in bytes of memory, with
   * a share for each owner; beyond: the server gets an error. `gather`: time for which questions are collected, `time`: max time until a
   * client answers, in ms; beyond: the call is cancelled. `again`: how long an answer can be fetched once more, in ms; `answers`: max
   * answers that are kept for that; beyond: the oldest are dropped.
   */
  parked: {
    calls: 10_000, questions: 256, size: 64 * 1024 * 1024, gather: 10, time: 10 * 60_000, again: 60_000, answers: 1_000
  },
  /**
   * Questions of modern servers to clients of earlier revisions. `rounds`: max times that one call is answered with questions,
   * `questions`: max of one such answer; beyond: the call fails. `pause`: time until a request is sent again that nothing was asked for, in
   * ms, times the round. `headerPages`: max pages of tools that are read to learn the headers of one; beyond: it is called without.
   */
  inputRounds: { rounds: 32, questions: 32, pause: 100, headerPages: 100 },
  /**
   * Clients of modern requests that no request holds now, on which links may hang. `idle`: max number, with a share for each owner;
   * beyond: one ends with its request. `time`: max time without a request, in ms; beyond: it ends. `key`: max size of what
   * identifies one, in bytes of memory; beyond: it is not kept.
   */
  leases: { idle: 1_000, time: 5 * 60_000, key: 4 * 1024 },
  /** Max open `subscriptions/listen` streams, with a share for each owner; beyond: 429 or 503. */
  listens: 10_000,
  /** Max session rebuilds per principal per minute; beyond: 404. */
  rebuildsPerMinute: 600,
  /** Max resource subscriptions per session and server; beyond: -32000. */
  subscriptionsPerSession: 1_000,
  /**
   * Subscriptions to resources, of legacy and modern clients. `size`: max size of all of them, in bytes of memory of their URIs and `cost`
   * for each, with a share for each owner; beyond: -32001. `levels`: how many levels of the URI of an update are compared.
   */
  subscriptions: { size: 32 * 1024 * 1024, cost: 256, levels: 100 },

  /** Max size of one page of a merged or other list, in characters; beyond: there is another page. */
  listPage: 4 * 1024 * 1024,
  /** Max size of the lists that are kept as they are sent, in bytes; beyond: all are dropped, and written again on demand. */
  keptLists: 32 * 1024 * 1024,
  /** Max surfaces cached; beyond: the oldest is dropped, and built again on demand. */
  surfaces: 256,
  /** Max items in all of them, some 150 bytes each; beyond: the same. */
  surfaceItems: 500_000,
  /** Max items that a server does not list any more and keeps the names of, per kind of items; beyond: the oldest names are free again. */
  formerItems: 1_000,
  /** Max size of the own name or URI of such an item, in bytes of memory; beyond: it is free again. */
  formerItemKey: 1_024,
  /** Max size of all those names or URIs of a server, per kind of items, in bytes of memory; beyond: the oldest are free again. */
  formerItemsSize: 64 * 1024,
  /** Max servers that could have an item of the same name, besides the one that has; beyond: it gets a hash in its name. */
  nameRivals: 8,
  /** Max comparisons of users' resources with admins' templates per surface; beyond: merged routes leave the other ones of users out. */
  templateComparisons: 200_000,
  /**
   * Max work of finding the templates that a URI matches: for each literal within a template that is looked for, its length times that of
   * the URI, in characters. Beyond: no further template matches.
   */
  templateWork: 10_000_000,
  /** Max sets of client capabilities whose catalogues are cached per server; beyond: the oldest is dropped, and read again on demand. */
  classesPerServer: 32,
  /**
   * Max resources remembered from resource links in results; beyond: the oldest of the principal that has most is forgotten, and read
   * only on its server's own routes.
   */
  resourceLinks: 10_000,
  /** Max tasks whose owner is remembered; beyond: the oldest of the principal that has most is forgotten. */
  tasks: 10_000,
  /**
   * Max tasks, and max URL elicitations, awaited per upstream connection; beyond: the oldest of the owner that has most is forgotten, a
   * task that is over first, and its notifications are dropped.
   */
  tasksPerConnection: 1_000,
  /**
   * Max size of the id of a task or a URL elicitation, or of the progress token of a call that began a task, in bytes of memory; beyond: it
   * is not remembered.
   */
  rememberedId: 1_024,
  /** Max time that such a task is remembered, in ms; beyond: its notifications are dropped. */
  taskTime: 60 * 60_000,
  /**
   * Max upstream connections per server, with a share for each owner; beyond: the oldest idle one is closed (of the owner, where the share
   * is used up), or -32001 when none is idle and none is `leftUnanswered`.
   */
  linksPerServer: 64,
  /**
   * Time after which a question counts as left unanswered, in ms: where an owner has had its share of connections, the one whose calls have
   * all waited for answers for longest is closed then.
   */
  leftUnanswered: 10_000,
  /** Max processes of one stdio server that one owner causes; beyond: the same. */
  childrenPerOwner: 8,
  /** Max processes of all stdio servers that one owner causes; beyond: the same. */
  allChildrenPerOwner: 16,
  /**
   * How often one owner may cause a process of a stdio server to be started. `burst`: max starts at once; `interval`: time until there is
   * one more, in ms; beyond: -32001.
   */
  childStarts: { burst: 16, interval: 2_000 },
  /** Max size of a client header that is passed on to a server (`passthroughHeaders`), in bytes; beyond: 400 or -32602. */
  passthroughHeader: 8 * 1024,
  /** Max servers being spawned or dialled at the same time; beyond: the others wait, and owners take turns. */
  concurrentSpawns: 4,
  /** Max of these for one user who is not an admin; one place is for admins' servers only. */
  concurrentSpawnsPerUser: 2,
  /** Max look-ups of host names for servers of all users, and for one of them; beyond: the others wait. Admins' have no such bound. */
  concurrentLookups: 32,
  lookupsPerUser: 1,
  /**
   * Unsolicited messages of servers: all servers of one user count together, each server of an admin by itself. `cost`: CPU time of one
   * message of each kind, and of 64 pieces of less than 64 bytes that end no message (`crumbs`), in ms; `charactersPerMs`: how much of a
   * large message takes one more; `burst`: max at once, `perSecond`: per second; beyond: the server's output is not read for a while.
   * `owners`: max users that are counted.
   */
  unsolicited: {
    cost: { request: 1, notification: 0.1, response: 0.05, noise: 0.1, crumbs: 2 },
    charactersPerMs: 100_000,
    burst: 50,
    perSecond: 100,
    owners: 1_000
  },
  /** Max nesting depth of JSON from a client; beyond: 400. */
  requestDepth: 200,
  /** Bodies of the management API that are longer, in characters, are checked and counted before values are made of them. */
  steppedBody: 64 * 1024,
  /** Max values in such a body; beyond: 400. */
  requestValues: 1_000_000,
  /**
   * Max parameters of a query, or fields of a form; beyond: 400. What reads them compares each with all others in places, as the library
   * of the authorization server does.
   */
  parameters: 1_000,
  /** Max members of one object in such a body; beyond: 400. */
  requestMembers: 10_000,
  /** Max values in a server's config, its OpenAPI description apart; beyond: 400. */
  configValues: 10_000,
  /** Max words, and parameters of addresses, in the texts of a server's config that may be secrets; beyond: 400. */
  configWords: 4_000,
  /** Max values in the members of a group, the items that they select included; beyond: 400. */
  groupValues: 20_000,
  /** Max values in a request body for which all validation errors are reported; beyond: only the first one is. */
  findingValues: 256,
  /** Max pages per list of a server; beyond: the rest is left out, with a warning. */
  listPages: 1_000,
  /** Max items per list of a server; beyond: the rest is left out, with a warning. */
  listItems: 100_000,
  /** Max size of all items of one list, in bytes of memory; beyond: the rest is left out, with a warning. */
  listSize: 24 * 1024 * 1024,
  /** Max length of the instructions of one server, in characters; beyond: they are cut, with a warning. */
  instructions: 64 * 1024,
  /** Max length of the instructions of a merged route, in characters; beyond: those of further servers are left out. */
  mergedInstructions: 512 * 1024,
  /**
   * Max size of all that the servers of one user who is not an admin list, in bytes of memory; beyond: the rest is left out, with a
   * warning.
   */
  cataloguesPerUser: 16 * 1024 * 1024,
  /**
   * Lists that are read again because they changed, or their server was connected anew, of all servers of one user, or of one server of an
   * admin. `perSecond`: max size per second, in bytes of memory; `burst`: max size at once; beyond: they are read later.
   */
  catalogueReads: { perSecond: 1024 * 1024, burst: 4 * 1024 * 1024 },
  /** Max size of one item, and of the members of a list beside its items, in characters; beyond: left out, with a warning. */
  itemSize: 1024 * 1024,
  /** Max length of a description, in characters; beyond: it is cut. */
  description: 16 * 1024,
  /** Max wait of a merged list for a server that never answered, from the start of its connection, in ms; beyond: it is left out. */
  firstAnswerBudget: 900,
  /** Max wait of a list for a connected server's catalogue for a new set of client capabilities, in ms; beyond: it is left out. */
  newClass: 5_000,
  /** Min time until a list waits again for a catalogue that took longer than `newClass`, in ms. */
  newClassRetry: 60_000,
  /** Max wait of a call or list for one server that is still connecting, in ms; beyond: it fails. */
  connectionWait: 10_000,
  /**
   * Lists of servers that say how long theirs may be kept (`ttlMs`). `least`: min time between two readings for that reason, `most`: max
   * time for which a list counts as fresh, both in ms, whatever the server says.
   */
  freshLists: { least: 5_000, most: 60 * 60_000 },
  /** Max time for a server to answer a list request, in ms; beyond: the request counts as failed. */
  listTime: 15_000,
  /** Max time for a server that declares no tools to answer whether it has some, in ms; beyond: it has none. */
  undeclaredTools: 5_000,
  /** First delay before a failed list is requested again, in ms; it grows with each failure. */
  listRetry: 5_000,
  /** Max time for DNS look-up, TCP connection and TLS handshake to one address, in ms; beyond: it counts as unreachable. */
  connectTimeout: 10_000,
  /** Max size of the headers of one HTTP answer from a server, in bytes; beyond: the request fails. */
  upstreamHeaders: 16 * 1024,
  /** Max users whose servers' connections are shared by user; beyond: the oldest ones are closed, and opened again on demand. */
  outboundOwners: 1_000,
  /** Max proxies whose connections are shared; beyond: the oldest is dropped, and connected again on demand. */
  proxies: 64,

  /** Max sessions of REST callers (`x-session-id`), with a share for each owner; beyond: the least recently used one ends. */
  restSessions: 1_000,
  /** Max time that such a session may go without a call, in ms; beyond: it ends. */
  restSessionIdle: 30 * 60_000,
  /** Max size of an input schema by which arguments are validated, in characters; beyond: only the server validates them. */
  checkedSchema: 256 * 1024,
  /**
   * Worker threads. `threads`: max number, of which one owner has all but one; beyond: tasks wait, and owners take turns. `heap`: max heap
   * of each, in MB, `loading`: max time to load a module, in ms; beyond: the task is stopped, and its thread ends. `idle`: max time without
   * a task, in ms; beyond: the thread ends. `tasks`: max tasks that run or wait, with a share for each owner; beyond: 429 or 503.
   */
  workers: { threads: 2, heap: 96, loading: 30_000, idle: 60_000, tasks: 1_000 },
  /**
   * Arguments of plain HTTP callers, read and validated by the input schema of the tool. `time`: max time, in ms; beyond: only the server
   * validates them, without a further attempt by that schema for `backoff`, in ms; where they are longer than `large`, in characters: 400.
   * Of arguments longer than `large` only the first error is found.
   */
  argumentChecks: { time: 2_000, backoff: 60_000, large: 64 * 1024 },
  /**
   * Large tools described in OpenAPI documents. `large`: min size of one that is translated in a worker thread, in characters; `time`: max
   * time of that, in ms; beyond: it is described as taking any object. `stopped`: max tools of one server that may take too long; beyond:
   * its other large ones are described so as well, without an attempt.
   */
  translations: { large: 8_000, time: 1_000, stopped: 3 },
  /** Max OpenAPI documents cached; beyond: the least recently used one is dropped, and built again on demand. */
  documents: 64,
  /** Max size of those documents together, in bytes; beyond: the least recently used ones are dropped. */
  documentsSize: 32 * 1024 * 1024,
  /** Max size of one OpenAPI document, in bytes; beyond: 503, with the advice to ask for fewer servers. */
  documentSize: 32 * 1024 * 1024,
  /** Max size of the tools that are kept as they stand in documents, in bytes of memory; beyond: all are dropped, and written again. */
  operationsSize: 16 * 1024 * 1024,
  /** Max OpenAPI documents queued to be built, with a share for each owner; beyond: 429 or 503. Owners take turns. */
  documentsWaiting: 64,

  /** Bounds of servers of type `openapi`. */
  openapi: openapiServers,

  /**
   * Catalogues of other services. `answer`: max size of one answer, in bytes, `depth`: max nesting of it, `time`: max time for it, in ms;
   * beyond: 502, or what the service said before. `requests`: max requests at the same time, with a share for each owner; beyond: 429 or
   * 503. `answers`, `size`: max answers that are kept, and their size together, in bytes; beyond: the oldest is dropped. `fresh`: time
   * until an answer is asked for again, `retry`: time until a service that failed is, in ms. `entries`: max entries of one answer;
   * beyond: the rest is left out. `pages`: max pages of a list that is read as a whole; beyond: the same.
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
   * Uploads of bundles. `upload`: max size, in bytes; beyond: 413. `uploads`: max that are received or wait to be unpacked, which happens
   * one at a time, with a share for each owner; beyond: 429 or 503. `idle`, `time`: max time without a byte, and of the whole upload, in
   * ms; beyond: 408. `manifest`: max size of the manifest, in bytes. `archive`: the content, as `ArchiveBounds` says; beyond all of these:
   * 400.
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
   * Search by words. Of a tool: `text`: max characters of a description, `properties`: max properties of a schema, to a `depth`,
   * `parameterText`: max characters of the description of each, `values`: max values that it may have, `terms`: max terms; of a question:
   * `question`: max characters, `words`: max words, `misspelled`: max words that are looked up as misspelled, `variants`: max terms that
   * one word may stand for; beyond: the rest is not read. `cachedWords`: max words whose stems are cached, `cachedTexts`: max
   * texts of parameters; beyond: all are forgotten.
   */
  wordSearch: {
    text: 6_000,
    properties: 100,
    depth: 4,
    parameterText: 400,
    values: 16,
    terms: 350,
    question: 2_000,
    words: 40,
    misspelled: 4,
    variants: 32,
    cachedWords: 100_000,
    cachedTexts: 10_000
  },

  compression: {
    /** Max size of the results that wait to be compressed, in bytes of memory, with a share for each owner; beyond: one stays as it is. */
    waiting: 64 * 1024 * 1024,
    /** Max time to compress one result, in ms; beyond: it stays as it is. */
    time: 20_000,
    /** Max heap of the thread that compresses, in MB; beyond: the result stays as it is. */
    heap: 256,
    /** Max time that the thread may be idle, in ms; beyond: it ends. */
    idle: 60_000,
    /** Max size of all originals that are kept, in bytes; beyond: the oldest of the principal that holds most are forgotten. */
    originals: 128 * 1024 * 1024,
    /** How long an original can be read, in ms. */
    kept: 3_600_000,
    /** Max size of one answer with a part of an original, in bytes; beyond: it is read in several parts. */
    part: 1024 * 1024
  },

  /**
   * `$smart`. `indexes`: max sets of tools that are indexed, and `tools`: max tools in all of them but the last, 7 KB each; beyond: the
   * index that was used longest ago is dropped, and built again on demand. `inUse`: time after a search in which an index follows its view,
   * in ms; later: with the next search. `query`: max length of a question, in characters; beyond: it is cut. `servers`: max length
   * of the list of servers in a tool's description, in characters; beyond: the others are counted. `found`: size that a found tool may
   * have in an answer, on average, and `only`: that of a search for one tool, in characters of JSON; beyond: schemas and descriptions are
   * shortened. `schema`: max size of a tool whose schema is read to be answered, in characters; beyond: it is left out.
   */
  smartRouting: {
    indexes: 64,
    tools: 50_000,
    inUse: 5 * 60_000,
    query: 2_000,
    servers: 250,
    found: 300,
    only: 24 * 1024,
    schema: 64 * 1024,
    /**
     * `text`: max length of a tool's text that is embedded, in characters; beyond: it is cut. `perOwner`, `all`: max texts of the servers
     * of one user who is not an admin, and of all, per `window` in ms; beyond: those tools are found by words only. `waiting`: max tools
     * that wait to be embedded; beyond: the same. `known`: max vectors that are known to be stored; beyond: the oldest is looked up again.
     * `batch`: texts of one request, `lookUps`: ids of one query. `answer`: max size of an answer of the API, in bytes, `numbers`: of one
     * embedding, `time`: max time for an answer, in ms; beyond: the request failed. `lease`: how long one replica embeds while the others
     * wait, and `poll`: how often they look, in ms. `overQuota`: time until tools beyond `perOwner` or `all` are tried again, in ms.
     * `questions`: max questions whose embeddings are kept; beyond: the oldest is dropped. `wait`: max time that a search waits for
     * embeddings, in ms; beyond: it is by words. `nearest`: tools that are ranked by meaning. `pending`: share of the tools that may
     * still have to be embedded; beyond: a search is by words. `marked`: how often the vectors of tools that are there are marked as in
     * use, and `unused`: time after which others are removed, in ms: `removed` of them at once, with a pause of `poll`.
     */
    embeddings: {
      text: 2_000,
      perOwner: 1_000,
      all: 50_000,
      window: 60 * 60_000,
      waiting: 50_000,
      known: 200_000,
      batch: 32,
      lookUps: 1_000,
      answer: 32 * 1024 * 1024,
      numbers: 65_536,
      time: 10_000,
      lease: 30_000,
      poll: 1_000,
      overQuota: 60_000,
      questions: 500,
      wait: 250,
      nearest: 200,
      pending: 0.02,
      marked: 24 * 60 * 60_000,
      unused: 30 * 24 * 60 * 60_000,
      removed: 200
    }
  },

  /** Max lines of a child's stderr logged per second, and their size in characters; beyond: the others are counted. */
  stderrLines: { lines: 100, size: 32 * 1024 }
} as const
