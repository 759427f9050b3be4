import { availableParallelism } from 'node:os'

/**
 * Limits of requests and memory, and limits that several folders of `plugins/` use. Sizes "in bytes of memory" are
 * those in V8: one byte per character of a text, or two if any character is above U+00FF (`memoryOf`). docs/limits.md
 * is generated from these comments and values.
 */
export const baseLimits = {
  /**
   * Log lines about a component that keeps failing: its first failure, then a summary every `summary`, and its
   * recovery; after a relapse, a component counts as recovered only once it has worked for `healthy` (both in ms).
   * `sentences`: max warnings about one server that are remembered, so that each is logged once per `summary`; beyond
   * that, the oldest are forgotten.
   */
  outages: { summary: 10 * 60_000, healthy: 60_000, sentences: 100 },

  /**
   * Max passwords hashed at the same time; beyond that, the others wait, and addresses take turns. If there are several
   * cores, one is left for calls.
   */
  concurrentHashes: Math.min(2, Math.max(1, availableParallelism() - 1)),

  /**
   * Max length of untrusted texts on HTML pages, in characters; beyond that, they are truncated. `name`: names of
   * clients; `host`: hosts of redirect targets, which are truncated at their start; `text`: sentences, addresses, and
   * users' names.
   */
  pageTexts: { name: 80, host: 256, text: 1_000 },

  /**
   * Clients that send slowly, in ms. `headers`: max time for the head of a request to arrive, `request`: for the whole
   * request; beyond that, HTTP 408, and the connection is closed. `interval`: how often connections are checked, which
   * adds to both.
   */
  slowSenders: { headers: 15_000, request: 30_000, interval: 5_000 },

  /**
   * Open connections of clients. `most`: max number, with a share for each address that is not a trusted proxy's.
   * Beyond the share, an idle connection of that address is closed; beyond `most`, an idle connection of the address
   * with the most connections; if none is idle, the new one. The max is lower if the process may open few files: a
   * quarter of its file limit, at least `reserve` and at most half of the limit, is kept for files, processes and
   * upstreams. `elsewhere`: max number on systems that do not report the file limit. `logInterval`: min time between
   * two log lines, in ms.
   */
  connections: { most: 30_000, reserve: 100, elsewhere: 4_000, logInterval: 60_000 },

  /**
   * HTTP/1.1 requests on one connection, including those of trusted proxies. `requests`: max pipelined requests without
   * an answer; beyond that, the connection is closed. `chunks`: max chunks of a body if their average size is below
   * `chunk`, in bytes; beyond that, HTTP 400. If a body is still being sent after the answer, `unread` bytes and
   * `unreadChunks` chunks of it are read and dropped, for `linger` ms; beyond that, the connection is closed.
   */
  arriving: { requests: 8, chunks: 1_000, chunk: 64, unread: 8 * 1024 * 1024, unreadChunks: 1_000, linger: 1_000 },

  /**
   * Default of `MEMORY_BUDGET`: max total memory of upstream answers being read, unread replies and request bodies, in
   * bytes; beyond that, the connection with the most unread bytes is closed. If that does not suffice, requests get
   * HTTP 429, 503, or error -32001. Bodies have a share for each owner.
   */
  memory: 256 * 1024 * 1024,

  /** Min time without reading before a client may be disconnected to make room for request bodies or answers, in ms. */
  readStall: 2_000,

  /**
   * Upstream answers up to this size, in bytes, do not count against the memory budget: most are that small, and
   * short-lived.
   */
  smallText: 64 * 1024,

  /**
   * Memory per byte of an upstream answer, while it is read and forwarded: for its bytes, its text, and the text of the
   * reply.
   */
  answerCost: 4,

  /** Memory per byte of an unread reply: for its text, and for its bytes in the socket's buffers. */
  unreadCost: 2,

  /** Request bodies up to this size, in bytes, do not count against the memory budget. */
  smallBody: 1024,

  /**
   * Memory per byte of a request body. A body that is parsed as a whole for a call over plain HTTP, and may take more,
   * such as a text of empty objects, counts for more.
   */
  bodyCost: 16,

  /**
   * Memory that parsed values take in addition to their JSON text, in bytes: `value` for each value, plus `container`
   * for each array or object and `member` for each member of an object.
   */
  valueCosts: { value: 48, container: 64, member: 192 },

  /**
   * Max host name look-ups at the same time, for servers of all users and for servers of one user; beyond that, the
   * others wait. Look-ups for servers of admins are not limited.
   */
  concurrentLookups: 32,
  lookupsPerUser: 1,

  /**
   * Unsolicited messages from servers: all servers of one user count together, each server of an admin by itself.
   * `cost`: CPU time that one message of each kind counts for, in ms; `crumbs`: the same for 64 pieces of less than 64
   * bytes each that complete no message; `charactersPerMs`: characters of a large message that cost one more ms;
   * `burst`: max CPU time at once, `perSecond`: per second, in ms; beyond that, the server's output is not read for a
   * while. `owners`: max users that are tracked.
   */
  unsolicited: {
    cost: { request: 1, notification: 0.1, response: 0.05, noise: 0.1, crumbs: 2 },
    charactersPerMs: 100_000,
    burst: 50,
    perSecond: 100,
    owners: 1_000
  },

  /** Max nesting depth of JSON from a client; beyond that, HTTP 400. */
  requestDepth: 200,

  /** Management API bodies longer than this, in characters, are checked for depth and size before they are parsed. */
  steppedBody: 64 * 1024,

  /** Max values in a body of the management API; beyond that, HTTP 400. */
  requestValues: 1_000_000,

  /**
   * Max parameters of a query, or fields of a form; beyond that, HTTP 400. Some parsers, such as the parser of the
   * authorization server's library, compare each parameter with all others.
   */
  parameters: 1_000,

  /** Max members of one object in a body of the management API; beyond that, HTTP 400. */
  requestMembers: 10_000,

  /** Max values in a request body for which all validation errors are reported; beyond that, only the first one is. */
  findingValues: 256,

  /**
   * Max time for DNS look-up, TCP connection and TLS handshake to one address, in ms; beyond that, it is treated as
   * unreachable.
   */
  connectTimeout: 10_000,

  /** Max size of the headers of one HTTP answer from a server, in bytes; beyond that, the request fails. */
  upstreamHeaders: 16 * 1024,

  /**
   * Max users with a pool of shared connections to their servers; beyond that, the oldest pool is dropped, and created
   * again on demand.
   */
  outboundOwners: 1_000,

  /** Max proxies whose connections are shared; beyond that, the oldest is dropped, and connected again on demand. */
  proxies: 64,

  /**
   * Max size of an input schema against which the gateway validates arguments, in characters; beyond that, only the
   * server validates them.
   */
  checkedSchema: 256 * 1024,

  /**
   * Worker threads. `threads`: max number, of which one owner may use all but one; beyond that, tasks wait, and owners
   * take turns. `heap`: max heap of each, in MB, `loading`: max time to load a module, in ms; beyond that, the task is
   * stopped, and its thread ends. `idle`: max time without a task, in ms; beyond that, the thread ends. `kept`: max
   * length of a JSON text that a task parses, in characters; beyond that, the thread ends after the task, which frees
   * its memory. `tasks`: max running or waiting tasks, with a share for each owner; beyond that, HTTP 429 or 503.
   */
  workers: { threads: 2, heap: 96, loading: 30_000, idle: 60_000, kept: 256 * 1024, tasks: 1_000 },

  /**
   * Arguments of tool calls over plain HTTP, which are converted and validated against the tool's input schema. `time`:
   * max time, in ms; beyond that, arguments longer than `large`, in characters, get HTTP 400; others are converted,
   * but validated only by the server, and the gateway does not validate against that schema again for `backoff`, in ms.
   * For arguments longer than `large`, only the first error is found. `quick`: max length of arguments, and of a schema
   * without patterns, references and conditions, that are checked without a worker thread.
   */
  argumentChecks: { time: 2_000, backoff: 60_000, large: 64 * 1024, quick: { args: 4 * 1024, schema: 16 * 1024 } }
} as const
