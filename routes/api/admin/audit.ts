import { Type } from '@sinclair/typebox'
import { auditedEntities } from '../../../plugins/settings/index.ts'
import { StringEnum } from '../../../schemas/string-enum.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'

const Open = Type.Object({}, { additionalProperties: true })
const Entry = Type.Object(
  {
    id: Type.String(),
    timestamp: Type.String({ description: 'ISO 8601' }),
    username: Type.String({ description: 'A user; for a system key its owner, or `system`' }),
    keyId: Type.Optional(Type.String({ description: 'The bearer key that the request came with' })),
    keyName: Type.Optional(Type.String({ description: 'Its name then' })),
    action: StringEnum(['create', 'update', 'delete']),
    entity: StringEnum([...auditedEntities]),
    name: Type.String(),
    before: Type.Optional(Open),
    after: Type.Optional(Open),
    locked: Type.Optional(
      Type.Literal(true, {
        description: '`before`, `after` and the bearer key cannot be opened: they are sealed with a key that is not in ENCRYPTION_KEY'
      })
    )
  },
  {
    examples: [
      {
        id: '7c1e8f0a-53a1-4d8c-8b3f-0a9d0d6c1f42',
        timestamp: '2026-11-20T09:00:00.000Z',
        username: 'ada',
        action: 'update',
        entity: 'group',
        name: 'daily',
        before: { name: 'daily', servers: [] },
        after: { name: 'daily', servers: ['issues'] }
      }
    ]
  }
)

const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  username: Type.Optional(Type.String()),
  action: Type.Optional(StringEnum(['create', 'update', 'delete'])),
  entity: Type.Optional(StringEnum([...auditedEntities])),
  name: Type.Optional(Type.String()),
  startDate: Type.Optional(Type.String({ description: 'ISO 8601: a date (in UTC), or a date with time; inclusive' })),
  endDate: Type.Optional(Type.String({ description: 'The same; a date includes its whole day' })),
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the page before' }))
})

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/audit',
    {
      schema: {
        tags: ['System'],
        summary: 'The audit log',
        description:
          'Newest first, secrets masked: the last 100,000 changes where there is a database, else the last 1,000 since the start of the ' +
          'process. Filters match exactly. A `before` or `after` that is too large to be kept is ' +
          '`{id?, name?, truncated: true}`. A changed password shows as `passwordChanged` in `after`.',
        querystring: Query,
        response: { 200: Type.Object({ success: Type.Literal(true), data: Type.Array(Entry), nextCursor: Type.Optional(Type.String()) }) }
      },
      config: { effect: 'read' }
    },
    async ({ query }) => ({ success: true as const, ...await app.audit.list(query) })
  )
}
export default routes
