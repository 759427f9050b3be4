import { lookalikeMethod, unknownMethod } from '../../../protocol/lookalikes.ts'
import { callTool, completionComplete, getPrompt, listMethod, readResource } from './items.ts'
import type { Method } from './method.ts'
import { setLevel, subscribe, unsubscribe } from './listening.ts'
import { listTasks, task } from './tasks.ts'

/**
 * The methods of clients' requests that the gateway knows. Those of sessions (`initialize`) are handled by an era's
 * adapter.
 */
const methods: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['ping', async () => '{}'],
  ['tools/list', listMethod('tools')],
  ['prompts/list', listMethod('prompts')],
  ['resources/list', listMethod('resources')],
  ['resources/templates/list', listMethod('resourceTemplates')],
  ['tools/call', callTool],
  ['prompts/get', getPrompt],
  ['resources/read', readResource],
  ['resources/subscribe', subscribe],
  ['resources/unsubscribe', unsubscribe],
  ['completion/complete', completionComplete],
  ['logging/setLevel', setLevel],
  ['tasks/get', task],
  ['tasks/result', task],
  ['tasks/cancel', task],
  ['tasks/list', listTasks]
])

/**
 * A request without an id is a notification: as a request it would run past everything that looks at requests. What a
 * server may take for another notification would run past what looks at that one.
 */
export const isNotification = (method: string): boolean =>
  method.startsWith('notifications/') && lookalikeMethod(method) === undefined

/**
 * Methods that open what is between a client and the gateway. Those of the client's era are answered by its adapter.
 */
const ofOneHop: ReadonlySet<string> = new Set(['initialize', 'server/discover', 'subscriptions/listen'])

/** An unknown method is forwarded if the view has a single provider, which may know it. */
const passOn: Method = async (parts, exchange) => {
  const { method, view: { scope } } = exchange
  if (lookalikeMethod(method) !== undefined) throw unknownMethod(method)
  if (method.startsWith('tasks/')) return await task(parts, exchange)
  if (scope.kind !== 'server' || method.startsWith('notifications/') || ofOneHop.has(method)) {
    throw unknownMethod(method)
  }
  return await parts.forwarder.send(exchange, scope.name, undefined)
}

export const methodFor = (name: string): Method => methods.get(name) ?? passOn
