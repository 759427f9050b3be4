import { isObject } from '../../../protocol/json.ts'
import type { Item } from '../../../protocol/lists.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { Gateway, ListEntry, Surface, ItemTarget } from '../../gateway/index.ts'
import type { SearchableTool } from './words/index.ts'

/**
 * The last parsed tool, kept since several members of a tool are read one after another. Only one is kept, since a tool
 * may have megabytes.
 */
let lastParsed: { readonly text: string, readonly value: Record<string, unknown> } | undefined

function parseTool (text: string): Record<string, unknown> {
  if (lastParsed?.text !== text) {
    const value: unknown = JSON.parse(text)
    lastParsed = { text, value: isObject(value) ? value : {} }
  }
  return lastParsed.value
}

/** A tool as a view shows it. It keeps the JSON text of the tool, and parses members on demand. */
export class ShownTool implements SearchableTool {
  readonly name: string
  readonly ownName: string
  readonly server: string
  readonly content: ShownTool
  readonly #text: string
  readonly #description: string | undefined

  /**
   * @param name the name in the view
   * @param same a tool that differs at most by its name in the view
   */
  constructor (name: string, { provider, key }: ItemTarget, { text, description }: ListEntry, same?: ShownTool) {
    this.name = name
    this.content = same?.content ?? this
    this.ownName = key
    this.server = provider
    this.#text = text
    this.#description = description
  }

  /** The length of the tool's JSON text, in characters. */
  get size (): number { return this.#text.length }
  get title (): string | undefined { return textOf(parseTool(this.#text).title) }
  get description (): string | undefined { return this.#description ?? textOf(parseTool(this.#text).description) }
  get inputSchema (): unknown { return parseTool(this.#text).inputSchema }

  /** Whether a tool with this name, target and list entry is the same as this one. */
  isSameTool (name: string, target: ItemTarget, entry: ListEntry): boolean {
    return this.name === name && this.hasContent(target, entry)
  }

  /** Whether a tool with this target and list entry differs at most by its name in the view. */
  hasContent ({ provider, key }: ItemTarget, { text, description }: ListEntry): boolean {
    return this.server === provider && this.ownName === key && this.#text === text && this.#description === description
  }
}

const textOf = (value: unknown): string | undefined => typeof value === 'string' ? value : undefined

/** Number of tools between two checks of the time budget. */
const toolsPerCheck = 64
/** Max number of cached `ShownTool`s for one item; beyond that, the oldest is dropped, often one of a former view. */
const maxShownTools = 8
/** The `ShownTool`s of each item. Views that show an item in the same way share a `ShownTool` and its derived data. */
const shownToolsByItem = new WeakMap<Item, ShownTool[]>()

function cachedShownTool (name: string, target: ItemTarget, entry: ListEntry): ShownTool {
  const { item } = target
  if (!item) return new ShownTool(name, target, entry)
  let tools = shownToolsByItem.get(item)
  if (!tools) shownToolsByItem.set(item, tools = [])
  let tool = tools.find((each) => each.isSameTool(name, target, entry))
  if (!tool) {
    tool = new ShownTool(name, target, entry, tools.find((each) => each.hasContent(target, entry)))
    tools.push(tool)
    if (tools.length > maxShownTools) tools.shift()
  }
  return tool
}

/**
 * Returns the tools of a merged surface by name, in the order of the surface. Yields to the event loop regularly.
 * @param before the former result, from which unchanged tools are reused
 */
export async function shownToolsOf (
  { parts: { tools } }: Surface, before?: ReadonlyMap<string, ShownTool>
): Promise<Map<string, ShownTool>> {
  const found = new Map<string, ShownTool>()
  const budget = new LoopBudget()
  let at = 0
  for (const [name, target] of tools.targets) {
    if (at % toolsPerCheck === toolsPerCheck - 1 && budget.isSpent) await budget.yieldToEventLoop()
    // List entries and targets are in the same order.
    const entry = tools.list.entries[at++]
    if (!entry) continue
    const former = before?.get(name)
    found.set(name, former?.isSameTool(name, target, entry) === true ? former : cachedShownTool(name, target, entry))
  }
  return found
}

/** Returns the tools that servers list, without the overrides of views. Keys: `server tool`. */
export function toolsListedByServers (
  servers: Iterable<string>, gateway: Pick<Gateway, 'catalogues'>
): Map<string, ShownTool> {
  const tools = new Map<string, ShownTool>()
  for (const server of servers) {
    for (const { lists } of gateway.catalogues(server)) {
      for (const item of lists.tools) {
        tools.set(`${server} ${item.key}`, cachedShownTool(item.key, { provider: server, key: item.key, item }, item))
      }
    }
  }
  return tools
}

/** Whether a surface lists a tool under the tool's name. */
export function listsTool ({ parts: { tools } }: Surface, { name, server, ownName }: SearchableTool): boolean {
  const target = tools.targets.get(name)
  return target?.provider === server && target.key === ownName
}
