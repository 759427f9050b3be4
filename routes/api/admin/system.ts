import { Type } from '@sinclair/typebox'
import { Success } from '../../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { principalOf } from '../principal.ts'

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.put(
    '/system-config',
    {
      schema: {
        tags: ['System'],
        summary: 'Change the system configuration',
        description:
          'Takes the sections routing, install, smartRouting, toolResultCompression, mcpRouter, oauthServer, and nameSeparator and ' +
          'enableSessionRebuild, as GET /settings shows them. A given key replaces its value, absent keys stay, null resets to the ' +
          'default. Changes take effect at once.',
        body: Type.Object({}, { additionalProperties: true, examples: [{ nameSeparator: '_', routing: { jsonBodyLimit: '5mb' } }] }),
        response: { 200: Success(Type.Object({}, { additionalProperties: true })) }
      },
      config: { effect: 'change' }
    },
    async (request) => {
      const { data, warning } = await app.system.update(principalOf(request), request.body)
      const message = 'The system configuration was changed'
      return { success: true as const, data, message: warning === undefined ? message : `${message}. ${warning}` }
    }
  )
}
export default routes
