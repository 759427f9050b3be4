import fp from 'fastify-plugin'
import type { ProcessEnvironment } from '../../upstream/index.ts'
import type { Bundles } from '../bundles/bundles.ts'
import { Templates } from './templates.ts'

declare module 'fastify' {
  interface FastifyInstance { templates: Templates }
}

interface TemplateOptions {
  /** The gateway's own environment, which variables of configs are filled in from. */
  environment: ProcessEnvironment
}

/** `app.templates`: servers and groups without owners and secrets, from one gateway to another. */
export default fp<TemplateOptions>(async (app, { environment }) => {
  const bundlesIn: Bundles['namesIn'] = (configs) => app.bundles.namesIn(configs)
  app.decorate('templates', new Templates(app.settings, app.servers, app.groups, environment, bundlesIn))
}, { name: 'templates', dependencies: ['bundles', 'settings', 'servers', 'groups', 'throttle'] })
