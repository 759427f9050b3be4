import { isObject } from '../../../../protocol/json.ts'
import type { SearchableTool } from './search-tool.ts'
import { clearFullWordCache, stemOf, tokenOf, tokensOf, tokensOfAll, type WordToken } from './stem.ts'
import { wordsOf } from './tokens.ts'
import { extensionsLimits } from '../../limits.ts'

/**
 * The terms of a tool, with their weights. It depends on nothing else, so indexes share it (`ToolStore`).
 */
export interface Analysis {
  /** The terms of the name, in order. */
  readonly name: readonly string[]
  /** The terms of the tool, each once. */
  readonly tokens: readonly WordToken[]
  /** The weight of each of `tokens`, in units of 1 / `weightUnit`. */
  readonly weights: Uint16Array
}

/** The integer as which a weight of 1 is stored. */
export const weightUnit = 64
/** The highest weight of a term that can be stored, in units of 1 / `weightUnit`. One less than a power of two. */
export const maxWeight = 1023

/**
 * How a field of a tool is indexed. `weight`: weight of one word. `length`: typical number of words. `norm`: how much a
 * longer field lowers the weight of each word (b of BM25F). `maxWords`: max number of indexed words. `repeats`: max
 * number of occurrences of a term that count.
 */
interface Field {
  readonly weight: number
  readonly length: number
  readonly norm: number
  readonly maxWords: number
  readonly repeats: number
}

const fields = {
  name: { weight: 1.8, length: 3, norm: 0.75, maxWords: 16, repeats: 1 },
  title: { weight: 1, length: 4, norm: 0.75, maxWords: 16, repeats: 1 },
  server: { weight: 2, length: 1.5, norm: 0.5, maxWords: 8, repeats: 1 },
  summary: { weight: 1, length: 12, norm: 0.6, maxWords: 60, repeats: 2 },
  description: { weight: 0.6, length: 40, norm: 0.75, maxWords: 300, repeats: 2 },
  parameters: { weight: 0.3, length: 20, norm: 0.75, maxWords: 150, repeats: 2 }
} satisfies Record<string, Field>

const bounds = extensionsLimits.wordSearch
/** Max length of an enum value, in characters; longer ones are truncated. */
const maxValueLength = 40

/** Returns the terms of a tool with their weights. */
export function analyseTool (tool: SearchableTool): Analysis {
  clearFullWordCache()
  const terms = new Terms()
  const { name, title, server, summary, description, parameters } = fields
  terms.add(tokensOf(tool.ownName.slice(0, 256), name.maxWords), name, true)
  if (tool.title !== undefined) terms.add(tokensOf(tool.title.slice(0, 256), title.maxWords), title, true)
  terms.add(tokensOf(tool.server.slice(0, 256), server.maxWords), server, true)
  const [first, rest] = summaryOf(tool.description ?? '')
  terms.add(tokensOf(first, summary.maxWords), summary, false)
  terms.add(tokensOf(rest, description.maxWords), description, false)
  terms.add(tokensOfAll(parametersOf(tool.inputSchema), parameters.maxWords), parameters, false)
  return terms.analysis(wordsOf(tool.ownName.slice(0, 256), fields.name.maxWords, false).map(stemOf))
}

/** Splits a description, up to a max length, into its first sentence (or 200 characters) and the rest. */
function summaryOf (description: string): [string, string] {
  const text = description.slice(0, bounds.text).trimStart()
  const end = /[.!?。](?=\s|$)|\n/.exec(text.slice(0, 300))
  const length = end ? end.index + 1 : 200
  return [text.slice(0, length), text.slice(length)]
}

/** Returns the names, descriptions and enum values of a schema's properties, including nested properties. */
function parametersOf (schema: unknown): string[] {
  const texts: string[] = []
  let properties = 0
  const read = (part: unknown, depth: number): void => {
    if (!isObject(part) || depth > bounds.depth) return
    if (isObject(part['properties'])) {
      for (const [name, property] of Object.entries(part['properties'])) {
        if (++properties > bounds.properties) return
        texts.push(name.slice(0, 100))
        const { description, enum: values } = isObject(property) ? property : {}
        if (typeof description === 'string') texts.push(description.slice(0, bounds.parameterText))
        if (Array.isArray(values)) texts.push(valuesOf(values))
        read(property, depth + 1)
      }
    }
    read(part['items'], depth + 1)
  }
  read(schema, 0)
  return texts
}

/**
 * Returns the first enum values of a parameter, separated by spaces. They may be actions such as `create` and `list`;
 * further values are ignored, since long lists usually contain data such as countries.
 */
function valuesOf (values: readonly unknown[]): string {
  const texts = values.slice(0, bounds.values).filter((value) => typeof value === 'string')
  return texts.map((text) => text.slice(0, maxValueLength)).join(' ')
}

// The following arrays are reused, since only one tool is analysed at a time.

/** For each term number: 1 + the index of the term in the tool being analysed; 0 if the tool does not have the term. */
const places: number[] = []
/** The weight of each term of the tool being analysed, by the index of the term in the tool. */
const weightAt = new Float64Array(bounds.terms)
/** The number of occurrences of each term in the field being analysed, by the index of the term in the tool. */
const timesAt = new Uint16Array(bounds.terms)

/** Collects the terms of one tool, field by field. */
class Terms {
  readonly #tokens: WordToken[] = []

  /**
   * Adds the terms of a field.
   * @param isName whether each pair of adjacent words is also a term: `file_system` is found as `filesystem`
   */
  add (tokens: readonly WordToken[], field: Field, isName: boolean): void {
    const { weight, norm, length, repeats } = field
    const each = weight / (1 - norm + norm * Math.max(0.5, tokens.length / length))
    timesAt.fill(0)
    let previous: WordToken | undefined
    for (const token of tokens) {
      this.#count(token, each, repeats)
      const joined = previous && isName ? joinedInName(previous, token) : undefined
      if (joined) this.#count(joined, each, repeats)
      previous = token
    }
  }

  #count (token: WordToken, each: number, repeats: number): void {
    while (places.length <= token.number) places.push(0)
    let at = (places[token.number] ?? 0) - 1
    if (at < 0) {
      if (this.#tokens.length >= bounds.terms) return
      at = this.#tokens.push(token) - 1
      places[token.number] = at + 1
      weightAt[at] = 0
    }
    const times = timesAt[at] ?? 0
    timesAt[at] = times + 1
    if (times < repeats) weightAt[at] = (weightAt[at] ?? 0) + each
  }

  /** Returns the result, and resets the reused arrays. @param name the terms of the tool's name */
  analysis (name: readonly string[]): Analysis {
    for (const { number } of this.#tokens) places[number] = 0
    const weights = new Uint16Array(this.#tokens.length)
    for (let at = 0; at < weights.length; at++) {
      weights[at] = Math.min(maxWeight, Math.max(1, Math.round((weightAt[at] ?? 0) * weightUnit)))
    }
    return { name, tokens: this.#tokens.slice(), weights }
  }
}

const joinedInName = (first: WordToken, second: WordToken): WordToken | undefined =>
  first.term.length + second.word.length <= 40 ? tokenOf(first.term + second.term) : undefined
