import fp from 'fastify-plugin'
import { loadOnce } from '../../base/config/index.ts'
import type { ProcessEnvironment } from '../../upstream/index.ts'
import type { Templates } from './templates.ts'

declare module 'fastify' {
  interface FastifyInstance { templates: Pick<Templates, 'export' | 'exportGroup' | 'import'> }
}

interface TemplateOptions {
  /** The gateway's environment, whose variables configs can refer to. */
  environment: ProcessEnvironment
}

/** Decorates the app with `templates`, which exports and imports templates. Its module is loaded on first use. */
export default fp<TemplateOptions>(async (app, { environment }) => {
  const load = loadOnce(async () => {
    const { Templates } = await import('./templates.ts')
    return new Templates(app.settings, app.servers, app.groups, environment, app.bundles)
  })
  app.decorate('templates', {
    export: async (...given) => await (await load()).export(...given),
    exportGroup: async (...given) => await (await load()).exportGroup(...given),
    import: async (...given) => await (await load()).import(...given)
  })
}, { name: 'templates', dependencies: ['bundles', 'settings', 'servers', 'groups', 'throttle'] })
