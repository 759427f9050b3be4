import type { Surface } from '../../gateway/index.ts'
import { toolsOf, type ShownTool } from './search-tools.ts'
import { ToolIndex, type Ranked } from './words/index.ts'
import { extensionsLimits } from '../limits.ts'

/** The index of the tools that one kind of view sees. It follows the view's surfaces by difference. */
export class ViewIndex {
  readonly #index = new ToolIndex()
  readonly #logError: (error: unknown) => void
  #surface: Surface | undefined
  #tools: ReadonlyMap<string, ShownTool> = new Map()
  #updating: Promise<void> = Promise.resolve()
  /** By `performance.now()`. */
  #searchedAt = performance.now()

  constructor (logError: (error: unknown) => void) {
    this.#logError = logError
  }

  get size (): number { return this.#tools.size }
  /** Whether somebody has searched it lately. */
  get isInUse (): boolean { return performance.now() - this.#searchedAt < extensionsLimits.smartRouting.inUse }
  /** The tools that are searched. */
  get tools (): ReadonlyMap<string, ShownTool> { return this.#tools }

  /** Makes the tools of a merged surface those that are searched. @returns once they are */
  follow (surface: Surface): Promise<void> {
    if (surface === this.#surface) return this.#updating
    this.#surface = surface
    this.#updating = this.#updating.then(async () => {
      // Of surfaces that came meanwhile, only the last one counts.
      if (this.#surface !== surface) return
      const tools = await toolsOf(surface, this.#tools)
      if (isSame(this.#tools, tools)) return
      await this.#index.update([...tools.values()])
      this.#tools = tools
    }).catch((error: unknown) => {
      // The next search tries again.
      if (this.#surface === surface) this.#surface = undefined
      this.#logError(error)
    })
    return this.#updating
  }

  search (query: string, limit: number): Ranked[] {
    this.#searchedAt = performance.now()
    return this.#index.search(query, limit)
  }

  interpret (query: string): string { return this.#index.interpret(query) }
}

function isSame (before: ReadonlyMap<string, ShownTool>, after: ReadonlyMap<string, ShownTool>): boolean {
  if (before.size !== after.size) return false
  const others = before.values()
  for (const tool of after.values()) if (others.next().value !== tool) return false
  return true
}
