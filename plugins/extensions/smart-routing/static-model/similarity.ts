import { LoopBudget } from '../../../../protocol/yield.ts'
import { isObject } from '../../../../protocol/json.ts'
import { loadOnce, readAssetBytes } from '../../../base/config/index.ts'
import type { SearchableTool } from '../words/index.ts'
import { modelWordsOf, dotProduct, StaticModel } from './model.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.staticModel
/** The weights of the parts of a tool in its vector. `summary`: the first sentence of the description. */
const partWeights = { name: 1, summary: 1, parameters: 0.5 }
/** Min cosine similarity of a tool that is found although it shares no word with the query. */
const minCosine = 0.4

/** Loads the model from `assets/search/` at the first call. @throws if it is missing or invalid */
const loadModel = loadOnce(async () => new StaticModel(await readAssetBytes('search/model.bin')))

/** Compares queries with tools by the static model, whose word vectors are shipped with the gateway. */
export class StaticSimilarity<Tool extends SearchableTool = SearchableTool> {
  /** The vector of each tool's content; null for a tool without known words. */
  readonly #vectors = new WeakMap<SearchableTool, Float32Array | null>()

  /**
   * Returns the cosine similarities of the tools nearest to a query, and of the tools that were found by words.
   * @param words the words of the query
   * @param tools the searched tools, by name
   * @param found the tools that were found by words
   * @returns undefined if the model knows none of the words
   */
  async cosines (
    words: readonly string[], tools: ReadonlyMap<string, Tool>, found: ReadonlySet<SearchableTool>
  ): Promise<Map<Tool, number> | undefined> {
    const queryVector = (await loadModel()).embed([[1, words]])
    if (!queryVector) return undefined
    const list = [...tools.values()]
    const cosines = await this.#compare(queryVector, list)
    const threshold = Math.max(minCosine, nthHighest(cosines, bounds.nearest))
    const nearest = new Map<Tool, number>()
    for (const [at, tool] of list.entries()) {
      const cosine = cosines[at] ?? 0
      if (cosine >= threshold || found.has(tool)) nearest.set(tool, cosine)
    }
    return nearest
  }

  /** Returns the cosine similarity of each tool; 0 for a tool without known words. */
  async #compare (queryVector: Float32Array, tools: readonly Tool[]): Promise<Float32Array> {
    const model = await loadModel()
    const cosines = new Float32Array(tools.length)
    const budget = new LoopBudget()
    for (const [at, tool] of tools.entries()) {
      const content = tool.content ?? tool
      let vector = this.#vectors.get(content)
      if (vector === undefined) this.#vectors.set(content, vector = vectorOf(content, model) ?? null)
      if (vector) cosines[at] = dotProduct(queryVector, vector)
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
    return cosines
  }
}

/** Returns the `count`-th highest cosine, rounded down to a hundredth; 0 if there are fewer cosines. */
function nthHighest (cosines: Float32Array, count: number): number {
  const steps = new Uint32Array(102)
  for (const cosine of cosines) {
    const step = Math.max(0, Math.floor(cosine * 100))
    steps[step] = (steps[step] ?? 0) + 1
  }
  let step = steps.length
  for (let sum = 0; step > 0 && sum < count;) sum += steps[--step] ?? 0
  return step / 100
}

/** Returns the vector of a tool's name, title, first sentence of the description, and names of parameters. */
function vectorOf (
  { ownName, title = '', description = '', inputSchema }: SearchableTool, model: StaticModel
): Float32Array | undefined {
  const schema = isObject(inputSchema) && isObject(inputSchema.properties) ? inputSchema.properties : {}
  const properties = Object.keys(schema)
  const names = properties.slice(0, bounds.parameters).map((name) => name.slice(0, bounds.name)).join(' ')
  return model.embed([
    [partWeights.name, modelWordsOf(`${ownName.slice(0, bounds.name)} ${title.slice(0, bounds.name)}`, bounds.words)],
    [partWeights.summary, modelWordsOf(firstSentence(description), bounds.words)],
    [partWeights.parameters, modelWordsOf(names, bounds.words)]
  ])
}

/** Returns the first sentence or line of a description, truncated if it is long. */
export function firstSentence (description: string): string {
  const text = description.trimStart().slice(0, bounds.sentence)
  return /^[^]*?(?:[.!?。](?=\s)|\n)/.exec(text)?.[0] ?? text
}
