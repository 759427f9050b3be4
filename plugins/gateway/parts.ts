import type { Tasks } from '../../db/ports/tasks.ts'
import { isServerRequestMethod } from '../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { Client, Question } from '../../protocol/exchange.ts'
import type { ProviderHost } from '../../protocol/provider.ts'
import { createProcessSealer, type Sealer } from '../base/secrets/index.ts'
import type { Access, View } from '../settings/index.ts'
import { EventCursors } from './event-cursors.ts'
import { OpenEventsStreams } from './event-streams.ts'
import { Forwarder } from './forward.ts'
import { createHookLists, passNotification } from './hooks.ts'
import { requireItem } from './methods/items.ts'
import type { GatewayParts } from './methods/method.ts'
import { withProviderTaskIds } from './methods/tasks.ts'
import { Notifier } from './notifier.ts'
import { ProviderTable } from './providers.ts'
import { ItemResolver } from './resolve.ts'
import { ResourceLinks } from './resource-links.ts'
import { RunningTasks } from './running-tasks.ts'
import { Surfaces } from './surfaces.ts'
import { TaskHandles } from './task-handles.ts'

/**
 * Creates the parts of a gateway, connected with each other.
 * @param sealer encrypts task ids and event cursors for clients
 * @param store stores tasks; undefined: tasks are not stored
 */
export function createGatewayParts (
  access: Pick<Access, 'snapshot' | 'visibleServers'>,
  logError: (error: unknown, sentence: string) => void,
  sealer: Sealer = createProcessSealer(),
  store?: Tasks
): GatewayParts {
  const providers = new ProviderTable()
  const hooks = createHookLists()
  const surfaces = new Surfaces(access, providers, hooks.onView)
  const links = new ResourceLinks()
  const resolver = new ItemResolver(surfaces, providers, links)
  const notifier = new Notifier(providers, surfaces, resolver, logError)
  const taskHandles = new TaskHandles(sealer)
  const cursors = new EventCursors(sealer)
  const streams = new OpenEventsStreams()
  const forwarder = new Forwarder(
    providers,
    hooks,
    (...request) => withProviderTaskIds({ taskHandles, surfaces, providers }, ...request),
    async (...found) => { await requireItem({ resolver, surfaces }, ...found) },
    ({ view }, provider) => providers.isRegistered(provider) ||
      surfaces.visible(view).some(({ server }) => server.name === provider),
    logError
  )
  const runningTasks = new RunningTasks({ store, handles: taskHandles, providers, forwarder, access, logError })
  return {
    providers, surfaces, resolver, forwarder, notifier, hooks, taskHandles, runningTasks, cursors, streams, links
  }
}

/** Creates the interface through which providers report changed lists, questions, notifications and tasks. */
export function createProviderHost (
  { providers, notifier, hooks, taskHandles, runningTasks }: GatewayParts
): ProviderHost {
  return {
    onListsChanged: () => {
      providers.recordListChange()
      notifier.scheduleNotifications()
      for (const hook of hooks.onListsChanged) hook()
    },
    onQuestion: async (provider, question, client) => {
      requireKnownQuestion(question, client)
      for (const hook of hooks.onQuestion) await hook(provider, question, client)
    },
    onNotification: (...notification) => { passNotification(hooks, ...notification) },
    broadcast: (provider, method, paramsText, serves) => {
      passNotification(hooks, provider, paramsText, (text) => { notifier.broadcast(provider, method, text, serves) })
    },
    taskHandle: (provider, client, id, task) => {
      const handle = taskHandles.findFor(client, provider, id)
      if (handle !== undefined && task !== undefined) runningTasks.recordNotification(client, handle, task)
      return handle
    }
  }
}

/**
 * Checks that a provider may send a question to a client. On routes of several servers, the client cannot know which
 * one sends it, so only the methods that MCP defines are allowed.
 * @throws RpcError -32601 for an unknown method
 */
function requireKnownQuestion ({ method }: Question, { listener }: Client): void {
  const view = listener?.view as View | undefined
  if (view?.scope.kind === 'server' || isServerRequestMethod(method)) return
  throw new RpcError(rpcCode.methodNotFound, `The client does not support ${method}`)
}
