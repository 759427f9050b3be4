import fp from 'fastify-plugin'
import type { BundleOptions } from './bundles/index.ts'
import bundles from './bundles/index.ts'
import exporting from './export/index.ts'
import groups from './groups/index.ts'
import market from './market/index.ts'
import servers from './servers/index.ts'
import system from './system/index.ts'
import templates from './templates/index.ts'

export interface ManagementOptions extends Pick<BundleOptions, 'childUser' | 'environment'> {
  bundles: Pick<BundleOptions, 'isShared' | 'root'>
}

/** Changes of the settings by people and scripts. */
export default fp<ManagementOptions>(async (app, { bundles: folder, childUser, environment }) => {
  await app.register(servers)
  await app.register(groups)
  await app.register(system)
  await app.register(exporting)
  await app.register(market)
  await app.register(bundles, { ...folder, environment, childUser })
  await app.register(templates, { environment })
}, { name: 'management-parts' })
