import fp from 'fastify-plugin'
import { Export } from './export.ts'

declare module 'fastify' {
  interface FastifyInstance { export: Export }
}

/** `app.export`: the export of the settings. */
export default fp(async (app) => {
  app.decorate('export', new Export(app.settings, app.groups))
}, { name: 'export', dependencies: ['settings', 'groups'] })
