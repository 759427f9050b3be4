/**
 * Ways to write a text shorter, ordered by how much of it they keep. `render(0)` is the shortest, `render(highest)` the longest.
 */
export interface Renderings {
  readonly highest: number
  render: (level: number) => string
}

/** Reads a text of its kind. @returns undefined when the text is of another kind */
export type Strategy = (text: string) => Renderings | undefined

export const strategyNames = ['json', 'log', 'search', 'diff', 'text'] as const
export type StrategyName = typeof strategyNames[number]

/** A count as people read it. */
export const figure = (count: number): string => count.toLocaleString('en-US')
/** `1 line`, `2,000 lines`. */
export const counted = (count: number, noun: string): string => `${figure(count)} ${noun}${count === 1 ? '' : 's'}`
