/**
 * Ways to write a text shorter, ordered by how much of it they keep. `render(0, Infinity)` is the shortest, `render(highest, Infinity)` the
 * longest.
 */
export interface Renderings {
  readonly highest: number
  /**
   * @param most max length that is of use, in characters
   * @returns undefined where the text gets longer, of which only so much was read; a rendering that is a little longer may be returned
   */
  render: (level: number, most: number) => string | undefined
}

/** Reads a text of its kind. @returns undefined when the text is of another kind, or costs too much to be read as one */
export type Strategy = (text: string) => Renderings | undefined

export const strategyNames = ['json', 'log', 'search', 'diff', 'text'] as const
export type StrategyName = typeof strategyNames[number]

/**
 * How much of a text is kept to choose from: no target has room for more. `items`: hits, changed lines, members of an object; `groups`:
 * files, hunks; `inGroup`: items of one group; `shapes`: different lines of a log. What is beyond is counted. `rows`: lines of JSON; a text
 * with more of them counts as plain.
 */
export const bounds = { items: 50_000, groups: 50_000, inGroup: 1_000, shapes: 10_000, rows: 500_000 }

/** A count as people read it. */
export const figure = (count: number): string => count.toLocaleString('en-US')
/** `1 line`, `2,000 lines`. */
export const counted = (count: number, noun: string): string => `${figure(count)} ${noun}${count === 1 ? '' : 's'}`
