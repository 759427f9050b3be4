import type { Call } from '../../../protocol/call.ts'
import { isObject, parseSmallMember } from '../../../protocol/json.ts'
import type { Response } from '../../../protocol/message.ts'
import { detachedCopy, largeTextLength } from '../../../protocol/text.ts'
import type { Link } from '../links/link.ts'
import type { Slot } from '../links/slot.ts'

/**
 * Records what the answer to a call says about a task: its start, its state, or that its result was fetched. For an
 * error -32042, records the URL elicitations that the client must complete before it repeats the call.
 */
export function recordTasksAndElicitations (
  { tasks }: Slot, link: Link, call: Call, { resultText, errorText }: Response
): void {
  const { client, method, params } = call
  // A server of any revision may answer a call with a task, if the client accepts tasks.
  const mayBegin = method === 'tools/call' && (params.task !== undefined ||
    (call.exchange.taskForm !== undefined && resultText?.includes('"taskId"') === true))
  if (!mayBegin && errorText === undefined && !method.startsWith('tasks/')) return
  if (errorText === undefined && method === 'tasks/result') { tasks.endTask(params.taskId); return }
  if (errorText !== undefined) {
    const data = parseSmallMember(errorText, 'data')
    const elicitations = isObject(data) ? data.elicitations : undefined
    if (!Array.isArray(elicitations)) return
    for (const each of elicitations) if (isObject(each)) tasks.recordElicitation(each.elicitationId, client)
    return
  }
  // A task's state is small, so a large result contains none, and is not parsed.
  const value: unknown = resultText === undefined || resultText.length > largeTextLength ? {} : JSON.parse(resultText)
  if (!isObject(value)) return
  const begun = value.resultType === 'task' ? value : value.task
  if (mayBegin && isObject(begun)) {
    const { clientToken } = call
    const progress = clientToken === undefined
      ? undefined
      : { client, link, token: call.id, clientToken: detachedCopy(clientToken) }
    tasks.recordTask(begun, link, client, { progress })
  } else if (method.startsWith('tasks/')) tasks.recordTask(value, link, client)
}
