import { Type } from '@sinclair/typebox'
import { StringEnum } from '../../../schemas/string-enum.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'

const Open = Type.Object({}, { additionalProperties: true })
const Entry = Type.Object({
  id: Type.String(),
  timestamp: Type.String({ description: 'ISO 8601' }),
  username: Type.String(),
  action: StringEnum(['create', 'update', 'delete']),
  entity: StringEnum(['user', 'server', 'group', 'key', 'systemConfig']),
  name: Type.String(),
  before: Type.Optional(Open),
  after: Type.Optional(Open)
})

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/audit', {
    schema: {
      tags: ['System'],
      summary: 'Who wrote what',
      description: 'The newest first, secrets masked; what this process remembers.',
      querystring: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })), cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the page before' })) }),
      response: { 200: Type.Object({ success: Type.Literal(true), data: Type.Array(Entry), nextCursor: Type.Optional(Type.String()) }) }
    },
    config: { effect: 'read' }
  }, async (request) => {
    const { limit = 50, cursor } = request.query
    const data = app.audit.list(limit, cursor)
    const last = data.length === limit ? data.at(-1)?.id : undefined
    return { success: true as const, data, ...(last === undefined ? {} : { nextCursor: last }) }
  })
}
export default routes
