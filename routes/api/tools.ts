import { Type } from '@sinclair/typebox'
import { Success } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './index.ts'

const Open = Type.Object({}, { additionalProperties: true })
const ToolResult = Type.Object({
  toolName: Type.String(),
  arguments: Open,
  content: Type.Optional(Type.Array(Open, { description: 'As the tool gave it' })),
  structuredContent: Type.Optional(Open),
  isError: Type.Optional(Type.Boolean())
}, { additionalProperties: true })

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.post('/tools/call/:server', {
    schema: {
      tags: ['Tools'],
      summary: 'Call a tool',
      description: 'By its own name, or as `<server><separator><tool>`. A tool that fails answers with `isError` in its data.',
      params: Type.Object({ server: Type.String() }),
      body: Type.Object({ toolName: Type.String({ minLength: 1 }), arguments: Type.Optional(Type.Object({}, { additionalProperties: true })) }, { examples: [{ toolName: 'echo', arguments: { message: 'Hello' } }] }),
      response: { 200: Success(ToolResult) }
    },
    config: { effect: 'run' },
    // Whether it is there is answered before what is wrong with the body (DECISIONS §1).
    preValidation: (request, _reply, done) => { app.access.server(principalOf(request), request.params.server); done() }
  }, async (request, reply) => {
    const { toolName, arguments: args = {} } = request.body
    const gone = new AbortController()
    reply.raw.once('close', () => { gone.abort() })
    const result = await app.tools.call(principalOf(request), request.params.server, toolName, args, request.headers, gone.signal)
    return { success: true as const, data: { ...result, toolName, arguments: args } }
  })
}
export default routes
