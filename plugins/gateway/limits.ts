/** Limits of the gateway. docs/limits.md is generated from them. */
export const gatewayLimits = {
  /**
   * Built-in prompts, resources and skills. `items`: max of each kind; `size`: max total size, in characters of JSON;
   * beyond either, the status 503. `skillFiles`: max files of a skill; `name`: max length of a prompt's or skill's
   * name, `uri`: of a resource's URI, `text`: of a template or content, in characters; `arguments`: max arguments of a
   * prompt; beyond that, the status 400. `filled`: max length of a prompt with its arguments, in characters; beyond
   * that, the error -32602.
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

  /**
   * Max requests in flight at servers, with a share for each owner; beyond that, the status 429 or 503, or the error
   * -32001.
   */
  calls: 10_000,

  /** Max open `events/stream` requests, with a share for each owner; beyond that, the status 429 or 503. */
  eventStreams: 10_000,

  /**
   * Max length of a server's notification to several clients, in characters, multiplied by the number of these clients;
   * beyond that, the notification is dropped.
   */
  broadcastSize: 128 * 1024 * 1024,

  /** Max time for a client to answer a server's request, in ms; beyond that, the server gets an error. */
  questionTimeout: 10 * 60_000,

  /** Max resource subscriptions per session and server; beyond that, the error -32000. */
  subscriptionsPerSession: 1_000,

  /**
   * Resource subscriptions of legacy and modern clients. `size`: max total size, with a share for each owner: for each
   * subscription the memory of its URI plus `cost`, in bytes; beyond that, the error -32001. `levels`: max path
   * levels of an updated URI that are compared with the subscribed URIs.
   */
  subscriptions: { size: 32 * 1024 * 1024, cost: 256, levels: 100 },

  /** Max size of one page of a list, in characters; beyond that, there is another page. */
  listPage: 4 * 1024 * 1024,

  /**
   * Max size of the serialized lists that are cached, in bytes; beyond that, all are dropped, and serialized again on
   * demand.
   */
  keptLists: 32 * 1024 * 1024,

  /** Max cached surfaces; beyond that, the oldest is dropped, and built again on demand. */
  surfaces: 256,

  /** Max items in all cached surfaces, about 150 bytes each; beyond that, the oldest surface is dropped. */
  surfaceItems: 500_000,

  /**
   * Max items that a server no longer lists but whose names are reserved for it, per kind of items; beyond that, the
   * oldest names are free again.
   */
  formerItems: 1_000,

  /**
   * Max size of a name or URI that is reserved for an item that its server no longer lists, in bytes of memory; beyond
   * that, the name or URI is free again.
   */
  formerItemKey: 1_024,

  /**
   * Max total size of a server's reserved names or URIs, per kind of items, in bytes of memory; beyond that, the oldest
   * are free again.
   */
  formerItemsSize: 64 * 1024,

  /** Max other servers that could have an item of the same name; beyond that, the item gets a hash in its name. */
  nameRivals: 8,

  /**
   * Max comparisons of users' resources with admins' templates per surface; beyond that, merged routes omit the
   * remaining resources of users.
   */
  templateComparisons: 200_000,

  /**
   * Max work of matching a URI with templates: for each literal of a template that is searched for, its length times
   * the length of the URI, in characters; beyond that, no template that needs a search matches.
   */
  templateWork: 10_000_000,

  /**
   * Max resources remembered from resource links in results; beyond that, the oldest resource of the principal with the
   * most resources is forgotten, and can then be read only on its server's own routes.
   */
  resourceLinks: 10_000,

  /**
   * Max tasks remembered for lists and notifications; beyond that, the oldest task of the principal with the most tasks
   * is forgotten, but can still be requested by its id.
   */
  tasks: 10_000,

  /** Max time that a task is listed after its last change, in ms; beyond that, it can still be requested by its id. */
  taskTime: 24 * 60 * 60_000,

  /** Max length of a task's state in lists, in characters; beyond that, it is truncated. */
  taskState: 100,

  /** Max lifetime of a task (`ttl`) that is recorded, in ms; a longer one that a server states is reduced to this. */
  taskTtl: 365 * 24 * 60 * 60_000,

  /**
   * Max size of the id of a task or a URL elicitation, or of the progress token of a call that created a task, in bytes
   * of memory; beyond that, a call that creates the task fails; other ids and tokens are not remembered.
   */
  rememberedId: 1_024,

  /**
   * Max size of a client header forwarded to a server (`passthroughHeaders`), in bytes; a request with a larger one is
   * refused with the status 400 or the error -32602.
   */
  passthroughHeader: 8 * 1024,

  /**
   * Max length of the instructions of a merged route, in characters; beyond that, the instructions of further servers
   * are omitted.
   */
  mergedInstructions: 512 * 1024,

  /**
   * Max wait of a merged list for a server that connects for the first time, or whose lists are being read again, in
   * ms; beyond that, the list omits the server, or has its former items.
   */
  firstAnswerBudget: 900,

  /**
   * Max wait of a list until a connected server has stated what it lists for clients with a new set of capabilities, in
   * ms; beyond that, the list has what the server lists to clients without capabilities, or omits the server if that is
   * unknown, too. Merged lists do not wait if that is known.
   */
  newClass: 5_000,

  /** Max wait of a call or list for a single server that is still connecting, in ms; beyond that, it fails. */
  connectionWait: 10_000,

  /**
   * Lists of servers that state how long the lists may be cached (`ttlMs`). `least`: min time between two reads of
   * expired lists, `most`: max time for which a list is considered fresh; both in ms, regardless of what the server
   * states.
   */
  freshLists: { least: 5_000, most: 60 * 60_000 }
} as const
