/** Bounds of the extensions. docs/limits.md is generated from them. */
export const extensionsLimits = {
  /**
   * Pinned definitions of one server. `definitions`: max tools, prompts, skills and instructions; beyond that, `ask`
   * and `block` omit the others. `text`: max characters of all texts that are kept to show differences and to list
   * accepted definitions, `item`: max characters of one text; beyond either, only the digest is kept, and `block` omits
   * the item if it changes. `pending`: max definitions of one item that wait for an admin; beyond that, the oldest is
   * dropped. `variants`: max definitions of one item that are accepted for other users or clients; beyond that, the
   * oldest is considered changed. `reported`: max changes of one item that are remembered as reported; beyond that, the
   * oldest may be reported again.
   */
  pins: { definitions: 10_000, text: 4 * 1024 * 1024, item: 256 * 1024, pending: 8, variants: 32, reported: 16 },

  /**
   * Scan of definitions. `text`: max characters of one catalogue that are scanned; beyond that, the rest is not
   * scanned. `time`: max time of a scan, in ms; beyond that, the scan ends, and a warning says so.
   * `catalogues`: max catalogues of one server (for its users and kinds of clients) whose warnings are kept; beyond
   * that, the warnings about the oldest are dropped. `warnings`: max warnings in a server's record.
   */
  definitionScan: { text: 4 * 1024 * 1024, time: 10_000, catalogues: 8, warnings: 200 },

  /**
   * Records of calls that wait for a slow database. `entries`: max records, `size`: max memory of the records, in
   * bytes; beyond either, new calls are not recorded, but counted. `payload`: max size of an input or output, in bytes,
   * `message`: max size of an error message, in bytes; beyond that, the text is truncated.
   */
  activities: { entries: 10_000, size: 32 * 1024 * 1024, payload: 100 * 1024, message: 2 * 1024 },

  /**
   * The log that admins read. `entries`: max entries; beyond that, the oldest entry of the server with the most entries
   * is dropped; the gateway counts as a server, but only with its entries beyond half of `entries`. `message`: max
   * length of an entry, in characters; beyond that, it is truncated. `streams`: max open streams, with a share for each
   * admin; beyond that, the status 429 or 503.
   */
  logs: { entries: 5_000, message: 2 * 1024, streams: 20 },

  /**
   * Word search. For a tool: `text`: max characters of its description, `properties`: max properties of its schema,
   * `depth`: max levels of nested properties, `parameterText`: max characters of the description of a property,
   * `values`: max enumerated values of a property, `terms`: max terms; for a query: `question`: max characters,
   * `words`: max words, `misspelled`: max words checked for misspelling, `variants`: max terms that one word may stand
   * for; beyond that, the rest is ignored. `cachedWords`: max words whose stems are cached, `cachedTexts`: max cached
   * texts of parameters; beyond that, the cache is cleared.
   */
  wordSearch: {
    text: 6_000,
    properties: 100,
    depth: 4,
    parameterText: 400,
    values: 16,
    terms: 350,
    question: 4_000,
    words: 400,
    misspelled: 8,
    variants: 32,
    cachedWords: 100_000,
    cachedTexts: 10_000
  },

  /**
   * The operator's webhook. `maxWaiting`: max messages that wait for delivery; beyond that, new messages are dropped.
   * `timeout`: max time of one attempt, in ms, `pauses`: pause before each retry, in ms, `maxAnswer`: max size of the
   * webhook's response, in bytes.
   */
  notifications: { maxWaiting: 1_000, timeout: 10_000, pauses: [1_000, 10_000, 60_000], maxAnswer: 64 * 1024 },

  /**
   * Clients' webhooks for events. `perPrincipal`: max subscriptions of a principal; beyond that, the client gets the
   * error -32025. `waiting`: max messages that wait for a principal's webhooks; beyond that, the server gets the status
   * 503. `lifetime`: max lifetime without a refresh, `former`: time for which a replaced secret also signs, `timeout`:
   * max time of one attempt, `pauses`: pause before each retry, all in ms. `size`: max size of a message,
   * `answer`: max size of the response to a message, in bytes. `url`: max length of a URL, in characters.
   * `verifications`: max verifications of one host at once, and per second; beyond that, the client gets the error
   * -32025. `places`: max attempts at the same time, `ofPrincipal`: max attempts for one principal at the same time;
   * beyond that, they wait.
   */
  eventWebhooks: {
    perPrincipal: 100,
    waiting: 100,
    lifetime: 24 * 60 * 60_000,
    former: 5 * 60_000,
    timeout: 10_000,
    pauses: [5_000, 30_000, 120_000, 600_000],
    size: 256 * 1024,
    answer: 8 * 1024,
    url: 2_048,
    verifications: { burst: 10, perSecond: 0.2 },
    places: 50,
    ofPrincipal: 5
  },

  /**
   * Content guards. `inline`: max characters of one message, over all guards, that are searched in the main thread; the
   * rest is searched in a worker thread. `cost`: memory per byte of a text while it waits for a search there, or for a
   * webhook, which counts towards `MEMORY_BUDGET`; `time`: max time to search a text there, in ms; beyond either, the
   * call is refused, unless the action of the guard is `flag`. `webhookTimeout`: default timeout of a webhook, in ms,
   * `webhookAnswer`: max size of the webhook's response, in bytes; beyond either, the webhook has failed. `message`:
   * max length of the webhook's message, in characters; beyond that, it is truncated.
   */
  guards: {
    inline: 32 * 1024, cost: 2, time: 20_000, webhookTimeout: 2_000, webhookAnswer: 16 * 1024 * 1024, message: 1_000
  },

  /**
   * Quotas. `reported`: max used-up counters that are remembered as reported to admins; beyond that, they may be
   * reported again. `tokenTime`: max time to count the tokens of a result, in ms, `tokenHeap`: max heap of the counting
   * thread, in MB; beyond either, the number is estimated. `tokenIdle`: max idle time of that thread, in ms; beyond
   * that, it ends. `rounds`: max requests for the client's input that do not count as calls, for each call that a quota
   * allows; beyond that, each counts as a call.
   */
  quotas: { rounds: 16, reported: 10_000, tokenTime: 20_000, tokenHeap: 256, tokenIdle: 60_000 },

  /**
   * Usage counters. `waiting`: max counters that wait to be written; beyond that, new counters are not recorded.
   * `pause`: time between two writes of waiting counters, in ms. `days`: max days that a request may span; beyond that,
   * it is refused with the status 400.
   */
  usage: { waiting: 100_000, pause: 1_000, days: 400 },

  compression: {
    /**
     * Max size of the results that wait for compression, in bytes of memory, with a share for each owner; beyond that,
     * a result is not compressed.
     */
    waitingSize: 64 * 1024 * 1024,
    /** Max time to compress one result, in ms; beyond that, the result is not compressed. */
    time: 20_000,
    /** Max heap of the compression thread, in MB; beyond that, the result is not compressed. */
    maxHeap: 256,
    /** Max idle time of the compression thread, in ms; beyond that, it ends. */
    idleTimeout: 60_000,
    /**
     * Max size of all stored originals of compressed results, in bytes; beyond that, the oldest originals of the
     * principal that holds the most are removed.
     */
    originalsSize: 128 * 1024 * 1024,
    /** Time for which the original of a compressed result can be read, in ms. */
    originalsLifetime: 3_600_000,
    /**
     * Max size of one response with a part of an original, in bytes; beyond that, the original is read in several
     * parts.
     */
    partSize: 1024 * 1024
  },

  /**
   * `$smart`. `indexes`: max search indexes, and `tools`: max tools in all indexes together; beyond either, an index
   * other than the newest is dropped, and rebuilt on demand. `size`: max memory of the words of all tools, in bytes;
   * equal tools count once; beyond that, the least recently used index of the owner whose indexes take the most is
   * dropped; an index that takes half of `size`, or is the only one, gets no more tools. `inUsePeriod`: how long after
   * a search an index is updated as soon as its view changes, in ms; later, it is updated at the next search.
   * `queryLength`: max length of a query, in characters; beyond that, it is truncated. `serverListLength`: max
   * length of the list of servers in a tool's description, in characters; beyond that, only the number of further
   * servers is given. `foundToolSize`: max average size of the found tools in a search result, and `singleToolSize`:
   * max size of the only tool in a search with limit 1, in characters of JSON; beyond that, schemas and descriptions
   * are shortened. `parsedToolSize`: max size of a tool whose schema is parsed for a search result, in characters;
   * beyond that, the schema is `{"type": "object"}`.
   */
  smartRouting: {
    indexes: 64,
    tools: 50_000,
    size: 128 * 1024 * 1024,
    inUsePeriod: 5 * 60_000,
    queryLength: 4_000,
    serverListLength: 250,
    foundToolSize: 300,
    singleToolSize: 24 * 1024,
    parsedToolSize: 64 * 1024,
    /**
     * The static model. `nearest`: about how many tools it ranks besides those found by words. For a tool: `name`: max
     * characters of a name or a title, `sentence`: max characters of the first sentence, `parameters`: max names of
     * parameters, `words`: max words of each part; beyond that, the rest is ignored.
     */
    staticModel: { nearest: 200, name: 100, sentence: 300, parameters: 50, words: 60 },
    /**
     * Learning from use. `principals`: max principals whose last search is remembered; beyond that, the oldest search
     * is forgotten. `time`: time for which a search is remembered, in ms, `wordsOfQuery`: max words of its query,
     * `found`: max results; beyond that, the rest is not remembered. `servers`: max servers with counters in memory,
     * `tools`: max tools of a server, `words`: max words of a tool; beyond that, the oldest is forgotten. `count`: max
     * value of a counter, `enough`: value at which a counter has its full effect. `margin`: max share of the best score
     * by which a tool can rise. `delay`: time until counters are stored, in ms.
     */
    learning: {
      principals: 1_000,
      time: 10 * 60_000,
      wordsOfQuery: 16,
      found: 20,
      servers: 1_000,
      tools: 500,
      words: 64,
      count: 1_000,
      enough: 3,
      margin: 0.1,
      delay: 5_000
    },
    /**
     * Embeddings. `textLength`: max length of the text of a tool that is embedded, in characters; beyond that, it is
     * truncated. `textsPerOwner`: max texts embedded per `quotaPeriod` (in ms) for the servers of one user who is not
     * an admin, `textsInTotal`: for all servers; beyond either, further tools are found by words only. `waitingTools`:
     * max tools that wait to be embedded; beyond that, the others are found by words only. `knownVectors`: max vectors
     * remembered as stored; beyond that, the oldest is looked up again. `batchSize`: max texts per request.
     * `idsPerQuery`: max ids per database query. `answerSize`: max size of a response from the API, in bytes,
     * `vectorLength`: max numbers of one embedding, `requestTimeout`: max time for a response, in ms; beyond that, the
     * request fails. `leaseTime`: time for which one replica embeds while the others wait, and `pollInterval`: time
     * between two attempts of the others, in ms. `quotaRetryDelay`: time until tools beyond a quota are tried again, in
     * ms. `cachedQueries`: max search queries whose embeddings are cached; beyond that, the oldest is dropped.
     * `searchTimeout`: max time that a search waits for embeddings, in ms; beyond that, it uses words only.
     * `nearestTools`: max tools ranked by embeddings. `maxPendingShare`: max share of tools that are not embedded
     * yet; beyond that, a search uses words only. `markInterval`: interval at which the vectors of present tools are
     * marked as in use, and `unusedLifetime`: time after which vectors without a mark are removed, in ms.
     * `removalBatchSize`: vectors removed at once, before a pause of `pollInterval`.
     */
    embeddings: {
      textLength: 2_000,
      textsPerOwner: 1_000,
      textsInTotal: 50_000,
      quotaPeriod: 60 * 60_000,
      waitingTools: 50_000,
      knownVectors: 200_000,
      batchSize: 32,
      idsPerQuery: 1_000,
      answerSize: 32 * 1024 * 1024,
      vectorLength: 65_536,
      requestTimeout: 10_000,
      leaseTime: 30_000,
      pollInterval: 1_000,
      quotaRetryDelay: 60_000,
      cachedQueries: 500,
      searchTimeout: 250,
      nearestTools: 200,
      maxPendingShare: 0.02,
      markInterval: 24 * 60 * 60_000,
      unusedLifetime: 30 * 24 * 60 * 60_000,
      removalBatchSize: 200
    }
  },

  /**
   * Conditions of policies. `argumentsSize`: max size of the arguments of a call in bytes, `argumentsDepth`: max
   * levels of nested arguments, `listLength`: max entries of a list or object in them; beyond that, a rule whose
   * condition reads `args` fails, so that the call is denied. `work`: max work of one evaluation, about 100 ns per
   * unit: a step costs 1, and more for long texts and lists; compiling a pattern during evaluation costs `patternWork`;
   * beyond that, the rule fails.
   * `patternLength`: max length of a pattern in characters. `patterns`: max compiled patterns that are cached,
   * `filters`: max groups of callers with equal facts whose results are cached; beyond that, the oldest is
   * dropped. `syntax`: bounds of one condition, and `loops`: max nested loops (`all`, `exists`, `exists_one`, `filter`,
   * `map`); beyond that, it is rejected.
   */
  policies: {
    argumentsSize: 64 * 1024,
    argumentsDepth: 64,
    listLength: 1_000,
    work: 100_000,
    patternWork: 10_000,
    patternLength: 1_000,
    patterns: 1_000,
    loops: 2,
    filters: 1_000,
    syntax: { maxAstNodes: 1_000, maxDepth: 50, maxListElements: 500, maxMapEntries: 100, maxCallArguments: 10 }
  },

  /**
   * Approvals. `time`: validity of an approval, in ms. `pending`: max approvals per caller that wait for a decision;
   * beyond that, the call is denied. `kept`: time for which an approval is listed, in ms. `size`: max size of the
   * arguments of a call that waits for approval, in characters; beyond that, the call is denied. `text`: max length of
   * each text in the arguments that approvers see, in characters; beyond that, it is truncated. `stored`: max size of
   * these arguments and the item's name, in characters; beyond that, the call is denied. `shown`: max length of the
   * arguments in a question to a client, in characters; beyond that, the number of further characters is given.
   * `suspended`: max allowed calls whose servers ask for further input; beyond that, the oldest needs a new approval.
   */
  approvals: {
    time: 10 * 60_000,
    pending: 20,
    kept: 24 * 60 * 60_000,
    size: 256 * 1024,
    text: 1_000,
    stored: 16 * 1024,
    shown: 4_000,
    suspended: 1_000
  }
} as const
