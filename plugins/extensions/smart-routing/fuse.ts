import type { SearchHit } from './answer.ts'
import type { ShownTool } from './shown-tools.ts'
import type { RankedTool } from './words/index.ts'

/** The weights of the cosine similarities of an encoder and of the static model; the ranking by words has weight 1. */
export const cosineWeights = { encoder: 1, staticModel: 0.3 } as const

/**
 * Merges two rankings by `lexical / max + weight * cosine / max`, best first. The best score becomes 1. Ties keep the
 * order of the ranking by words.
 * @param cosines the similarities by embeddings; undefined if there is only the ranking by words
 */
export function fuseRankings (
  words: readonly RankedTool[],
  cosines: ReadonlyMap<ShownTool, number> | undefined,
  tools: ReadonlyMap<string, ShownTool>,
  weight: number = cosineWeights.encoder
): SearchHit[] {
  const byWords = scaleToHighest(words.flatMap(({ tool, score }): Array<[ShownTool, number]> => {
    const shown = tools.get(tool.name)
    return shown ? [[shown, score]] : []
  }))
  const reasons = new Map(words.map(({ tool, explanation }) => [tool.name, explanation]))
  if (!cosines) return [...byWords].map(([tool, score]) => ({ tool, score, explanation: reasons.get(tool.name) }))
  const byMeaning = scaleToHighest([...cosines])
  const all = new Set([...byWords.keys(), ...byMeaning.keys()])
  const sums =
    [...all].map((tool): [ShownTool, number] => [tool, (byWords.get(tool) ?? 0) + weight * (byMeaning.get(tool) ?? 0)])
  return [...scaleToHighest(sums)]
    .map(([tool, score]) => ({ tool, score, explanation: { ...reasons.get(tool.name), meaning: byMeaning.get(tool) } }))
    .sort((one, other) => other.score - one.score)
}

function scaleToHighest (scores: ReadonlyArray<readonly [ShownTool, number]>): Map<ShownTool, number> {
  const max = scores.reduce((highest, [, score]) => Math.max(highest, score), 0)
  return new Map(max > 0 ? scores.map(([tool, score]) => [tool, Math.max(0, score) / max]) : [])
}
