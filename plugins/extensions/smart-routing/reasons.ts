import type { ScoreExplanation } from './words/index.ts'

/** The parts of a found tool's score. */
export interface ScoreReasons extends Partial<ScoreExplanation> {
  /** The similarity of the tool's embedding to that of the query, divided by the highest similarity in the search. */
  readonly meaning?: number
}

/**
 * A key in `_meta`. In a call of `search_tools`, `true` requests explanations of the scores; in the result, the value
 * contains them, by tool name.
 */
export const explanationKey = 'tool-hub/explanation'
