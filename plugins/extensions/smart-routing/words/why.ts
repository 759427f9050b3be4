/** The components of the score of a tool. */
export interface ScoreExplanation {
  /** The terms of the query that the tool has, those that count most first. */
  readonly terms: readonly Term[]
  /** The part of its name that the query mentions, from 0 to 1, which raises the score. */
  readonly name: number
  /** Whether the query is its name. */
  readonly isNamed: boolean
}

/** `word`: in the tools; `asked`: in the query, if it is another; `part`: of the score by terms, from 0 to 1. */
interface Term { readonly word: string, readonly asked?: string, readonly part: number }

/** The scores of a tool by the concepts of a query as parts of their sum; a term of several concepts is one. */
export function mergeTerms (
  scored: ReadonlyArray<{ readonly word: string, readonly asked?: string, readonly score: number }>
): Term[] {
  const sum = scored.reduce((all, { score }) => all + score, 0)
  const merged = new Map<string, Term>()
  for (const { word, asked, score } of scored) {
    const former = merged.get(word)
    const heard = former && former.asked === undefined ? undefined : asked
    merged.set(word, { word, ...heard !== undefined && { asked: heard }, part: (former?.part ?? 0) + score / sum })
  }
  return [...merged.values()].sort((one, other) => other.part - one.part)
}
