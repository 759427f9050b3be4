/** The parameters of the ranking by words. Small changes hardly affect the quality (docs/search.md). */
export const tuning = {
  /** Saturation of the term frequency (k1 of BM25). */
  saturation: 2,
  /** The share of the score that depends on how much of the query a tool covers. */
  coverage: 0.4,
  /**
   * `whole`: bonus for a tool whose whole name is in the query. `exponent`: applied to the weight of a synonym in the
   * name. `base`: added to the rarity of each word of the name.
   */
  name: { whole: 0.6, exponent: 0.7, base: 3 },
  /** Factor for the tools of a server that the query names. */
  server: 1.6,
  /**
   * `least`: min number of tools that a word is assumed to occur in when its IDF is computed. `ofSynonyms`: how far the
   * IDF of a word moves towards the IDF of its most frequent synonym; for example, `make` is rare, `create` is common.
   */
  rarity: { least: 3, ofSynonyms: 0.5 },
  /** Weight of another spelling, relative to an exact match. */
  same: 0.9,
  /** Weight of a word's main synonym, and of a word for its main synonym, relative to an exact match. */
  synonym: 0.5,
  /** Weight of a word with the same main synonym, relative to an exact match. */
  sharedSynonym: 0.15,
  /** Weight of a translation, relative to an exact match. */
  translation: 0.85,
  /** Factor for the weight of a synonym that several words of the query share, for all of these words but one. */
  again: 0.6,
  /** Weight of a correction of one mistake, relative to an exact match. */
  oneMistake: 0.8,
  /** Weight of a correction of two mistakes, relative to an exact match. */
  twoMistakes: 0.6,
  /** Weight of two adjacent words of the query that are written as one in the lexicon. */
  joined: 1,
  /** Weight of an everyday word of the query. */
  everyday: 0.6,
  /** Weight of the words for the kind of a literal. */
  kind: 0.6,
  /** Weight of a pair of characters in a script without spaces. */
  pair: 0.5
} as const
