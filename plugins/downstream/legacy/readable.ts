import { readableTool } from '../../../protocol/legacy/readable-tool.ts'
import type { Item } from '../../../protocol/lists.ts'
import type { Entry, List } from '../../gateway/list.ts'

/** Lists as clients of this era can read them, by the lists of the gateway. */
const lists = new WeakMap<List, List>()

/** Tools as they can read them, by the item: a list is made anew with each change of any server. `text`: what it was read of. */
const tools = new WeakMap<Item, { readonly text: string, readonly readable: string | undefined }>()

/** A list as clients of this era can read it. What servers of this era list is what they can. */
export function readableList (list: List): List {
  if (list.kind !== 'tools') return list
  const known = lists.get(list)
  if (known) return known
  const made = list.entries.every((entry) => readableEntry(entry) === entry) ? list : list.with(list.entries.flatMap(readableEntry))
  lists.set(list, made)
  return made
}

function readableEntry (entry: Entry): Entry | [] {
  const { text, modern } = entry
  if (!modern) return entry
  const known = tools.get(modern)
  const readable = known?.text === text ? known.readable : readableTool(text)
  if (known?.text !== text) tools.set(modern, { text, readable })
  return readable === text ? entry : readable === undefined ? [] : { ...entry, text: readable }
}
