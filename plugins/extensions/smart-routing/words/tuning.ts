/**
 * The parameters of the ranking. Most are in the middle of a range in which the measured quality hardly changes, for
 * each of five parts of the test servers (docs/search.md).
 */
export const tuning = {
  /** Saturation of the term frequency (k1 of BM25). */
  saturation: 2,
  /** Factor for each further tool of the same name. */
  repetition: 0.8,
  /** The part of the score that depends on how much of the query a tool covers. */
  coverage: 0.4,
  /**
   * `whole`: bonus for a tool whose whole name is in the query. `exponent`: applied to the weight of a synonym there.
   * `base`: added to the rarity of each word of the name.
   */
  name: { whole: 0.6, exponent: 0.7, base: 3 },
  /** Factor for the tools of a server that the query mentions. */
  server: 1.6,
  /**
   * `contrary`: factor for a tool that contradicts the purpose, such as one that changes something for a query that
   * asks for information. A query asks for a change if verbs of change weigh at least `changing` in it and reading
   * verbs at most `telling`.
   */
  purpose: { contrary: 0.85, changing: 0.3, telling: 0.5 },
  /**
   * `least`: min number of tools for the IDF. `ofSynonyms`: how far the IDF of a word moves towards that of its most
   * frequent synonym: few tools say `make`, many say `create`.
   */
  rarity: { least: 3, ofSynonyms: 0.5 },
  /** Weights of a match relative to an exact one. By the lexicons: other spellings, main synonyms, fellow synonyms. */
  same: 0.9,
  synonym: 0.5,
  fellow: 0.15,
  /** A synonym, for each further word of the query that it stands for; translations. */
  again: 0.6,
  translation: 0.85,
  /** Hints: `one` for a single hint; several hints count less each, by `exponent`. */
  hint: { one: 0.65, exponent: 0.4 },
  /** Misspelled words, beginnings, parts of compounds, words written apart, and words within a phrase. */
  oneMistake: 0.8,
  twoMistakes: 0.6,
  beginning: 0.7,
  part: 0.6,
  joined: 0.5,
  within: 0.45,
  /** Everyday words, light verbs, numbers, the kind of a literal, and reading verbs for a query such as `what …`. */
  everyday: 0.6,
  light: 0.6,
  number: 0.3,
  kind: 0.6,
  telling: 0.45,
  /** Batch tools, for a query about several items. */
  together: 0.3
} as const
