import type { SearchableTool } from '../../plugins/extensions/smart-routing/words/index.ts'
import { keyOf, type Question } from './questions.ts'

/** Answers the best tools of a question, 20 at least. */
export type Search = (query: string) => SearchableTool[] | Promise<SearchableTool[]>

/** The parts of all questions whose first right tool is the first, among the first five or ten; the mean of 1 / its place. */
export interface Quality { recall1: number, recall5: number, recall10: number, mrr: number, count: number }

/** Asks all questions. */
export async function measure (questions: Question[], search: Search): Promise<Quality> {
  const places: number[] = []
  for (const question of questions) places.push(await placeOf(question, search))
  const within = (most: number): number => places.filter((place) => place <= most).length / places.length
  const mrr = places.reduce((sum, place) => sum + 1 / place, 0) / places.length
  return { recall1: within(1), recall5: within(5), recall10: within(10), mrr, count: places.length }
}

/** The place of the first right tool, from 1; Infinity if it is not among the results. */
async function placeOf ({ text, right }: Question, search: Search): Promise<number> {
  const at = (await search(text)).findIndex((tool) => right.has(keyOf(tool)))
  return at === -1 ? Infinity : at + 1
}

const k1 = 1.2
const b = 0.75

/** BM25 over names and descriptions, split into words at what is no letter or digit: what the ranking is compared with. */
export function plainBm25 (tools: SearchableTool[]): (query: string, limit: number) => SearchableTool[] {
  const documents = tools.map(({ name, description }) => words(`${name} ${description ?? ''}`))
  const average = documents.reduce((sum, { length }) => sum + length, 0) / documents.length
  const frequencies = new Map<string, number>()
  for (const document of documents) for (const word of new Set(document)) frequencies.set(word, (frequencies.get(word) ?? 0) + 1)
  return (query, limit) => {
    const scored = documents.map((document, i) => {
      let score = 0
      for (const word of new Set(words(query))) {
        const times = document.filter((other) => other === word).length
        const frequency = frequencies.get(word) ?? 0
        const rarity = Math.log(1 + (tools.length - frequency + 0.5) / (frequency + 0.5))
        score += rarity * times * (k1 + 1) / (times + k1 * (1 - b + b * document.length / average))
      }
      return { i, score }
    })
    const best = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.i - b.i).slice(0, limit)
    return best.flatMap(({ i }) => tools[i] ?? [])
  }
}

const words = (text: string): string[] => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '')
