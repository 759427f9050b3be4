import { isObject } from '../../../../protocol/json.ts'
import { BoundedMap } from '../../../base/limits/index.ts'
import { sha256 } from '../../../base/secrets/index.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.learning

/** Returns the number under which a word is stored; words themselves are not stored. */
export const wordCodeOf = (word: string): number => Number.parseInt(sha256(word).slice(0, 8), 16)

/** Counts how often each tool of one server was called after a query with each word. Words are kept as codes. */
export class ToolUses {
  readonly #tools = new BoundedMap<string, BoundedMap<number, number>>(bounds.tools)

  /** Counts one use of a tool after a query. @param codes the codes of the query's words */
  count (tool: string, codes: readonly number[]): void {
    const uses = this.#tools.get(tool) ?? new BoundedMap<number, number>(bounds.words)
    this.#tools.setNewest(tool, uses)
    for (const code of codes) uses.setNewest(code, Math.min(bounds.count, (uses.get(code) ?? 0) + 1))
  }

  /**
   * Returns the share of a query's words for which the tool was used before, from 0 to 1. A word counts in full once it
   * has led to the tool several times.
   * @param codes the codes of the query's words
   */
  shareOfUsedWords (tool: string, codes: readonly number[]): number {
    const uses = this.#tools.get(tool)
    if (!uses || codes.length === 0) return 0
    return codes.reduce((sum, code) => sum + Math.min(1, (uses.get(code) ?? 0) / bounds.enough), 0) / codes.length
  }

  /** Removes the counts of tools other than the given ones. */
  keepOnly (tools: ReadonlySet<string>): void {
    for (const tool of this.#tools.keys()) if (!tools.has(tool)) this.#tools.delete(tool)
  }

  toText (): string { return JSON.stringify([...this.#tools].map(([tool, uses]) => [tool, [...uses]])) }

  /** Creates an instance from stored counts. @param text a result of `toText`; anything else is ignored */
  static fromText (text: string): ToolUses {
    const uses = new ToolUses()
    try {
      const stored: unknown = JSON.parse(text)
      if (Array.isArray(stored)) for (const each of stored) uses.#restore(each)
    } catch { /* Counts that cannot be read are lost. */ }
    return uses
  }

  #restore (stored: unknown): void {
    if (!Array.isArray(stored) || isObject(stored)) return
    const [tool, counts] = stored as unknown[]
    if (typeof tool !== 'string' || !Array.isArray(counts)) return
    const uses = new BoundedMap<number, number>(bounds.words)
    for (const pair of counts as unknown[]) {
      const [code, count] = Array.isArray(pair) ? pair as unknown[] : []
      if (Number.isInteger(code) && Number.isInteger(count)) uses.set(code as number, count as number)
    }
    this.#tools.set(tool, uses)
  }
}
