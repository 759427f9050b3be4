import type { Tasks } from '../../db/ports/tasks.ts'
import type { ProviderHost } from '../../protocol/provider.ts'
import { createProcessSealer, type Sealer } from '../base/secrets/index.ts'
import type { Access } from '../settings/index.ts'
import { EventCursors } from './event-cursors.ts'
import { EventStreams } from './event-streams.ts'
import { Forwarder } from './forward.ts'
import { createHookLists, passNotification } from './hooks.ts'
import type { GatewayParts } from './methods/method.ts'
import { withOwnTaskMarks } from './methods/tasks.ts'
import { Notifier } from './notifier.ts'
import { ProviderTable } from './providers.ts'
import { ItemResolver } from './resolve.ts'
import { ResourceLinks } from './resource-links.ts'
import { RunningTasks } from './running-tasks.ts'
import { Surfaces } from './surfaces.ts'
import { TaskHandles } from './task-handles.ts'

/** Creates a gateway's parts. @param sealer seals task ids and cursors @param store of tasks; undefined: not listed */
export function createParts (
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
  const notifier = new Notifier(providers, surfaces, resolver)
  const tasks = new TaskHandles(sealer)
  const cursors = new EventCursors(sealer)
  const streams = new EventStreams()
  const forwarder = new Forwarder(providers, hooks, (...request) =>
    withOwnTaskMarks({ tasks, surfaces, providers }, ...request), logError)
  const running = new RunningTasks({ store, handles: tasks, providers, forwarder, access, logError })
  return { providers, surfaces, resolver, forwarder, notifier, hooks, tasks, running, cursors, streams, links }
}

/** The gateway, as providers see it. */
export function createProviderHost ({ providers, notifier, hooks, tasks, running }: GatewayParts): ProviderHost {
  return {
    changed: () => {
      providers.recordListChange()
      notifier.scheduleNotifications()
      for (const hook of hooks.onListsChanged) hook()
    },
    question: async (...question) => { for (const hook of hooks.onQuestion) await hook(...question) },
    onNotification: (...notification) => { passNotification(hooks, ...notification) },
    broadcast: (provider, method, paramsText, serves) => {
      passNotification(hooks, provider, paramsText, (text) => { notifier.broadcast(provider, method, text, serves) })
    },
    taskHandle: (provider, client, id, task) => {
      const handle = tasks.findFor(client, provider, id)
      if (handle !== undefined && task !== undefined) running.noteFor(client, handle, task)
      return handle
    }
  }
}
