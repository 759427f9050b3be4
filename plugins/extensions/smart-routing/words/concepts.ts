import type { Variant } from './lexicon.ts'
import { tuning } from './tuning.ts'

/** One thing that a question asks for. A tool counts by the best of the variants it has. */
export interface Concept { readonly weight: number, readonly variants: readonly Variant[] }

/** From which weight a synonym is a main one. */
const leastOfMain = 0.3
const isMain = ({ weight }: Variant): boolean => weight >= leastOfMain && weight <= tuning.synonym

/**
 * The concepts of a question. A synonym of several words counts whole for one of them only, that for which it counts
 * most, and less for the others: who sends an email is not as right with a message, which may stand for `send` and for
 * `email`, as with an email.
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
