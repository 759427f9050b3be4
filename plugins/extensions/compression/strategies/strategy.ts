/** Shorter forms of a text, from the shortest, `render(0, Infinity)`, to the longest, `render(highest, Infinity)`. */
export interface Renderings {
  readonly highest: number
  /**
   * @param most max useful length, in characters
   * @returns undefined for a longer rendering; one that is slightly longer may be returned
   */
  render: (level: number, most: number) => string | undefined
}

/** Parses a text. @returns undefined if the text is of another kind or too costly to parse */
export type Strategy = (text: string) => Renderings | undefined

export const strategyNames = ['json', 'log', 'search', 'diff', 'text'] as const
export type StrategyName = typeof strategyNames[number]

/**
 * Bounds of the parts of a text that are kept; further ones are counted. `items`: hits, changed lines, members of an
 * object; `groups`: files, hunks; `inGroup`: items of one group; `shapes`: different lines of a log. `rows`: lines of
 * JSON; a text with more is plain text.
 */
export const bounds = { items: 50_000, groups: 50_000, inGroup: 1_000, shapes: 10_000, rows: 500_000 }

/** A number with separators: `2,000`. */
export const figure = (count: number): string => count.toLocaleString('en-US')
/** `1 line`, `2,000 lines`. */
export const counted = (count: number, noun: string): string => `${figure(count)} ${noun}${count === 1 ? '' : 's'}`
