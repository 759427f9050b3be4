import fp from 'fastify-plugin'
import { mayRun } from '../../settings/index.ts'
import { ownHeaders } from './hop.ts'
import { Tools } from './tools.ts'

declare module 'fastify' {
  interface FastifyInstance { tools: Tools }
}

/** `app.tools`: tools and prompts for plain HTTP callers. `app.ts` drains it. */
export default fp(async (app) => {
  const tools = new Tools(app.gateway, app.access, ownHeaders(() => app.settings.current))
  app.decorate('tools', tools)
  app.auth.standings.on('changed', (standingOf) => {
    tools.withdraw((principal) => {
      // Whether anonymous callers may use the open routes is not a question of MCP's bearer keys.
      const now = principal.kind === 'anonymous' ? principal : standingOf(principal)
      return now && mayRun(now) ? now : undefined
    })
  })
}, { name: 'tools', dependencies: ['gateway', 'access', 'auth', 'keys', 'settings'] })
