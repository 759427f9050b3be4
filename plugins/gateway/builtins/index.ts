import fp from 'fastify-plugin'
import type { BuiltInPrompt, BuiltInResource, PromptRecord, ResourceRecord } from '../../../schemas/builtins.ts'
import { promptKind, resourceKind } from './kinds.ts'
import { BuiltInProvider } from './provider.ts'
import { BuiltInSection } from './section.ts'

declare module 'fastify' {
  interface FastifyInstance {
    builtIns: {
      readonly prompts: BuiltInSection<BuiltInPrompt, PromptRecord>
      readonly resources: BuiltInSection<BuiltInResource, ResourceRecord>
    }
  }
}

/** `app.builtIns`: prompts and resources of the gateway's own, which are in the settings; a provider serves them. */
export default fp(async (app) => {
  const provider = new BuiltInProvider(app.settings.current, app.config.version)
  const changed = app.gateway.addProvider(provider, { visibility: 'public' }, { unprefixed: true })
  app.settings.on('changed', (next, former) => {
    if (next.prompts === former.prompts && next.resources === former.resources) return
    if (provider.update(next)) changed()
  })
  app.decorate('builtIns', {
    prompts: new BuiltInSection(app.settings, app.gateway, promptKind),
    resources: new BuiltInSection(app.settings, app.gateway, resourceKind)
  })
}, { name: 'builtins', dependencies: ['config', 'settings', 'gateway'] })
