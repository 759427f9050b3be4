import fp from 'fastify-plugin'
import type { BuiltInPrompt, BuiltInResource, PromptRecord, ResourceRecord } from '../../../schemas/builtins.ts'
import { promptKind, resourceKind } from './kinds.ts'
import { BuiltInProvider } from './provider.ts'
import { BuiltInEntries } from './section.ts'
import { SkillProvider, skillsMember } from './skill-provider.ts'
import { BuiltInSkills } from './skill-section.ts'

declare module 'fastify' {
  interface FastifyInstance {
    builtIns: {
      readonly prompts: BuiltInEntries<BuiltInPrompt, PromptRecord>
      readonly resources: BuiltInEntries<BuiltInResource, ResourceRecord>
      readonly skills: BuiltInSkills
    }
  }
}

/** `app.builtIns`: manages the built-in prompts, resources and skills in the settings. Providers serve them. */
export default fp(async (app) => {
  const provider = new BuiltInProvider(app.settings.current, app.config.version)
  const changed = app.gateway.addProvider(provider, { visibility: 'public' }, { unprefixed: true })
  const skills = new SkillProvider(app.settings.current, app.config.version)
  const skillsChanged =
    app.gateway.addProvider(skills, { visibility: 'public' }, { unprefixed: true, memberIn: skillsMember })
  app.settings.on('changed', (next, former) => {
    // Also called if only a skill's routes have changed, so that clients are notified.
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
