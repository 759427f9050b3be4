import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { readableTool } from '../../../protocol/modern/for-legacy-clients.ts'
import type { Item, ListKind } from '../../../protocol/lists.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { List, ListEntry } from '../../gateway/index.ts'
import { compiles } from './compiles.ts'

/** Lists as clients of this era can read them, by the lists of the gateway. */
const lists = new WeakMap<List, Promise<List>>()

/** Items as they can read them: a list is made anew with each change of any server. `text`: what it was read of. */
const items = new WeakMap<Item, { readonly text: string, readonly readable: string | undefined }>()

/** A list as clients of this era can read it: many refuse all of a list for one item that they cannot. */
export async function readableList (list: List): Promise<List> {
  let made = lists.get(list)
  if (!made) lists.set(list, made = makeReadable(list))
  return await made
}

async function makeReadable (list: List): Promise<List> {
  const budget = new LoopBudget()
  const entries: ListEntry[] = []
  let isSame = true
  for (const entry of list.entries) {
    const readable = readableEntry(list.kind, entry)
    if (readable !== undefined) entries.push(readable)
    isSame &&= readable === entry
    if (budget.spent) await budget.yieldToEventLoop()
  }
  return isSame ? list : list.with(entries)
}

/** Undefined: it is left out. */
function readableEntry (kind: ListKind, entry: ListEntry): ListEntry | undefined {
  const { text, item } = entry
  if (!item) return entry
  const known = items.get(item)
  const readable = known?.text === text ? known.readable : readableItem(kind, text)
  if (known?.text !== text) items.set(item, { text, readable })
  return readable === text ? entry : readable === undefined ? undefined : { ...entry, text: readable }
}

function readableItem (kind: ListKind, text: string): string | undefined {
  switch (kind) {
    case 'tools': return withCompiled(readableTool(text))
    case 'resources': case 'resourceTemplates': return withTime(text)
    case 'prompts': return text
  }
}

/** A tool without an `outputSchema` that clients cannot compile: nothing needs it. */
function withCompiled (text: string | undefined): string | undefined {
  const output = text === undefined ? undefined : memberOf(text, 'outputSchema')
  if (text === undefined || output === undefined || compiles(JSON.parse(output))) return text
  return withMembers(text, { outputSchema: undefined })
}

/** ISO 8601 with a time and a zone, which SDKs of this era want of `lastModified`. MCP speaks of ISO 8601 only. */
const isoTime = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** A resource without a `lastModified` that clients cannot read. */
function withTime (text: string): string {
  const annotations = text.includes('"lastModified"') ? memberOf(text, 'annotations') : undefined
  if (annotations === undefined) return text
  const value: unknown = JSON.parse(annotations)
  if (!isObject(value) || typeof value.lastModified !== 'string' || isoTime.test(value.lastModified)) return text
  return withMembers(text, { annotations: withMembers(annotations, { lastModified: undefined }) })
}
