import { resolve } from 'node:path'
import fp from 'fastify-plugin'
import type { Snapshot } from '../../../db/store.ts'
import { mayEnter, type ProcessUser } from '../../../protocol/transports/started-process.ts'
import { Bundles } from './bundles.ts'
import { BundleFolder } from './folder.ts'
import { bundleProblem } from './usage.ts'

declare module 'fastify' {
  interface FastifyInstance { bundles: Bundles }
}

export interface BundleOptions {
  /** The folder of all bundles, in DATA_DIR. */
  root: string
  /** Whether other replicas may use the folder at the same time. */
  isShared: boolean
  environment: Readonly<Record<string, string | undefined>>
  /** The user that children run as; undefined: the gateway's own. */
  childUser?: ProcessUser
}

/** `app.bundles`: uploaded bundles. What interrupted uploads have left is removed at the start. */
export default fp<BundleOptions>(async (app, { root, isShared, environment, childUser }) => {
  const folder = new BundleFolder({ root: resolve(root), isShared, isForOthers: childUser !== undefined })
  const bundles = new Bundles({
    folder,
    settings: () => app.settings.current,
    ended: async (server) => { await app.upstreams.ended(server) },
    path: environment.PATH ?? '',
    home: childUser?.home ?? environment.HOME,
    closed: async (path) => childUser === undefined || await mayEnter(path, childUser)
      ? undefined
      : `Its folder ${path} is closed to the user ${childUser.name} (CHILD_USER): let others pass through the folders above it`
  })
  app.decorate('bundles', bundles)
  app.upstreamHooks.beforeStart(bundleProblem(resolve(root)))
  const removeUnused = (next: Snapshot, former: Snapshot): void => {
    bundles.removeUnused(next, former).catch((error: unknown) => { app.log.warn({ err: error }, 'an unused bundle could not be removed') })
  }
  // Of several replicas, the one that made a change removes; where there is one process, edits of the settings file count, too.
  if (isShared) app.settings.on('committed', ({ next, former }) => { removeUnused(next, former) })
  else app.settings.on('changed', removeUnused)
  app.addHook('onReady', async () => { await folder.sweep() })
}, { name: 'bundles', dependencies: ['settings', 'upstream'] })
