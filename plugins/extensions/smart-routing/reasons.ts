import type { ScoreExplanation } from './words/index.ts'

/** The parts of a tool's score. */
export interface Reasons extends Partial<ScoreExplanation> {
  /** The similarity of its meaning to the query, divided by the highest one. */
  readonly meaning?: number
}

/** A member of `_meta`: of a request for `search_tools`, `true` asks for reasons; its result has them by tool. */
export const explanation = 'tool-hub/explanation'
