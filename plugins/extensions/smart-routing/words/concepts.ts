import type { Variant } from './lexicon.ts'
import { tuning } from './tuning.ts'

/** One thing that a query asks for. A tool scores by its best variant. */
export interface Concept { readonly weight: number, readonly variants: readonly Variant[] }

/** Min weight of a main synonym. */
const leastOfMain = 0.3
const isMain = ({ weight }: Variant): boolean => weight >= leastOfMain && weight <= tuning.synonym

/**
 * The concepts of a query. A term that is a synonym of several words of the query counts in full for one of them only,
 * the one with the highest weight. Otherwise `message`, a synonym of `send` and of `email`, would outrank `email` in a
 * query about sending an email.
 */
export function withoutRepetition (concepts: readonly Concept[]): Concept[] {
  const most = new Map<string, { readonly worth: number, readonly concept: Concept }>()
  for (const concept of concepts) {
    for (const variant of concept.variants) {
      const worth = concept.weight * variant.weight
      if (isMain(variant) && worth > (most.get(variant.term)?.worth ?? 0)) most.set(variant.term, { worth, concept })
    }
  }
  return concepts.map((concept) => {
    const isRepeated = (variant: Variant): boolean => isMain(variant) && most.get(variant.term)?.concept !== concept
    if (!concept.variants.some(isRepeated)) return concept
    const variants =
      concept.variants.map((each) => isRepeated(each) ? { term: each.term, weight: each.weight * tuning.again } : each)
    return { weight: concept.weight, variants: variants.sort((a, b) => b.weight - a.weight) }
  })
}
