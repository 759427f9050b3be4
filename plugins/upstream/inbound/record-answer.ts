import type { Call } from '../../../protocol/call.ts'
import { isObject, parseSmallMember } from '../../../protocol/json.ts'
import type { Response } from '../../../protocol/message.ts'
import { detachedCopy, largeTextLength } from '../../../protocol/text.ts'
import type { Link } from '../links/link.ts'
import type { Slot } from '../links/slot.ts'

/** Records what an answer starts or ends: a task, or URL elicitations that must precede a repeated call (-32042). */
export function recordTasksOfAnswer (
  { tasks }: Slot, link: Link, call: Call, { resultText, errorText }: Response
): void {
  const { client, method, params } = call
  // A server of either era may answer with a task if the client accepts one.
  const mayBegin = method === 'tools/call' && (params.task !== undefined ||
    (call.exchange?.taskForm !== undefined && resultText?.includes('"taskId"') === true))
  if (!mayBegin && errorText === undefined && !method.startsWith('tasks/')) return
  if (errorText === undefined && method === 'tasks/result') { tasks.endTask(params.taskId); return }
  if (errorText !== undefined) {
    const data = parseSmallMember(errorText, 'data')
    const elicitations = isObject(data) ? data.elicitations : undefined
    if (!Array.isArray(elicitations)) return
    for (const each of elicitations) if (isObject(each)) tasks.recordElicitation(each.elicitationId, client)
    return
  }
  // The state of a task is small, so larger results are not parsed.
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
