import type { SearchTool } from '../../plugins/extensions/smart-routing/words/index.ts'

const k1 = 1.2
const b = 0.75

/** BM25 over names and descriptions, split into words at what is no letter or digit: what the ranking is compared with. */
export function plainBm25 (tools: SearchTool[]): (query: string, limit: number) => SearchTool[] {
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
