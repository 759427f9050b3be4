import { memberOf, membersOf, withMembers } from './json.ts'

// A task is told in two shapes: that of MCP 2025-11-25, and that of the extension `io.modelcontextprotocol/tasks`,
// which adds the outcome and the open questions. All texts are JSON, and other members keep their bytes.

/** The states of a task after which it changes no more. */
export const terminalStates: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** The result of a task, and what it asks for: members of the extension alone. */
const detailMembers = { resultType: undefined, result: undefined, error: undefined, inputRequests: undefined }

/** The text of an object with other names for some members. */
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

/** A task of the extension, in the shape of 2025-11-25. A tool that failed is a failed task there. */
export function toLegacyTask (text: string): string {
  const result = memberOf(text, 'result')
  const isFailed = result !== undefined && memberOf(result, 'isError') === 'true'
  const task = renameMembers(withMembers(text, detailMembers), { ttlMs: 'ttl', pollIntervalMs: 'pollInterval' })
  return withMembers(task, isFailed ? { status: '"failed"' } : {}, { ttl: 'null' })
}

/** A task of 2025-11-25, in the shape of the extension. */
export const toModernTask = (text: string): string =>
  withMembers(renameMembers(text, { ttl: 'ttlMs', pollInterval: 'pollIntervalMs' }), {}, { ttlMs: 'null' })

/** The answer to a call that began a task of the extension, in the shape of 2025-11-25. */
export function toLegacyTaskResult (text: string): string {
  const meta = memberOf(text, '_meta')
  const task = toLegacyTask(withMembers(text, { _meta: undefined }))
  return `{"task":${task}${meta === undefined ? '' : `,"_meta":${meta}`}}`
}

/** The answer to a call that began a task of 2025-11-25, in the shape of the extension. @param task of it */
export function toModernTaskResult (text: string, task: string): string {
  const meta = memberOf(text, '_meta')
  return withMembers(toModernTask(task), { resultType: '"task"', ...(meta !== undefined && { _meta: meta }) })
}
