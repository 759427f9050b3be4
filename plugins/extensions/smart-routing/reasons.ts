import type { ScoreExplanation } from './words/index.ts'

/** The parts of a tool's score. */
export interface ScoreReasons extends Partial<ScoreExplanation> {
  /** The similarity of the tool's embedding to the query's, divided by the highest one. */
  readonly meaning?: number
}

/** A member of `_meta`: `true` in a request for `search_tools` asks for reasons; the result has them by tool. */
export const explanationKey = 'tool-hub/explanation'
