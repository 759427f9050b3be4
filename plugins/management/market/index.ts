import fp from 'fastify-plugin'
import { readAsset } from '../../base/config/index.ts'
import { Cloud } from './cloud.ts'
import { Market } from './market.ts'
import { Registry } from './registry.ts'
import { Source } from './source.ts'

interface Catalogues { readonly market: Market, readonly cloud: Cloud, readonly registry: Registry }

declare module 'fastify' {
  interface FastifyInstance { catalogues: Catalogues }
}

/** `app.catalogues`: servers that may be added. They are read only: `POST /api/servers` adds one. */
export default fp(async (app) => {
  const sourceOf = (name: string): Source => new Source({
    outbound: app.outbound,
    name,
    tell: (level, sentence) => { app.log[level](sentence) }
  })
  const [registry, cloud] = [sourceOf('The MCP registry'), sourceOf('The cloud catalogue')]
  app.decorate('catalogues', {
    market: new Market(await readAsset('market/servers.json')),
    cloud: new Cloud(cloud, () => (app.settings.current.system as { mcpRouter?: object }).mcpRouter ?? {}),
    registry: new Registry(registry, app.config.env.REGISTRY_URL)
  })
  app.addHook('onClose', async () => {
    registry.close()
    cloud.close()
  })
}, { name: 'catalogues', dependencies: ['config', 'settings', 'outbound'] })
