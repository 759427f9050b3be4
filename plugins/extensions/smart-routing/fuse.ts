import type { SearchHit } from './answer.ts'
import type { ShownTool } from './shown-tools.ts'
import type { RankedTool } from './words/index.ts'

/**
 * The weight of cosine similarities from the embeddings API (`encoder`), and from the static model. The ranking by
 * words has weight 1.
 */
export const cosineWeights = { encoder: 1, staticModel: 0.3 } as const

/**
 * Merges the ranking by words with cosine similarities, best first. Scores are divided by the highest score, cosines by
 * the highest cosine; then `score + weight * cosine` is scaled so that the best result is 1. Tools that the query names
 * come first. Tools with equal results keep the order of the ranking by words.
 * @param cosines undefined if there is only the ranking by words
 * @param tools the searched tools, by name
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
  const ranked = new Map(words.map((each) => [each.tool.name, each]))
  const byMeaning = scaleToHighest([...cosines ?? []])
  const all = new Set([...byWords.keys(), ...byMeaning.keys()])
  const sums = [...all].map((tool): [ShownTool, number] => {
    const highestOfOthers = 1 + weight
    const bonus = ranked.get(tool.name)?.isNamed === true ? highestOfOthers : 0
    return [tool, bonus + (byWords.get(tool) ?? 0) + weight * (byMeaning.get(tool) ?? 0)]
  })
  return [...scaleToHighest(sums)]
    .map(([tool, score]) => {
      const reasons = ranked.get(tool.name)?.explanation
      return { tool, score, explanation: cosines ? { ...reasons, meaning: byMeaning.get(tool) } : reasons }
    })
    .sort((one, other) => other.score - one.score)
}

function scaleToHighest (scores: ReadonlyArray<readonly [ShownTool, number]>): Map<ShownTool, number> {
  const max = scores.reduce((highest, [, score]) => Math.max(highest, score), 0)
  return new Map(max > 0 ? scores.map(([tool, score]) => [tool, Math.max(0, score) / max]) : [])
}
