/** The parts of a tool's score in the search by words. */
export interface ScoreExplanation {
  /** The terms of the query that the tool has, ordered by their share of the score, highest first. */
  readonly terms: readonly Term[]
  /** The share of the tool's name that the query mentions, from 0 to 1; it raises the score. */
  readonly name: number
  /** Whether the query equals the tool's name. */
  readonly isNamed: boolean
}

/**
 * A term that a tool and the query have in common. `word`: as written in tools. `asked`: as written in the query, if
 * different. `part`: the term's share of the sum of all terms' scores, from 0 to 1.
 */
interface Term { readonly word: string, readonly asked?: string, readonly part: number }

/**
 * Converts the scores of a tool for the concepts of a query to shares of their sum, highest first. Scores of the same
 * word are added.
 */
export function toTermShares (
  scored: ReadonlyArray<{ readonly word: string, readonly asked?: string, readonly score: number }>
): Term[] {
  const sum = scored.reduce((all, { score }) => all + score, 0)
  const merged = new Map<string, Term>()
  for (const { word, asked, score } of scored) {
    const former = merged.get(word)
    const askedWord = former && former.asked === undefined ? undefined : asked
    const part = (former?.part ?? 0) + score / sum
    merged.set(word, { word, ...askedWord !== undefined && { asked: askedWord }, part })
  }
  return [...merged.values()].sort((one, other) => other.part - one.part)
}
