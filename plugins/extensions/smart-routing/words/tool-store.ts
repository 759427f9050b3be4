import { analyseTool } from './analysis.ts'
import type { SearchableTool } from './search-tool.ts'
import { Vocabulary } from './vocabulary.ts'

/** A stored tool. `name`: the terms of its name. `size`: the memory that it added to the store, in bytes. */
interface StoredTool {
  readonly tool: SearchableTool
  readonly name: readonly string[]
  readonly size: number
  holders: number
}

/** The words of the tools of several indexes. A tool is stored once, however many indexes hold it. */
export class ToolStore {
  readonly vocabulary = new Vocabulary()
  readonly #slotOf = new Map<SearchableTool, number>()
  readonly #stored: Array<StoredTool | undefined> = []
  #freeSlots: number[] = []
  /** The slots that nobody holds, which still have places in the vocabulary. */
  #unheld: number[] = []
  #sweeping: Promise<void> | undefined

  /** The memory of the words of all tools, in bytes. */
  get size (): number { return this.vocabulary.size }
  /** The number of slots; all slots are lower. */
  get slots (): number { return this.#stored.length }

  has (tool: SearchableTool): boolean { return this.#slotOf.has(tool) }

  /** Holds a tool, which is analysed if nobody holds it. @returns its slot, until `release` */
  take (tool: SearchableTool): number {
    const known = this.#slotOf.get(tool)
    const held = known === undefined ? undefined : this.#stored[known]
    if (known !== undefined && held) {
      held.holders++
      return known
    }
    const analysis = analyseTool(tool)
    const slot = this.#freeSlots.pop() ?? this.#stored.length
    const before = this.size
    this.vocabulary.add(slot, analysis)
    this.#stored[slot] = { tool, name: analysis.name, size: this.size - before, holders: 1 }
    this.#slotOf.set(tool, slot)
    return slot
  }

  /** Returns the terms of the name of the tool in a slot. */
  nameAt (slot: number): readonly string[] { return this.#stored[slot]?.name ?? [] }
  sizeAt (slot: number): number { return this.#stored[slot]?.size ?? 0 }

  /** Releases tools. The words of those that nobody holds are removed soon. */
  release (slots: Iterable<number>): void {
    for (const slot of slots) {
      const held = this.#stored[slot]
      if (!held || --held.holders > 0) continue
      this.#slotOf.delete(held.tool)
      this.#stored[slot] = undefined
      this.#unheld.push(slot)
    }
    // Each removal visits all terms.
    if (this.#unheld.length > this.#slotOf.size / 8) void this.sweep()
  }

  /** Removes the words of the tools that nobody holds. @returns resolves when the memory is free */
  async sweep (): Promise<void> {
    while (this.#sweeping) await this.#sweeping
    if (this.#unheld.length === 0) return
    const slots = this.#unheld
    this.#unheld = []
    const isRemoved = new Uint8Array(this.slots)
    for (const slot of slots) isRemoved[slot] = 1
    this.#sweeping = this.vocabulary.remove(isRemoved).finally(() => { this.#sweeping = undefined })
    await this.#sweeping
    this.#freeSlots = this.#freeSlots.concat(slots)
  }
}
