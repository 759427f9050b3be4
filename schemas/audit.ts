import { Type } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const AnyObject = Type.Object({}, { additionalProperties: true })
/** Creates the schema of an entry of the audit log. @param entities the kinds of entities that can be changed */
export const createAuditRecordSchema = <Name extends string>(entities: readonly Name[]) => Type.Object(
  {
    id: Type.String(),
    timestamp: Type.String({ description: 'ISO 8601' }),
    username: Type.String({ description: 'A user; for a system key its owner, or `system` if it has none' }),
    keyId: Type.Optional(Type.String({ description: 'The bearer key that the request came with' })),
    keyName: Type.Optional(Type.String({ description: 'The name of the key at that time' })),
    action: StringEnum(['create', 'update', 'delete']),
    entity: StringEnum([...entities]),
    name: Type.String(),
    before: Type.Optional(AnyObject),
    after: Type.Optional(AnyObject),
    locked: Type.Optional(
      Type.Literal(true, {
        description: '`before`, `after` and the bearer key cannot be decrypted: their encryption key is not in ' +
          'ENCRYPTION_KEY'
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

/** Creates the schema of the filter for entries of the audit log. @param entities as for `createAuditRecordSchema` */
export const createAuditQuerySchema = <Name extends string>(entities: readonly Name[]) => Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  username: Type.Optional(Type.String()),
  action: Type.Optional(StringEnum(['create', 'update', 'delete'])),
  entity: Type.Optional(StringEnum([...entities])),
  name: Type.Optional(Type.String()),
  startDate: Type.Optional(Type.String({ description: 'ISO 8601: a date (in UTC), or a date with time; inclusive' })),
  endDate: Type.Optional(Type.String({ description: 'As `startDate`; a date includes the whole day' })),
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the previous page' }))
})
