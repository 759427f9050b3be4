import { fuseRankings, cosineWeights } from '../../plugins/extensions/smart-routing/fuse.ts'
import type { ShownTool } from '../../plugins/extensions/smart-routing/shown-tools.ts'
import { StaticSimilarity } from '../../plugins/extensions/smart-routing/static-model/similarity.ts'
import type { SearchableTool, ToolIndex } from '../../plugins/extensions/smart-routing/words/index.ts'

/** As many of the best by words are fused, as in the gateway. */
const considered = 100

/**
 * The search of the gateway without an embeddings API and without what it has learned from use.
 * @param tools those of the index
 */
export function rankedBy (
  index: ToolIndex, tools: readonly SearchableTool[], hasModel = true
): (query: string, limit: number) => Promise<SearchableTool[]> {
  const similarity = new StaticSimilarity<ShownTool>()
  const known = new Map(tools.map((tool) => [tool.name, tool as ShownTool]))
  return async (query, limit) => {
    const words = index.search(query, Math.max(limit, considered))
    const found = new Set(words.map(({ tool }) => tool))
    const cosines = hasModel ? await similarity.cosines(index.queryWords(query), known, found) : undefined
    return fuseRankings(words, cosines, known, cosineWeights.staticModel).slice(0, limit).map(({ tool }) => tool)
  }
}
