import type { Exchange } from '../../../protocol/exchange.ts'
import type { View } from '../../settings/index.ts'
import type { Forwarder } from '../forward.ts'
import type { EventCursors } from '../event-cursors.ts'
import type { OpenEventsStreams } from '../event-streams.ts'
import type { HookLists } from '../hooks.ts'
import type { ListResult } from '../list.ts'
import type { Notifier } from '../notifier.ts'
import type { ProviderTable } from '../providers.ts'
import type { ResourceLinks } from '../resource-links.ts'
import type { ItemResolver } from '../resolve.ts'
import type { RunningTasks } from '../running-tasks.ts'
import type { Surfaces } from '../surfaces.ts'
import type { TaskHandles } from '../task-handles.ts'

/** A result as JSON text, or a list, which is serialized when it is sent. */
export type MethodResult = string | ListResult

/** The parts of the gateway that the handlers of methods use. */
export interface GatewayParts {
  readonly providers: ProviderTable
  readonly surfaces: Surfaces
  readonly resolver: ItemResolver
  readonly forwarder: Forwarder
  readonly notifier: Notifier
  readonly hooks: HookLists
  readonly taskHandles: TaskHandles
  readonly runningTasks: RunningTasks
  readonly cursors: EventCursors
  readonly streams: OpenEventsStreams
  readonly links: ResourceLinks
}

/** Handles one request. @throws RpcError to answer with */
export type MethodHandler = (parts: GatewayParts, exchange: Exchange<View>) => Promise<MethodResult>
