/** Bounds of servers of type `openapi`; beyond, where nothing else is said: the description is refused. */
export const openapiServers = {
  /** Max size of a description, in bytes. */
  document: 32 * 1024 * 1024,
  /** Max values in a description; the target of a YAML alias counts each time. */
  values: 5_000_000,
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
  /** Max size of what is kept of one operation to call it, in characters; beyond: it is left out, with a warning. */
  plan: 256 * 1024,
  /** Max size of a description's tools, and of what is kept to call them, in characters; beyond: the rest is left out, with a warning. */
  total: 24 * 1024 * 1024,
  /** Max size of one tool's input schema, in characters; beyond: it loses descriptions, then depth. */
  schema: 64 * 1024,
  /** Max length of the server instructions made from a description, in characters; beyond: they are cut. */
  instructions: 4 * 1024,
  /** Max warnings listed one by one per description; beyond: the others are counted. */
  warnings: 20,
  /** Max size of one page of the list of tools, and of what is kept to call them, in characters; beyond: the next page begins. */
  page: 128 * 1024,
  /** Max size of an answer of the API, in bytes; beyond: the call fails. */
  answer: 16 * 1024 * 1024,
  /** Max length of the body of an API error that goes into the result, in characters; beyond: it is cut. */
  errorBody: 64 * 1024,
  /** Max size of an answer of an OAuth token endpoint, in bytes; beyond: the call fails. */
  token: 1024 * 1024,
  /** Max time for a token endpoint to answer, in ms; beyond: the call fails. */
  tokenTime: 30_000
} as const
