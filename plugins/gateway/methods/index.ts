import { allListKinds, listKinds } from '../../../protocol/lists.ts'
import { lookalikeMethod, unknownMethodError } from '../../../protocol/lookalikes.ts'
import { listEvents, pollEvents, streamEvents } from './events.ts'
import { callTool, completionComplete, getPrompt, createListMethod, readResource } from './items.ts'
import type { MethodHandler } from './method.ts'
import { getSkill, readDirectory } from './skills.ts'
import { setLevel, subscribe, unsubscribe } from './listening.ts'
import { listTasks, runTaskMethod } from './tasks.ts'

/** The request methods that the gateway handles. Adapters handle the methods of a single era, such as `initialize`. */
const ownMethods: ReadonlyMap<string, MethodHandler> = new Map<string, MethodHandler>([
  ['ping', async () => '{}'],
  ...allListKinds.map((kind): [string, MethodHandler] => [listKinds[kind].method, createListMethod(kind)]),
  ['tools/call', callTool],
  ['prompts/get', getPrompt],
  ['resources/read', readResource],
  ['resources/subscribe', subscribe],
  ['resources/unsubscribe', unsubscribe],
  ['resources/directory/read', readDirectory],
  ['skills/get', getSkill],
  ['completion/complete', completionComplete],
  ['logging/setLevel', setLevel],
  ['events/list', listEvents],
  ['events/poll', pollEvents],
  ['events/stream', streamEvents],
  ['tasks/get', runTaskMethod],
  ['tasks/result', runTaskMethod],
  ['tasks/update', runTaskMethod],
  ['tasks/cancel', runTaskMethod],
  ['tasks/list', listTasks]
])

/**
 * Whether a notification may have this method. Otherwise, a request could be sent as a notification to bypass the
 * checks of requests, or under a method that looks like a notification's to bypass the checks of notifications.
 */
export const isNotificationMethod = (method: string): boolean =>
  method.startsWith('notifications/') && lookalikeMethod(method) === undefined

/**
 * Methods that concern one connection, and are never forwarded. The adapter of the client's era handles the methods of
 * that era; the others are unknown methods.
 */
const hopMethods: ReadonlySet<string> = new Set(['initialize', 'server/discover', 'subscriptions/listen'])

/** Forwards an unknown method to the view's only server, which may know it. Views of several servers refuse it. */
const forwardUnknown: MethodHandler = async (parts, exchange) => {
  const { method, view: { scope } } = exchange
  if (lookalikeMethod(method) !== undefined) throw unknownMethodError(method)
  if (method.startsWith('tasks/')) return await runTaskMethod(parts, exchange)
  if (method.startsWith('events/')) throw unknownMethodError(method)
  if (scope.kind !== 'server' || method.startsWith('notifications/') || hopMethods.has(method)) {
    throw unknownMethodError(method)
  }
  return await parts.forwarder.send(exchange, scope.name, undefined)
}

/** Returns the handler of a method. @param added the methods that plugins have added */
export const methodFor = (name: string, added: ReadonlyMap<string, MethodHandler>): MethodHandler =>
  ownMethods.get(name) ?? added.get(name) ?? forwardUnknown
