/**
 * The numbers of the ranking. Most stand in the middle of ranges in which the figures hardly change, in each of five
 * parts of the servers (docs/search.md).
 */
export const tuning = {
  /** How soon more of a term counts no more (k1 of BM25). */
  saturation: 2,
  /** What each tool of the same name counts, after the first. */
  repetition: 0.8,
  /** What part of the score depends on how much of the question a tool covers. */
  coverage: 0.4,
  /**
   * How much more a tool counts whose whole name is asked for, and what a synonym counts there: its worth to the power
   * of `exponent`.
   */
  name: { whole: 0.6, exponent: 0.7, base: 3 },
  /** What the tools of a server count that the question names. */
  server: 1.6,
  /**
   * What a tool counts that does the contrary: that changes something for a question that wants to know. What is asked
   * for is a change from `changing` on, if `telling` is not exceeded: what verbs of such tools are worth in the
   * question.
   */
  purpose: { contrary: 0.85, changing: 0.3, telling: 0.5 },
  /**
   * How rare a word may be; and how far its rarity is that of its most frequent synonym: few say `make`, many say
   * `create`.
   */
  rarity: { least: 3, ofSynonyms: 0.5 },
  /** What a match is worth of an exact one: by the lexicons, */
  same: 0.9,
  synonym: 0.5,
  fellow: 0.15,
  /** what a synonym counts for each word after the first that it may stand for, */
  again: 0.6,
  translation: 0.85,
  /** a hint, where there is but one: of several, each counts less; */
  hint: { one: 0.65, exponent: 0.4 },
  /** for misspelled words, beginnings, parts of compounds and of phrases, and words that were written apart, */
  oneMistake: 0.8,
  twoMistakes: 0.6,
  beginning: 0.7,
  part: 0.6,
  joined: 0.5,
  within: 0.45,
  /** for everyday words, numbers, the kind of a value, and what a question that begins with `what` wants. */
  everyday: 0.6,
  light: 0.6,
  number: 0.3,
  kind: 0.6,
  telling: 0.45,
  /** What it counts that a tool does several things at once, for a question about several. */
  together: 0.3
} as const
