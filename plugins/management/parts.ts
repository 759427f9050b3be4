import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import type { BundleOptions } from './bundles/bundles.ts'
import bundles from './bundles/bundles.ts'
import consolePages from './console/console.ts'
import exporting from './export.ts'
import groups from './groups/groups.ts'
import market from './market/market.ts'
import people from './people.ts'
import ownVariables from './servers/own-variables.ts'
import servers from './servers/plugin.ts'
import system from './system/system.ts'
import templates from './templates/index.ts'

export interface ManagementOptions extends Pick<BundleOptions, 'childUser' | 'environment'> {
  bundles: Pick<BundleOptions, 'isShared' | 'root'>
  storage: Pick<Storage, 'clients' | 'consoleSessions'>
}

/** Registers the services of the management API and the console. */
export default fp<ManagementOptions>(async (app, { bundles: folder, childUser, environment, storage }) => {
  await app.register(servers)
  await app.register(ownVariables)
  await app.register(groups)
  await app.register(people)
  await app.register(system)
  await app.register(exporting, storage)
  await app.register(market)
  await app.register(bundles, { ...folder, environment, childUser })
  await app.register(templates, { environment })
  await app.register(consolePages, storage)
}, { name: 'management-parts' })
