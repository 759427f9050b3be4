import fp from 'fastify-plugin'
import type { CatalogueCache, Snapshot, Store } from '../../db/store.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** All that is written down, now. */
    snapshot: () => Snapshot
    catalogueCache: CatalogueCache
  }
}

export interface StoreOptions { store: Store, catalogueCache: CatalogueCache }

/** `app.snapshot()`: what is written down, read once at start. @throws when it cannot be read: the program does not start */
export default fp<StoreOptions>(async (app, { store, catalogueCache }) => {
  const snapshot = await store.load()
  for (const problem of snapshot.problems) app.log.warn(problem)
  app.decorate('snapshot', () => snapshot)
  app.decorate('catalogueCache', catalogueCache)
}, { name: 'store' })
