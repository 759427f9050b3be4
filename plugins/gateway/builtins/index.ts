import fp from 'fastify-plugin'
import type { BuiltInPrompt, BuiltInResource, PromptRecord, ResourceRecord } from '../../../schemas/builtins.ts'
import { promptKind, resourceKind } from './kinds.ts'
import { BuiltInProvider } from './provider.ts'
import { BuiltInEntries } from './entries.ts'
import { SkillProvider, selectRouteSkills } from './skill-provider.ts'
import { BuiltInSkills } from './skills.ts'

declare module 'fastify' {
  interface FastifyInstance {
    builtIns: {
      readonly prompts: BuiltInEntries<BuiltInPrompt, PromptRecord>
      readonly resources: BuiltInEntries<BuiltInResource, ResourceRecord>
      readonly skills: BuiltInSkills
    }
  }
}

/** Registers the providers of built-in prompts, resources and skills. `app.builtIns` manages these items. */
export default fp(async (app) => {
  const provider = new BuiltInProvider(app.settings.current, app.config.version)
  const changed = app.gateway.addProvider(provider, { visibility: 'public' }, { unprefixed: true })
  const skills = new SkillProvider(app.settings.current, app.config.version)
  const skillsChanged =
    app.gateway.addProvider(skills, { visibility: 'public' }, { unprefixed: true, memberIn: selectRouteSkills })
  app.settings.on('changed', (next, former) => {
    // If only the routes of a skill change, its provider's catalogue stays the same, but clients' lists change.
    if (next.skills !== former.skills) {
      skills.update(next)
      skillsChanged()
    }
    if (next.prompts === former.prompts && next.resources === former.resources) return
    if (provider.update(next)) changed()
  })
  app.decorate('builtIns', {
    prompts: new BuiltInEntries(app.settings, app.gateway, promptKind),
    resources: new BuiltInEntries(app.settings, app.gateway, resourceKind),
    skills: new BuiltInSkills(app.settings, app.gateway)
  })
}, { name: 'builtins', dependencies: ['config', 'settings', 'gateway'] })
