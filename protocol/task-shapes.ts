import { memberOf, membersOf, withMembers } from './json.ts'

// A task has one shape in MCP 2025-11-25, and another one in the extension `io.modelcontextprotocol/tasks`, which adds
// the outcome and the open questions. All texts are JSON, and other members keep their bytes.

/** The final states of a task. */
export const terminalStates: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** The members of a task that exist only in the extension: its type, its outcome, and its questions. */
const detailMembers = { resultType: undefined, result: undefined, error: undefined, inputRequests: undefined }

/** Renames members of an object's text. */
function renameMembers (text: string, names: Readonly<Record<string, string>>): string {
  const changes: Record<string, string | undefined> = {}
  for (const { key, start, end } of membersOf(text)) {
    const name = Object.hasOwn(names, key) ? names[key] : undefined
    if (name === undefined) continue
    changes[key] = undefined
    changes[name] = text.slice(start, end)
  }
  return withMembers(text, changes)
}

/** Converts a task of the extension to the shape of 2025-11-25, in which a task with a tool error is `failed`. */
export function toLegacyTask (text: string): string {
  const result = memberOf(text, 'result')
  const isFailed = result !== undefined && memberOf(result, 'isError') === 'true'
  const task = renameMembers(withMembers(text, detailMembers), { ttlMs: 'ttl', pollIntervalMs: 'pollInterval' })
  return withMembers(task, isFailed ? { status: '"failed"' } : {}, { ttl: 'null' })
}

/** Converts a task of 2025-11-25 to the shape of the extension. */
export const toModernTask = (text: string): string =>
  withMembers(renameMembers(text, { ttl: 'ttlMs', pollInterval: 'pollIntervalMs' }), {}, { ttlMs: 'null' })

/** Converts a call's result that contains a new task: from the extension's shape to the shape of 2025-11-25. */
export function toLegacyCreateTaskResult (text: string): string {
  const meta = memberOf(text, '_meta')
  const task = toLegacyTask(withMembers(text, { _meta: undefined }))
  return `{"task":${task}${meta === undefined ? '' : `,"_meta":${meta}`}}`
}

/**
 * Converts a call's result that contains a new task: from the shape of 2025-11-25 to the extension's shape.
 * @param task the result's member `task`, as JSON text
 */
export function toModernCreateTaskResult (text: string, task: string): string {
  const meta = memberOf(text, '_meta')
  return withMembers(toModernTask(task), { resultType: '"task"', ...(meta !== undefined && { _meta: meta }) })
}
