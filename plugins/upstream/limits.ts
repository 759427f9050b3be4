/** The limits of upstream servers, and of connections and requests to them; docs/limits.md is generated from this. */
export const upstreamLimits = {
  /**
   * Logins at upstream servers. `holders`: max logins of one server in memory; beyond that, the least recently used one
   * is dropped, and read again on demand. `flows`: max logins that wait for their user; beyond that, the oldest login
   * link expires. `notified`: max clients that are notified when one login ends; beyond that, the others must retry on
   * their own. `flowTime`: how long a login link is valid, in ms. `document`: max size of a response of an
   * authorization server, in bytes, `time`: max time for it, in ms; beyond that, the login fails. `token`: max length
   * of a token, in characters; beyond that, the login fails.
   */
  login: {
    holders: 1_000,
    flows: 1_000,
    notified: 100,
    flowTime: 60 * 60_000,
    document: 256 * 1024,
    time: 15_000,
    token: 12 * 1024
  },

  /**
   * Tests of servers before they are stored. `places`: max tests at the same time, with a share for each owner; beyond
   * that, the HTTP error 429 or 503. `time`: max time of one test, in ms; beyond that, the test fails.
   */
  serverTests: { places: 8, time: 60_000 },

  /**
   * Questions (requests for input) of servers with MCP 2026-07-28 to clients of earlier revisions. `rounds`: max
   * responses to one call that request input, `questions`: max questions in one such response; beyond that, the call
   * fails. `pause`: time until a call is repeated after a response that requests input without asking a question, in
   * ms, multiplied by the number of the round. `headerPages`: max pages of `tools/list` that are read to find the
   * headers of one tool; beyond that, the tool is called without these headers.
   */
  inputRounds: { rounds: 32, questions: 32, pause: 100, headerPages: 100 },

  /**
   * Max sets of client capabilities whose catalogues are cached per server; beyond that, the oldest catalogue is
   * dropped, and read again on demand.
   */
  classesPerServer: 32,

  /**
   * Requests to a server that keeps failing. `failures`: number of consecutive failures, of connections or requests,
   * after which requests are refused with -32001 until the server answers a check. `pause`: max time until the next
   * check, in ms.
   */
  circuit: { failures: 5, pause: 10_000 },

  /** Max client notifications that wait for one connection to be opened; beyond that, new ones are dropped. */
  waitingNotifications: 16,

  /**
   * Max awaited tasks, and max awaited URL elicitations, per upstream connection; beyond that, the owner with the most
   * loses its oldest entry, finished tasks first, and notifications about that entry are dropped.
   */
  tasksPerConnection: 1_000,

  /** Max time that an awaited task is remembered, in ms; beyond that, its notifications are dropped. */
  taskTime: 60 * 60_000,

  /**
   * Max upstream connections per server, with a share for each owner; beyond that, the connection that has been idle
   * for longest is closed (one of the same owner, if its share is used up). If none is idle or `leftUnanswered`, the
   * request fails with -32001.
   */
  linksPerServer: 64,

  /**
   * Time after which a server's question to a client is treated as unanswered, in ms. When an owner has used up its
   * share of connections and none is idle, one is closed: of the connections whose calls have all waited at least this
   * long for answers of clients, the one that has waited longest.
   */
  leftUnanswered: 10_000,

  /**
   * Max processes of one stdio server that run for one owner; beyond that, the process that has been idle for longest
   * is ended. If none is idle or `leftUnanswered`, the request fails with -32001.
   */
  childrenPerOwner: 8,

  /**
   * Max processes of all stdio servers that run for one owner; beyond that, the process of the requested server that
   * has been idle for longest is ended. If none is idle or `leftUnanswered`, the request fails with -32001.
   */
  allChildrenPerOwner: 16,

  /**
   * How often one owner may cause a process of a stdio server to be started. `burst`: max starts at once; `interval`:
   * time after which one more start is allowed, in ms; beyond that, the request fails with -32001.
   */
  childStarts: { burst: 16, interval: 2_000 },

  /**
   * Max servers that are being spawned or connected to at the same time; beyond that, the others wait, and owners take
   * turns.
   */
  concurrentSpawns: 4,

  /** Max of `concurrentSpawns` for one user who is not an admin. One slot is reserved for admins' servers. */
  concurrentSpawnsPerUser: 2,

  /** Max pages per list of a server; beyond that, the rest is omitted, with a warning. */
  listPages: 1_000,

  /** Max items per list of a server; beyond that, the rest is omitted, with a warning. */
  listItems: 100_000,

  /** Max size of all items of one list, in bytes of memory; beyond that, the rest is omitted, with a warning. */
  listSize: 24 * 1024 * 1024,

  /** Max length of the instructions of one server, in characters; beyond that, they are truncated, with a warning. */
  instructions: 64 * 1024,

  /**
   * Max size of the lists of all servers of one user who is not an admin, in bytes of memory; beyond that, the rest is
   * omitted, with a warning.
   */
  cataloguesPerUser: 16 * 1024 * 1024,

  /**
   * Max size of what a server lists only to clients with certain capabilities, users or sessions, in bytes of memory;
   * beyond that, these clients get the lists of clients without capabilities, if these are known, with a warning.
   */
  otherLists: 32 * 1024 * 1024,

  /**
   * Rate at which lists are read again because they changed or their server was reconnected, for all servers of one
   * user, or for one server of an admin. `perSecond`: max size per second, in bytes of memory; `burst`: max size at
   * once; beyond that, they are read later.
   */
  catalogueReads: { perSecond: 1024 * 1024, burst: 4 * 1024 * 1024 },

  /**
   * Max size of one item, and of the other members of a list result, in characters; beyond that, the item or these
   * members are omitted, with a warning.
   */
  itemSize: 1024 * 1024,

  /** Max length of the description of an item, such as a tool, in characters; beyond that, it is truncated. */
  description: 16 * 1024,

  /**
   * Time during which list requests no longer wait for a catalogue, after such requests have waited in vain for the
   * gateway's limit `newClass`, in ms.
   */
  newClassRetry: 60_000,

  /** Max time for a server to answer a list request, in ms; beyond that, the request fails. */
  listTime: 15_000,

  /**
   * Max time for a server that declares no tools to answer `tools/list`, in ms; beyond that, it is treated as having
   * none.
   */
  undeclaredTools: 5_000,

  /** Delay before a list is requested again after its first failure, in ms; it grows with each further failure. */
  listRetry: 5_000,

  /**
   * Limits of servers of type `openapi`. Beyond a limit, the OpenAPI description is rejected, unless stated otherwise.
   */
  openapi: {
    /** Max size of a description, in bytes. */
    document: 32 * 1024 * 1024,
    /** Max JSON or YAML values in a description; the target of a YAML alias is counted at each use. */
    values: 5_000_000,
    /**
     * Max characters of the strings and member names in a description; the target of an alias is counted at each use.
     */
    characters: 64 * 1024 * 1024,
    /** Max nesting depth of a description. */
    depth: 300,
    /** Max descriptions read at the same time; beyond that, the others wait. */
    readers: 2,
    /** Max time to read one description, in ms. */
    readTime: 30_000,
    /** Max heap of the thread that reads one description, in MB. */
    readHeap: 1_024,
    /** Max time that a thread that reads descriptions may be idle, in ms; beyond that, it ends. */
    readIdle: 5_000,
    /** Max operations per description; beyond that, the rest is omitted, with a warning. */
    operations: 10_000,
    /**
     * Max size of the request plan of one operation, in characters; beyond that, the operation is omitted, with a
     * warning.
     */
    plan: 256 * 1024,
    /**
     * Max size of a description's tools and request plans, in characters; beyond that, the rest is omitted, with a
     * warning.
     */
    total: 24 * 1024 * 1024,
    /**
     * Max size of one tool's input schema, in characters; beyond that, descriptions are removed, then the deepest
     * levels.
     */
    schema: 64 * 1024,
    /**
     * Max length of the server instructions made from a description, in characters; beyond that, they are truncated.
     */
    instructions: 4 * 1024,
    /** Max warnings listed one by one per description; beyond that, further warnings are only counted. */
    warnings: 20,
    /** Size of the tools on one page of the tool list, in characters, at which the next page begins. */
    page: 128 * 1024,
    /** Max size of a response from the HTTP API, in bytes; beyond that, the call fails. */
    answer: 16 * 1024 * 1024,
    /** Max length of an API error's body in the result, in characters; beyond that, it is truncated. */
    errorBody: 64 * 1024,
    /** Max size of a response from an OAuth token endpoint, in bytes; beyond that, the call fails. */
    token: 1024 * 1024,
    /** Max time for a token endpoint to answer, in ms; beyond that, the call fails. */
    tokenTime: 30_000
  },

  /**
   * Output lines of one server's process that are logged per second. `lines`: max number, `size`: max size in
   * characters; beyond that, further lines are only counted.
   */
  stderrLines: { lines: 100, size: 32 * 1024 }
} as const
