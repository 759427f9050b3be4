import { isObject } from '../../../protocol/json.ts'
import type { SearchTool } from './search-tool.ts'
import type { Lexicon } from './lexicon.ts'
import { tokenOf, type Token } from './stem.ts'
import { wordsOf } from './tokens.ts'

/**
 * A tool as the index has it: its terms and how much each weighs, in units of 1 / `unit`. It depends on the tool alone, so that all indexes
 * share it.
 */
export interface Analysis {
  readonly tokens: readonly Token[]
  readonly weights: Uint16Array
}

/** Weights are whole numbers of this part of 1. */
export const unit = 64
/** The largest weight of a term. */
export const heaviest = 1023

/**
 * `weight`: what a word counts. `length`: the usual number of words; in longer fields each word counts less, by `norm`. `most`: max words that
 * are read. `repeats`: how many times a word counts.
 */
interface Field { readonly weight: number, readonly length: number, readonly norm: number, readonly most: number, readonly repeats: number }

export const fields = {
  name: { weight: 2, length: 3, norm: 0.5, most: 16, repeats: 1 },
  title: { weight: 1, length: 4, norm: 0.75, most: 16, repeats: 1 },
  server: { weight: 1.5, length: 1.5, norm: 0.5, most: 8, repeats: 1 },
  summary: { weight: 1, length: 12, norm: 0.6, most: 32, repeats: 2 },
  description: { weight: 0.5, length: 40, norm: 0.75, most: 400, repeats: 2 },
  parameters: { weight: 0.4, length: 20, norm: 0.75, most: 300, repeats: 2 }
} satisfies Record<string, Field>

/** Bounds of what is read of one tool: characters of a text, properties of a schema and their depth, terms. */
const bounds = { text: 6_000, properties: 100, depth: 4, parameterText: 400, terms: 350 }

/** The terms of a tool. */
export function analyse (tool: SearchTool, lexicon: Lexicon): Analysis {
  const terms = new Terms(lexicon)
  terms.add(tool.ownName.slice(0, 256), fields.name, true)
  if (tool.title !== undefined) terms.add(tool.title.slice(0, 256), fields.title, true)
  terms.add(tool.server.slice(0, 256), fields.server, true)
  const [summary, rest] = summaryOf(tool.description ?? '')
  terms.add(summary, fields.summary, false)
  terms.add(rest, fields.description, false)
  terms.add(parametersOf(tool.inputSchema), fields.parameters, false)
  return terms.analysis()
}

/** The first sentence of a description, and what follows. */
function summaryOf (description: string): [string, string] {
  const text = description.slice(0, bounds.text).trimStart()
  const end = /[.!?。](?=\s|$)|\n/.exec(text.slice(0, 300))
  const length = end ? end.index + 1 : 200
  return [text.slice(0, length), text.slice(length)]
}

/** The names and descriptions of a schema's properties, those within them too, as one text. */
function parametersOf (schema: unknown): string {
  const texts: string[] = []
  let properties = 0
  const read = (part: unknown, depth: number): void => {
    if (!isObject(part) || depth > bounds.depth) return
    if (isObject(part['properties'])) {
      for (const [name, property] of Object.entries(part['properties'])) {
        if (++properties > bounds.properties) return
        texts.push(name.slice(0, 100))
        const description = isObject(property) ? property['description'] : undefined
        if (typeof description === 'string') texts.push(description.slice(0, bounds.parameterText))
        read(property, depth + 1)
      }
    }
    read(part['items'], depth + 1)
  }
  read(schema, 0)
  return texts.join('\n')
}

class Terms {
  readonly #weights = new Map<string, number>()
  readonly #tokens = new Map<string, Token>()
  readonly #lexicon: Lexicon

  constructor (lexicon: Lexicon) { this.#lexicon = lexicon }

  /** @param isName whether two neighbouring words are a term as well: `file_system` is found as `filesystem` */
  add (text: string, field: Field, isName: boolean): void {
    if (text === '') return
    const words = wordsOf(text, field.most)
    const { weight, norm, length, repeats } = field
    const each = weight / (1 - norm + norm * Math.max(0.5, words.length / length))
    const counts = new Map<Token, number>()
    const count = (word: string): Token => {
      const token = tokenOf(word)
      counts.set(token, (counts.get(token) ?? 0) + 1)
      return token
    }
    let previous: Token | undefined
    for (const word of words) {
      const token = count(word)
      if (previous && previous.term.length + word.length <= 40) {
        if (isName || this.#lexicon.isJoined(previous.term + token.term)) count(previous.term + token.term)
      }
      previous = token
    }
    for (const [token, times] of counts) {
      const before = this.#weights.get(token.term)
      if (before === undefined) {
        if (this.#weights.size >= bounds.terms) continue
        this.#tokens.set(token.term, token)
      }
      this.#weights.set(token.term, (before ?? 0) + each * Math.min(times, repeats))
    }
  }

  analysis (): Analysis {
    const weights = Uint16Array.from(this.#weights.values(), (weight) => Math.min(heaviest, Math.max(1, Math.round(weight * unit))))
    return { tokens: [...this.#tokens.values()], weights }
  }
}
