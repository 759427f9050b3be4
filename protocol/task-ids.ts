import { isObject, memberOf, membersOf, parseSmallMember, withMembers } from './json.ts'

/** The member of `_meta` with the id of a message's task (MCP 2025-11-25, "Related Task Metadata"). */
const relatedTask = 'io.modelcontextprotocol/related-task'

/** Returns the id of the task that params or a result belong to; undefined if there is none. */
export function relatedTaskOf ({ _meta }: Readonly<Record<string, unknown>>): string | undefined {
  const related = isObject(_meta) ? _meta[relatedTask] : undefined
  return isObject(related) && typeof related.taskId === 'string' ? related.taskId : undefined
}

/** Marks params or a result as belonging to a task. */
export function withRelatedTask (text: string, taskId: string): string {
  const meta = memberOf(text, '_meta')
  const own = meta?.startsWith('{') === true ? meta : '{}'
  return withMembers(text, { _meta: withMembers(own, { [relatedTask]: JSON.stringify({ taskId }) }) })
}

/** Removes the mark that `withRelatedTask` adds from params or a result. */
export function withoutRelatedTask (text: string): string {
  if (!text.includes(relatedTask)) return text
  const meta = memberOf(text, '_meta')
  if (meta?.startsWith('{') !== true) return text
  const rest = withMembers(meta, { [relatedTask]: undefined })
  return withMembers(text, { _meta: rest === '{}' ? undefined : rest })
}

/** Whether params refer to a task in the mark in `_meta` or in `task.taskId`. A plain `taskId` does not count. */
export const refersToTask = ({ _meta: meta, task }: Readonly<Record<string, unknown>>): boolean =>
  (isObject(meta) && meta[relatedTask] !== undefined) || (isObject(task) && task.taskId !== undefined)

/**
 * Replaces the sender's task ids in the mark in `_meta` and in `task` by the receiver's. Removes references to unknown
 * tasks.
 * @param idOf returns the receiver's id for the sender's id; undefined for an unknown task
 */
export function translateTaskReferences (text: string, idOf: (id: unknown) => string | undefined): string {
  const ownId = (object: string): string | undefined => {
    const id = idOf(parseSmallMember(object, 'taskId'))
    return id === undefined ? undefined : JSON.stringify(id)
  }
  const changes: Record<string, string | undefined> = {}
  const [meta, task] = [memberOf(text, '_meta'), memberOf(text, 'task')]
  if (meta?.startsWith('{') === true) {
    const id = ownId(memberOf(meta, relatedTask) ?? '{}')
    const rest = withMembers(meta, { [relatedTask]: id === undefined ? undefined : `{"taskId":${id}}` })
    changes._meta = rest === '{}' ? undefined : rest
  }
  if (task?.startsWith('{') === true) changes.task = withMembers(task, { taskId: ownId(task) })
  return withMembers(text, changes)
}

/**
 * Replaces a task id in all places where MCP has one: in a task, in a result that contains a new task, and in the
 * mark in `_meta`. Everything else keeps its bytes.
 * @param text params or a result, as JSON text
 */
export function replaceTaskId (text: string, from: string, to: string): string {
  if (!text.includes('askId')) return text
  const [own, other] = [JSON.stringify(from), JSON.stringify(to)]
  const replaced = (object: string): string => isId(memberOf(object, 'taskId'), own)
    ? withMembers(object, { taskId: other })
    : object
  const changes: Record<string, string> = {}
  for (const { key, start, end } of membersOf(text)) {
    const value = text.slice(start, end)
    if (key === 'taskId' && isId(value, own)) changes.taskId = other
    else if (key === 'task' && value.startsWith('{')) changes.task = replaced(value)
    else if (key === '_meta' && value.includes(relatedTask)) {
      changes._meta = withMembers(value, { [relatedTask]: replaced(memberOf(value, relatedTask) ?? '{}') })
    }
  }
  return Object.keys(changes).length === 0 ? text : withMembers(text, changes)
}

/** Whether a JSON text is this id, however it is escaped. */
const isId = (text: string | undefined, id: string): boolean =>
  text === id || (text?.startsWith('"') === true && text.includes('\\') && JSON.stringify(JSON.parse(text)) === id)
