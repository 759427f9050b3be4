import fp from 'fastify-plugin'
import type { CatalogueCache, Storage } from '../../db/store.ts'
import activities from './activities/index.ts'
import compression from './compression/index.ts'
import guards from './guards/index.ts'
import callLog from './logs/calls.ts'
import events, { type EventsOptions } from './events/index.ts'
import logs from './logs/index.ts'
import type { LogRing } from './logs/ring.ts'
import metrics from './metrics/index.ts'
import notifications from './notifications/index.ts'
import pins from './pins/index.ts'
import policies from './policies/index.ts'
import quotas from './quotas/index.ts'
import runningTasks from './tasks/index.ts'
import smartRouting from './smart-routing/index.ts'
import tracing from './tracing/index.ts'

/** Objects that the extensions need and that exist once in the process. */
export interface ExtensionOptions {
  storage: Pick<Storage, 'activities' | 'approvals' | 'eventWebhooks' | 'pins' | 'usage' | 'vectors'>
  sealer?: EventsOptions['sealer']
  catalogueCache: CatalogueCache
  /** The newest lines of the log. The logger adds each line. */
  ring: LogRing
}

/** Registers the extensions. The gateway runs their hooks in the order of registration. */
export default fp<ExtensionOptions>(async (app, { ring, storage, catalogueCache, sealer }) => {
  await app.register(logs, { ring })
  await app.register(notifications)
  await app.register(metrics)
  // Guards must precede the extensions that store arguments, so that they store masked arguments.
  await app.register(guards)
  await app.register(policies, { store: storage.approvals })
  await app.register(events, { storage, sealer })
  await app.register(runningTasks)
  await app.register(compression)
  await app.register(smartRouting, { vectors: storage.vectors, catalogueCache })
  await app.register(pins, { pins: storage.pins, catalogueCache })
  await app.register(tracing)
  await app.register(activities, storage)
  // Quotas must follow the extensions that may refuse a call or change its result.
  await app.register(quotas, { usage: storage.usage })
  await app.register(callLog)
}, { name: 'extensions-parts' })
