/** Bounds of the extensions. docs/limits.md is generated from them. */
export const extensionsLimits = {
  /**
   * Records of calls that wait for a slow database. `entries`: max number, `size`: max memory in bytes; beyond: new
   * calls are not recorded, and counted. `payload`: max size of an input or output, in bytes, `message`: of an error;
   * beyond: they are cut.
   */
  activities: { entries: 10_000, size: 32 * 1024 * 1024, payload: 100 * 1024, message: 2 * 1024 },

  /**
   * The log that admins read. `entries`: max entries; beyond: the oldest are dropped. `message`: max length of one, in
   * characters; beyond: it is cut. `streams`: max open streams; beyond: 503.
   */
  logs: { entries: 5_000, message: 2 * 1024, streams: 20 },

  /**
   * Search by words. Of a tool: `text`: max characters of a description, `properties`: max properties of a schema, to a
   * `depth`, `parameterText`: max characters of the description of each, `values`: max values that it may have,
   * `terms`: max terms; of a question: `question`: max characters, `words`: max words, `misspelled`: max words that are
   * looked up as misspelled, `variants`: max terms that one word may stand for; beyond: the rest is not read.
   * `cachedWords`: max words whose stems are cached, `cachedTexts`: max texts of parameters; beyond: all are forgotten.
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
  compression: {
    /**
     * Max size of the results that wait to be compressed, in bytes of memory, with a share for each owner; beyond: one
     * stays as it is.
     */
    waiting: 64 * 1024 * 1024,
    /** Max time to compress one result, in ms; beyond: it stays as it is. */
    time: 20_000,
    /** Max heap of the thread that compresses, in MB; beyond: the result stays as it is. */
    heap: 256,
    /** Max time that the thread may be idle, in ms; beyond: it ends. */
    idle: 60_000,
    /**
     * Max size of all originals that are kept, in bytes; beyond: the oldest of the principal that holds most are
     * forgotten.
     */
    originals: 128 * 1024 * 1024,
    /** How long an original can be read, in ms. */
    kept: 3_600_000,
    /** Max size of one answer with a part of an original, in bytes; beyond: it is read in several parts. */
    part: 1024 * 1024
  },

  /**
   * `$smart`. `indexes`: max sets of tools that are indexed, and `tools`: max tools in all of them but the last, 7 KB
   * each; beyond: the index that was used longest ago is dropped, and built again on demand. `inUse`: time after a
   * search in which an index follows its view, in ms; later: with the next search. `query`: max length of a question,
   * in characters; beyond: it is cut. `servers`: max length of the list of servers in a tool's description, in
   * characters; beyond: the others are counted. `found`: size that a found tool may have in an answer, on average, and
   * `only`: that of a search for one tool, in characters of JSON; beyond: schemas and descriptions are shortened.
   * `schema`: max size of a tool whose schema is read to be answered, in characters; beyond: it is left out.
   */
  smartRouting: {
    indexes: 64,
    tools: 50_000,
    inUse: 5 * 60_000,
    query: 4_000,
    servers: 250,
    found: 300,
    only: 24 * 1024,
    schema: 64 * 1024,
    /**
     * The static model. `nearest`: tools that are ranked by it. Of a tool: `name`: max characters of a name or a title,
     * `sentence`: of the first sentence, `parameters`: max names of parameters, `words`: max words of each part;
     * beyond: the rest is not read.
     */
    staticModel: { nearest: 200, name: 100, sentence: 300, parameters: 50, words: 60 },
    /**
     * Learning from use. `principals`: max principals whose last search is remembered, for `time` in ms, with
     * `wordsOfQuery` words and the first `found` results; beyond: the oldest is forgotten. `servers`, `tools` of each,
     * `words` of each: max counts; beyond: the oldest is forgotten. `count`: max value of a count, `enough`: from which
     * it has its full effect. `margin`: max part of the best score by which a tool rises. `delay`: time until counts
     * are stored, in ms.
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
     * `text`: max length of a tool's text that is embedded, in characters; beyond: it is cut. `perOwner`, `all`: max
     * texts of the servers of one user who is not an admin, and of all, per `window` in ms; beyond: those tools are
     * found by words only. `waiting`: max tools that wait to be embedded; beyond: the same. `known`: max vectors that
     * are known to be stored; beyond: the oldest is looked up again. `batch`: texts of one request, `lookUps`: ids of
     * one query. `answer`: max size of an answer of the API, in bytes, `numbers`: of one embedding, `time`: max time
     * for an answer, in ms; beyond: the request failed. `lease`: how long one replica embeds while the others wait, and
     * `poll`: how often they look, in ms. `overQuota`: time until tools beyond `perOwner` or `all` are tried again, in
     * ms. `questions`: max questions whose embeddings are kept; beyond: the oldest is dropped. `wait`: max time that a
     * search waits for embeddings, in ms; beyond: it is by words. `nearest`: tools that are ranked by meaning.
     * `pending`: share of the tools that may still have to be embedded; beyond: a search is by words. `marked`: how
     * often the vectors of tools that are there are marked as in use, and `unused`: time after which others are
     * removed, in ms: `removed` of them at once, with a pause of `poll`.
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
  }
} as const
