/** The shorter forms of a text, one for each level. Level 0 is the shortest form, `highestLevel` the longest. */
export interface Renderings {
  readonly highestLevel: number
  /**
   * Returns the form of the text at a level.
   * @param maxLength max length that is of use to the caller, in characters
   * @returns undefined if the form is longer; a slightly longer one may still be returned
   */
  render: (level: number, maxLength: number) => string | undefined
}

/**
 * A way to shorten texts of one kind. Parses a text, and returns its shorter forms.
 * @returns undefined if the text is of another kind, or if parsing it would take too much memory
 */
export type Strategy = (text: string) => Renderings | undefined

export const strategyNames = ['json', 'log', 'search', 'diff', 'text'] as const
export type StrategyName = typeof strategyNames[number]

/**
 * Max numbers of parts of a text that are kept in memory. `items`: hits or changed lines; `groups`: files or hunks;
 * `itemsPerGroup`: items of one group; further items and groups are only counted. `logShapes`: different shapes of log
 * lines; further shapes count as known. `jsonLines`: lines of JSON; a text with more lines is treated as plain text.
 */
export const strategyBounds = {
  items: 50_000, groups: 50_000, itemsPerGroup: 1_000, logShapes: 10_000, jsonLines: 500_000
}

/** Formats a number with thousands separators: `2,000`. */
export const formatNumber = (count: number): string => count.toLocaleString('en-US')
/** Formats a number with a noun, to which `s` is appended if needed: `1 line`, `2,000 lines`. */
export const formatQuantity = (count: number, noun: string): string =>
  `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`
