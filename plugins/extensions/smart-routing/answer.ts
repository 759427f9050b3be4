import type { ShownTool } from './search-tools.ts'
import { shortened, shortSchema, steps, type ShorteningStep } from './shorten.ts'
import { extensionsLimits } from '../limits.ts'

/** A tool that was found. */
export interface Found { readonly tool: ShownTool, readonly score: number }

/** How the search went. */
export interface Metadata {
  /** `fused`: by words and by embeddings. */
  readonly mode: 'words' | 'fused'
  /** Why embeddings were not used, where they are set up. */
  readonly reason?: string
  /** What to do where nothing was found. */
  readonly hint?: string
}

/**
 * The text of a result: one block of JSON, and the same as `structuredContent`.
 * @param json the text of an object
 */
export const resultOf = (json: string): string =>
  `{"content":[{"type":"text","text":${JSON.stringify(json)}}],"structuredContent":${json}}`

/**
 * The answer of a search as JSON: the tools in their order, shortened as far as is needed for the size that they may
 * have together.
 * @param only one tool was asked for: it may be larger
 * @param schemas whether they are in the answer
 */
export function answerOf (
  found: readonly Found[], metadata: Metadata, { only, schemas }: { only: boolean, schemas: boolean }
): string {
  const { found: each, only: one } = extensionsLimits.smartRouting
  const left = only ? one : each * found.length
  const texts = fitting(found.map((tool) => new Candidate(tool, schemas)), left)
  const isShort = texts.some(({ step }) => step > 0)
  const notes = {
    ...metadata,
    ...(isShort && { shortened: schemas && !only ? 'Search for a name with limit 1 to see it whole' : true })
  }
  return `{"tools":[${texts.map(({ text }) => text).join(',')}],"metadata":${JSON.stringify(notes)}}`
}

/** Shortens long ones step by step, those further down before those at the top, until all of them have room. */
function fitting (candidates: readonly Candidate[], room: number): readonly Candidate[] {
  let size = candidates.reduce((sum, { text }) => sum + text.length, 0)
  while (size > room) {
    let next: Candidate | undefined
    let most = 0
    for (const [at, each] of candidates.entries()) {
      const weight = each.text.length * (2 + at)
      if (each.canShorten && weight > most) [next, most] = [each, weight]
    }
    if (!next) break
    size -= next.text.length
    next.shorten()
    size += next.text.length
  }
  return candidates
}

/** One tool of an answer, at one step of shortening. */
class Candidate {
  readonly #found: Found
  readonly #description: string | undefined
  readonly #schema: unknown
  step = 0
  text: string

  constructor (found: Found, schemas: boolean) {
    this.#found = found
    const { tool } = found
    this.#description = tool.description
    // Reading a huge one would take longer than the search.
    if (schemas) this.#schema = tool.size > extensionsLimits.smartRouting.schema ? { type: 'object' } : tool.inputSchema
    this.text = this.#write(steps[0])
  }

  get canShorten (): boolean { return this.step < steps.length - 1 }

  shorten (): void { this.text = this.#write(steps[++this.step]) }

  #write (step: ShorteningStep | undefined): string {
    const { tool: { name, server }, score } = this.#found
    return JSON.stringify({
      name,
      description: step && this.#description !== undefined ? shortened(this.#description, step.description) : undefined,
      inputSchema: step && shortSchema(this.#schema, step),
      serverName: server,
      score: Math.round(score * 1_000) / 1_000
    })
  }
}
