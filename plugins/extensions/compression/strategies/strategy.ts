/** Shorter forms of a text, one for each level. Level 0 is the shortest, `highestLevel` the longest. */
export interface Renderings {
  readonly highestLevel: number
  /**
   * Renders the text at a level.
   * @param maxLength max useful length, in characters
   * @returns undefined if the rendering is longer; a slightly longer one may still be returned
   */
  render: (level: number, maxLength: number) => string | undefined
}

/** Parses a text. @returns undefined if the text is of another kind or too costly to parse */
export type Strategy = (text: string) => Renderings | undefined

export const strategyNames = ['json', 'log', 'search', 'diff', 'text'] as const
export type StrategyName = typeof strategyNames[number]

/**
 * Max numbers of the parts of a text that are kept in memory; further parts are only counted. `items`: hits, changed
 * lines; `groups`: files, hunks; `itemsPerGroup`: items of one group; `logShapes`: different shapes of log lines.
 * `jsonLines`: lines of JSON; a text with more lines is treated as plain text.
 */
export const strategyBounds = {
  items: 50_000, groups: 50_000, itemsPerGroup: 1_000, logShapes: 10_000, jsonLines: 500_000
}

/** Formats a number with separators: `2,000`. */
export const formatNumber = (count: number): string => count.toLocaleString('en-US')
/** Formats a number with its noun: `1 line`, `2,000 lines`. */
export const formatQuantity = (count: number, noun: string): string =>
  `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`
