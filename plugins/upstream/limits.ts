/** Bounds of servers. docs/limits.md is generated from them. */
export const upstreamLimits = {
  /**
   * Logins at upstream servers. `holders`: max logins of one server in memory; beyond: the least recently used one is
   * dropped, and read again on demand. `flows`: max logins that wait for their user; beyond: the oldest login link
   * expires. `told`: max clients that are notified when one login ends; beyond: the others must retry on their own.
   * `flowTime`: how long a login link is valid, in ms. `document`: max size of a response of an authorization server,
   * in bytes, `time`: max time for it, in ms; beyond: the login fails. `token`: max length of a token, in characters;
   * beyond: the login fails.
   */
  login: {
    holders: 1_000, flows: 1_000, told: 100, flowTime: 60 * 60_000, document: 256 * 1024, time: 15_000, token: 12 * 1024
  },

  /**
   * Tests of servers before they are stored. `places`: max at the same time, `perOwner`: max of one owner; beyond: 429.
   * `time`: max time of one test, in ms; beyond: the test fails.
   */
  serverTests: { places: 8, time: 60_000 },

  /**
   * Questions of modern servers to clients of earlier revisions. `rounds`: max times that one call is answered with
   * questions, `questions`: max in one such answer; beyond: the call fails. `pause`: time until a request without
   * questions is sent again, in ms, multiplied by the number of the round. `headerPages`: max pages of tools that are
   * read to learn the headers of one tool; beyond: the tool is called without them.
   */
  inputRounds: { rounds: 32, questions: 32, pause: 100, headerPages: 100 },

  /**
   * Max sets of client capabilities whose catalogues are cached per server; beyond: the oldest catalogue is dropped,
   * and read again on demand.
   */
  classesPerServer: 32,

  /**
   * Requests to a server that keeps failing. `failures`: max connections and requests that fail one after the other;
   * beyond: requests are refused with -32001 until the server answers a check. `pause`: max time until the next check,
   * in ms.
   */
  circuit: { failures: 5, pause: 10_000 },

  /** Max notifications of clients that wait for one connection to be opened; beyond: they are dropped. */
  waitingNotifications: 16,

  /**
   * Max tasks, and max URL elicitations, awaited per upstream connection; beyond: the oldest of the owner with the most
   * is forgotten, finished tasks first, and its notifications are dropped.
   */
  tasksPerConnection: 1_000,

  /** Max time that an awaited task is remembered, in ms; beyond: its notifications are dropped. */
  taskTime: 60 * 60_000,

  /**
   * Max upstream connections per server, with a share for each owner; beyond: the oldest idle one is closed (one of the
   * same owner, if its share is used up); -32001 when none is idle and none is `leftUnanswered`.
   */
  linksPerServer: 64,

  /**
   * Time after which a question is treated as unanswered, in ms: when an owner has used up its share of connections,
   * the connection whose calls have all waited longest for answers is closed.
   */
  leftUnanswered: 10_000,

  /** Max processes of one stdio server that one owner causes to run; beyond: its oldest idle one ends, or -32001. */
  childrenPerOwner: 8,

  /** Max processes of all stdio servers that one owner causes to run; beyond: its oldest idle one ends, or -32001. */
  allChildrenPerOwner: 16,

  /**
   * How often one owner may cause a process of a stdio server to be started. `burst`: max starts at once; `interval`:
   * time after which one more start is allowed, in ms; beyond: -32001.
   */
  childStarts: { burst: 16, interval: 2_000 },

  /**
   * Max servers that are being spawned or connected to at the same time; beyond: the others wait, and owners take
   * turns.
   */
  concurrentSpawns: 4,

  /** Max of `concurrentSpawns` for one user who is not an admin. One slot is reserved for admins' servers. */
  concurrentSpawnsPerUser: 2,

  /** Max pages per list of a server; beyond: the rest is left out, with a warning. */
  listPages: 1_000,

  /** Max items per list of a server; beyond: the rest is left out, with a warning. */
  listItems: 100_000,

  /** Max size of all items of one list, in bytes of memory; beyond: the rest is left out, with a warning. */
  listSize: 24 * 1024 * 1024,

  /** Max length of the instructions of one server, in characters; beyond: they are cut, with a warning. */
  instructions: 64 * 1024,

  /**
   * Max size of the lists of all servers of one user who is not an admin, in bytes of memory; beyond: the rest is left
   * out, with a warning.
   */
  cataloguesPerUser: 16 * 1024 * 1024,

  /**
   * Rate at which lists are read again because they changed or their server was reconnected, for all servers of one
   * user, or for one server of an admin. `perSecond`: max size per second, in bytes of memory; `burst`: max size at
   * once; beyond: they are read later.
   */
  catalogueReads: { perSecond: 1024 * 1024, burst: 4 * 1024 * 1024 },

  /**
   * Max size of one item, and of the members of a list beside its items, in characters; beyond: left out, with a
   * warning.
   */
  itemSize: 1024 * 1024,

  /** Max length of a description, in characters; beyond: it is cut. */
  description: 16 * 1024,

  /** Min time before list requests wait again for a catalogue that took longer than `newClass`, in ms. */
  newClassRetry: 60_000,

  /** Max time for a server to answer a list request, in ms; beyond: the request fails. */
  listTime: 15_000,

  /**
   * Max time for a server that declares no tools to answer `tools/list`, in ms; beyond: it is treated as having none.
   */
  undeclaredTools: 5_000,

  /** First delay before a failed list is requested again, in ms; it grows with each failure. */
  listRetry: 5_000,

  /** Bounds of servers of type `openapi`; beyond, unless stated otherwise: the description is rejected. */
  openapi: {
    /** Max size of a description, in bytes. */
    document: 32 * 1024 * 1024,
    /** Max values in a description; the target of a YAML alias is counted at each use. */
    values: 5_000_000,
    /** Max characters of the texts and names in a description, counted in the same way. */
    characters: 64 * 1024 * 1024,
    /** Max nesting depth of a description. */
    depth: 300,
    /** Max descriptions read at the same time; beyond: the others wait. */
    readers: 2,
    /** Max time to read one description, in ms. */
    readTime: 30_000,
    /** Max heap of the thread that reads one description, in MB. */
    readHeap: 1_024,
    /** Max time that such a thread may be idle, in ms; beyond: it ends. */
    readIdle: 5_000,
    /** Max operations per description; beyond: the rest is left out, with a warning. */
    operations: 10_000,
    /**
     * Max size of the request plan of one operation, in characters; beyond: the operation is left out, with a warning.
     */
    plan: 256 * 1024,
    /**
     * Max size of a description's tools and request plans, in characters; beyond: the rest is left out, with a warning.
     */
    total: 24 * 1024 * 1024,
    /**
     * Max size of one tool's input schema, in characters; beyond: descriptions are removed, then the deepest levels.
     */
    schema: 64 * 1024,
    /** Max length of the server instructions made from a description, in characters; beyond: they are cut. */
    instructions: 4 * 1024,
    /** Max warnings listed one by one per description; beyond: the others are counted. */
    warnings: 20,
    /**
     * Max size of the tools and request plans on one page of the tool list, in characters; beyond: a new page begins.
     */
    page: 128 * 1024,
    /** Max size of an answer of the API, in bytes; beyond: the call fails. */
    answer: 16 * 1024 * 1024,
    /** Max length of an API error's body in the result, in characters; beyond: it is cut. */
    errorBody: 64 * 1024,
    /** Max size of an answer of an OAuth token endpoint, in bytes; beyond: the call fails. */
    token: 1024 * 1024,
    /** Max time for a token endpoint to answer, in ms; beyond: the call fails. */
    tokenTime: 30_000
  },

  /** Max lines of a child's stderr logged per second, and their size in characters; beyond: the others are counted. */
  stderrLines: { lines: 100, size: 32 * 1024 }
} as const
