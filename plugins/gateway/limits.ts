/** Bounds of the gateway. docs/limits.md is generated from them. */
export const gatewayLimits = {
  /**
   * Built-in prompts, resources and skills. `items`: max of each kind; `size`: max size of all of them together, in
   * characters of JSON; beyond: 503. `skillFiles`: max files of a skill; `name`, `uri`, `text`: max length of a
   * prompt's or skill's name, a resource's URI, a template or content, in characters; `arguments`: max per prompt;
   * beyond: 400. `filled`: max length of a prompt with its arguments, in characters; beyond: -32602.
   */
  builtIns: {
    items: 1_000,
    size: 16 * 1024 * 1024,
    name: 64,
    uri: 2_048,
    text: 1024 * 1024,
    arguments: 100,
    filled: 1024 * 1024,
    skillFiles: 512
  },

  /** Max requests in flight at servers, with a share for each owner; beyond: 429, 503 or -32001. */
  calls: 10_000,

  /** Max open `events/stream` requests, with a share for each owner; beyond: 429 or 503. */
  eventStreams: 10_000,

  /** Max size of one broadcast log message times its listeners, in characters; beyond: it is dropped. */
  broadcastSize: 128 * 1024 * 1024,

  /** Max time for a client to answer a server's request, in ms; beyond: the server gets an error. */
  questionTimeout: 10 * 60_000,

  /** Max resource subscriptions per session and server; beyond: -32000. */
  subscriptionsPerSession: 1_000,

  /**
   * Subscriptions to resources, of legacy and modern clients. `size`: max size of all of them, in bytes of memory of
   * their URIs and `cost` for each, with a share for each owner; beyond: -32001. `levels`: how many levels of the URI
   * of an update are compared.
   */
  subscriptions: { size: 32 * 1024 * 1024, cost: 256, levels: 100 },

  /** Max size of one page of a merged or other list, in characters; beyond: there is another page. */
  listPage: 4 * 1024 * 1024,

  /**
   * Max size of the lists that are kept as they are sent, in bytes; beyond: all are dropped, and written again on
   * demand.
   */
  keptLists: 32 * 1024 * 1024,

  /** Max surfaces cached; beyond: the oldest is dropped, and built again on demand. */
  surfaces: 256,

  /** Max items in all cached surfaces, some 150 bytes each; beyond: the oldest surface is dropped. */
  surfaceItems: 500_000,

  /**
   * Max items that a server does not list any more and keeps the names of, per kind of items; beyond: the oldest names
   * are free again.
   */
  formerItems: 1_000,

  /** Max size of the own name or URI of such an item, in bytes of memory; beyond: it is free again. */
  formerItemKey: 1_024,

  /**
   * Max size of all those names or URIs of a server, per kind of items, in bytes of memory; beyond: the oldest are free
   * again.
   */
  formerItemsSize: 64 * 1024,

  /**
   * Max servers that could have an item of the same name, besides the one that has; beyond: it gets a hash in its name.
   */
  nameRivals: 8,

  /**
   * Max comparisons of users' resources with admins' templates per surface; beyond: merged routes leave the other ones
   * of users out.
   */
  templateComparisons: 200_000,

  /**
   * Max work of finding the templates that a URI matches: for each literal within a template that is looked for, its
   * length times that of the URI, in characters. Beyond: no further template matches.
   */
  templateWork: 10_000_000,

  /**
   * Max resources remembered from resource links in results; beyond: the oldest of the principal that has most is
   * forgotten, and read only on its server's own routes.
   */
  resourceLinks: 10_000,

  /**
   * Max tasks remembered for lists and notifications; beyond: the oldest of the principal that has most is forgotten,
   * and can still be asked for by its id.
   */
  tasks: 10_000,

  /** Max time that a task is listed after its last change, in ms; beyond: it can still be asked for by its id. */
  taskTime: 24 * 60 * 60_000,

  /** Max length of the state of a listed task, in characters, and max time for which a server keeps it, in ms. */
  taskState: 100,
  taskTtl: 365 * 24 * 60 * 60_000,

  /**
   * Max size of the id of a task or a URL elicitation, or of the progress token of a call that began a task, in bytes
   * of memory; beyond: it is not remembered.
   */
  rememberedId: 1_024,

  /**
   * Max size of a client header that is passed on to a server (`passthroughHeaders`), in bytes; beyond: 400 or -32602.
   */
  passthroughHeader: 8 * 1024,

  /** Max length of the instructions of a merged route, in characters; beyond: those of further servers are left out. */
  mergedInstructions: 512 * 1024,

  /**
   * Max wait of a merged list for a server that never answered, from the start of its connection, in ms; beyond: it is
   * left out.
   */
  firstAnswerBudget: 900,

  /**
   * Max wait of a list for a connected server's catalogue for a new set of client capabilities, in ms; beyond: it is
   * left out.
   */
  newClass: 5_000,

  /** Max wait of a call or list for one server that is still connecting, in ms; beyond: it fails. */
  connectionWait: 10_000,

  /**
   * Lists of servers that say how long theirs may be kept (`ttlMs`). `least`: min time between two readings for that
   * reason, `most`: max time for which a list counts as fresh, both in ms, whatever the server says.
   */
  freshLists: { least: 5_000, most: 60 * 60_000 }
} as const
