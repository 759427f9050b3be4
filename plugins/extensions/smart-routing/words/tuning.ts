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
  /**
   * Weights of a match relative to an exact one: other spellings, main synonyms, words with the same main synonym,
   * translations.
   */
  same: 0.9,
  synonym: 0.5,
  sharedSynonym: 0.15,
  translation: 0.85,
  /** Factor of a synonym for each further word of the query that it stands for. */
  again: 0.6,
  /** Misspelled words, and two adjacent words written as one. */
  oneMistake: 0.8,
  twoMistakes: 0.6,
  joined: 1,
  /** Weights of everyday words, of the words for the kind of a literal, and of pairs of characters. */
  everyday: 0.6,
  kind: 0.6,
  pair: 0.5
} as const
