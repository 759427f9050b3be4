import { LoopBudget } from '../../../../protocol/yield.ts'
import { isObject } from '../../../../protocol/json.ts'
import { readAssetBytes } from '../../../base/config/index.ts'
import type { SearchableTool } from '../words/index.ts'
import { modelWordsOf, dotProducts, StaticModel } from './model.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.staticModel
/** The weights of a tool's parts in its vector. */
const partWeights = { name: 1, summary: 1, parameters: 0.5 }
/** Min cosine similarity at which a tool that shares no word with a query is found. */
const minCosine = 0.4

/**
 * The tools of a view in order, with their concatenated vectors. The vector is zero if the model knows no word of the
 * tool.
 */
interface ToolVectors<Tool> { readonly tools: readonly Tool[], readonly vectors: Float32Array }

let loading: Promise<StaticModel> | undefined

/** Loads the model of `assets/search/` once, with the first search. @throws if it is missing or invalid */
async function loadModel (): Promise<StaticModel> {
  loading ??= readAssetBytes('search/model.bin').then((bytes) => new StaticModel(bytes))
  return await loading
}

/** Compares queries with tools by the word vectors shipped with the gateway. */
export class StaticSimilarity<Tool extends SearchableTool = SearchableTool> {
  readonly #vectors = new WeakMap<Tool, Float32Array>()
  readonly #views = new WeakMap<ReadonlyMap<string, Tool>, Promise<ToolVectors<Tool>>>()

  /**
   * Returns the cosine similarities of the tools nearest to a query, and of all that were found by words.
   * @param words the words of the query
   * @returns undefined if the model knows none of the words
   */
  async cosines (
    words: readonly string[], tools: ReadonlyMap<string, Tool>, found: ReadonlySet<SearchableTool>
  ): Promise<Map<Tool, number> | undefined> {
    const queryVector = (await loadModel()).embed([[1, words]])
    if (!queryVector) return undefined
    let view = this.#views.get(tools)
    if (!view) this.#views.set(tools, view = this.#embed(tools))
    const { tools: list, vectors } = await view
    const cosines = dotProducts(queryVector, vectors)
    const threshold = Math.max(minCosine, nthHighest(cosines, bounds.nearest))
    const nearest = new Map<Tool, number>()
    for (const [at, tool] of list.entries()) {
      const cosine = cosines[at] ?? 0
      if (cosine >= threshold || found.has(tool)) nearest.set(tool, cosine)
    }
    return nearest
  }

  async #embed (tools: ReadonlyMap<string, Tool>): Promise<ToolVectors<Tool>> {
    const model = await loadModel()
    const list = [...tools.values()]
    const vectors = new Float32Array(list.length * model.dimensions)
    const budget = new LoopBudget()
    for (const [at, tool] of list.entries()) {
      const vector = this.#vectors.get(tool) ?? vectorOf(tool, model)
      if (vector) {
        const from = at * model.dimensions
        vectors.set(vector, from)
        // A view on the same memory; it is reused for the next list of this view.
        this.#vectors.set(tool, vectors.subarray(from, from + model.dimensions))
      }
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
    return { tools: list, vectors }
  }
}

/** Returns the `count`-th highest cosine, rounded down to a hundredth. */
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

/** Returns the vector of a tool: of its name, the first sentence of its description and the names of its parameters. */
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

/** Returns the first sentence or line of a description. */
export function firstSentence (description: string): string {
  const text = description.trimStart().slice(0, bounds.sentence)
  return /^[^]*?(?:[.!?。](?=\s)|\n)/.exec(text)?.[0] ?? text
}
