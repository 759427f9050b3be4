import { explanationKey, type ScoreReasons } from './reasons.ts'
import type { FoundSkill } from './skill-search.ts'
import type { ShownTool } from './shown-tools.ts'
import { truncateAtWord, shortenSchema, shorteningSteps, type ShorteningStep } from './shorten.ts'
import { extensionsLimits } from '../limits.ts'

/** A found tool with its score from 0 to 1. `explanation` contains the parts of the score that are known. */
export interface SearchHit { readonly tool: ShownTool, readonly score: number, readonly explanation?: ScoreReasons }

/** The `metadata` member of a search result. */
export interface SearchMetadata {
  /** `words`: ranked without the embeddings API. `fused`: ranked by words and by the embeddings API. */
  readonly mode: 'words' | 'fused'
  /** Why the embeddings API was not used although it is configured. */
  readonly reason?: string
  /** Advice for the model when no tool was found. */
  readonly hint?: string
}

/**
 * Returns a tool result as JSON text: one text block that contains `json`, and `json` as `structuredContent`.
 * @param json the JSON text of an object
 * @param reasons the parts of the found tools' scores, by tool name; undefined if the caller did not request them
 */
export const toSmartToolResult = (json: string, reasons?: Readonly<Record<string, ScoreReasons>>): string => {
  const meta = reasons === undefined ? '' : `,"_meta":${JSON.stringify({ [explanationKey]: reasons })}`
  return `{"content":[{"type":"text","text":${JSON.stringify(json)}}],"structuredContent":${json}${meta}}`
}

/**
 * Returns the result of a search as JSON text. Tools keep their order. They are shortened until together they fit the
 * size limit, or cannot be shortened further.
 * @param isSingle whether only one tool was requested, for which the size limit is higher
 * @param hasSchemas whether the result contains input schemas
 * @param skills the matching skills, returned beside the tools
 */
export function toSearchResult (
  found: readonly SearchHit[],
  metadata: SearchMetadata,
  { isSingle, hasSchemas }: { isSingle: boolean, hasSchemas: boolean },
  skills: readonly FoundSkill[] = []
): string {
  const { foundToolSize, singleToolSize } = extensionsLimits.smartRouting
  const maxSize = isSingle ? singleToolSize : foundToolSize * found.length
  const texts = shortenToFit(found.map((tool) => new Candidate(tool, hasSchemas)), maxSize)
  const isShortened = texts.some(({ level }) => level > 0)
  const { hint, ...others } = metadata
  const notes = {
    ...others,
    ...(skills.length > 0 ? { hint: 'Read a skill by its uri (resources/read)' } : hint !== undefined && { hint }),
    ...(isShortened && { shortened: hasSchemas && !isSingle ? 'Search for a name with limit 1 to see it whole' : true })
  }
  const skillsText = skills.length === 0 ? '' : `"skills":${JSON.stringify(skills)},`
  return `{"tools":[${texts.map(({ text }) => text).join(',')}],${skillsText}"metadata":${JSON.stringify(notes)}}`
}

/**
 * Shortens candidates, one level at a time, until together they fit into `maxSize` characters or none can be shortened
 * further. Long and low-ranked candidates are shortened first.
 */
function shortenToFit (candidates: readonly Candidate[], maxSize: number): readonly Candidate[] {
  let size = candidates.reduce((sum, { text }) => sum + text.length, 0)
  while (size > maxSize) {
    let next: Candidate | undefined
    let highest = 0
    for (const [at, each] of candidates.entries()) {
      const weight = each.text.length * (2 + at)
      if (each.canShorten && weight > highest) [next, highest] = [each, weight]
    }
    if (!next) break
    size -= next.text.length
    next.shorten()
    size += next.text.length
  }
  return candidates
}

/** A found tool as JSON text, shortened to a level: an index of `shorteningSteps`. */
class Candidate {
  readonly #hit: SearchHit
  readonly #description: string | undefined
  readonly #schema: unknown
  level = 0
  text: string

  constructor (hit: SearchHit, hasSchema: boolean) {
    this.#hit = hit
    const { tool } = hit
    this.#description = tool.description
    // The schema of a huge tool is not parsed, since parsing would take longer than the search.
    if (hasSchema) {
      this.#schema = tool.size > extensionsLimits.smartRouting.parsedToolSize ? { type: 'object' } : tool.inputSchema
    }
    this.text = this.#write(shorteningSteps[0])
  }

  get canShorten (): boolean { return this.level < shorteningSteps.length - 1 }

  shorten (): void { this.text = this.#write(shorteningSteps[++this.level]) }

  #write (step: ShorteningStep | undefined): string {
    const { tool: { name, server }, score } = this.#hit
    return JSON.stringify({
      name,
      description: step && this.#description !== undefined
        ? truncateAtWord(this.#description, step.maxDescription)
        : undefined,
      inputSchema: step && shortenSchema(this.#schema, step),
      serverName: server,
      score: Math.round(score * 1_000) / 1_000
    })
  }
}
