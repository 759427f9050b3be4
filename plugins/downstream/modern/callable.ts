import { memberOf, smallMemberOf } from '../../../protocol/json.ts'
import type { List, ListEntry } from '../../gateway/index.ts'

/** Lists without what clients of this era cannot call, by the lists of the gateway. */
const lists = new WeakMap<List, List>()

/**
 * A list without the tools of legacy servers that run as tasks only (`execution.taskSupport`, MCP 2025-11-25): clients of this era cannot
 * ask for such a task.
 */
export function callableList (list: List): List {
  if (list.kind !== 'tools') return list
  const known = lists.get(list)
  if (known) return known
  const entries = list.entries.filter((entry) => !needsTask(entry))
  const made = entries.length === list.entries.length ? list : list.with(entries)
  lists.set(list, made)
  return made
}

const needsTask = ({ text, isModern }: ListEntry): boolean =>
  isModern !== true && text.includes('"taskSupport"') && smallMemberOf(memberOf(text, 'execution') ?? '{}', 'taskSupport') === 'required'
