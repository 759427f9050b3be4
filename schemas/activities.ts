import { Type } from '@sinclair/typebox'
import { AppliedPolicyRecord } from './policies.ts'
import { StringEnum } from './string-enum.ts'

/** The filters for recorded calls, as query parameters. */
const Criteria = {
  server: Type.Optional(Type.String()),
  tool: Type.Optional(Type.String({
    description: 'The tool\'s own name; for other calls `prompts/get` or `resources/read`'
  })),
  status: Type.Optional(StringEnum(['success', 'error'])),
  group: Type.Optional(Type.String()),
  username: Type.Optional(Type.String()),
  keyId: Type.Optional(Type.String()),
  keyName: Type.Optional(Type.String()),
  startDate: Type.Optional(Type.String({
    description: 'ISO 8601: a date (`2026-11-23`, in UTC), or a date with time; inclusive'
  })),
  endDate: Type.Optional(Type.String({ description: 'As `startDate`; a date includes the whole day' }))
}
export const ActivityCriteria = Type.Object(Criteria)
export const ActivityPageQuery = Type.Object({
  page: Type.Optional(Type.Integer({ minimum: 1, default: 1 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  ...Criteria
})
export const ActivityParams = Type.Object({ id: Type.String() })
export const CleanupQuery =
  Type.Object({ daysOld: Type.Optional(Type.Integer({ minimum: 0, maximum: 36_500, default: 30 })) })

export const ActivityRecord = Type.Object(
  {
    id: Type.String(),
    timestamp: Type.String({ description: 'When the call arrived, ISO 8601' }),
    server: Type.String(),
    tool: Type.String(),
    duration: Type.Number({ description: 'In ms' }),
    status: StringEnum(['success', 'error']),
    input: Type.Optional(Type.String({ description: 'The arguments as JSON text, truncated to 100 KiB' })),
    output: Type.Optional(Type.String({
      description: 'The server\'s result as JSON text, truncated to 100 KiB'
    })),
    group: Type.Optional(Type.String({ description: 'The group through which it was called' })),
    username: Type.Optional(Type.String()),
    keyId: Type.Optional(Type.String()),
    keyName: Type.Optional(Type.String()),
    sourceIp: Type.Optional(Type.String()),
    errorMessage: Type.Optional(Type.String()),
    clientId: Type.Optional(Type.String({ description: 'The OAuth client whose access token the call came with' })),
    clientName: Type.Optional(Type.String({ description: 'The name of the client at the time of the call' })),
    policy: Type.Optional(AppliedPolicyRecord),
    guards: Type.Optional(Type.Array(Type.Object({
      id: Type.String(), name: Type.String(), action: Type.String(), found: Type.Array(Type.String())
    }), { description: 'The guards that found something, and what kinds of data they found' })),
    refused: Type.Optional(Type.Literal(true, {
      description: 'The call was refused because of a policy, a guard, a quota or a changed definition: see ' +
        '`errorMessage`'
    })),
    locked: Type.Optional(Type.Literal(true, {
      description: 'Input, output and message cannot be decrypted: their key is no longer in ENCRYPTION_KEY'
    }))
  },
  {
    examples: [
      {
        id: '019e0b6e-53a1-7d8c-8b3f-0a9d0d6c1f42',
        timestamp: '2026-11-20T09:00:00.000Z',
        server: 'issues',
        tool: 'search',
        duration: 12.5,
        status: 'success',
        input: '{"query":"crash"}',
        output: '{"content":[{"type":"text","text":"none"}]}',
        username: 'ada',
        sourceIp: '192.0.2.7'
      }
    ]
  }
)
export const ActivityList = Type.Object({
  success: Type.Literal(true),
  data: Type.Array(ActivityRecord),
  pagination: Type.Object(
    {
      page: Type.Integer(),
      limit: Type.Integer(),
      total: Type.Integer(),
      totalPages: Type.Integer(),
      approximate: Type.Optional(Type.Literal(true, { description: '`total` is an estimate' }))
    },
    { examples: [{ page: 1, limit: 20, total: 1, totalPages: 1 }] }
  )
})
export const ActivityStats = Type.Object(
  {
    totalCalls: Type.Integer(),
    successCount: Type.Integer(),
    errorCount: Type.Integer(),
    avgDuration: Type.Number({ description: 'In ms' })
  },
  { examples: [{ totalCalls: 12, successCount: 11, errorCount: 1, avgDuration: 8.5 }] }
)
const Names = Type.Array(Type.String())
export const ActivityFilterChoices = Type.Object(
  { servers: Names, tools: Names, groups: Names, usernames: Names, keyNames: Names },
  {
    examples: [
      { servers: ['issues'], tools: ['search'], groups: ['daily'], usernames: ['ada'], keyNames: ['laptop'] }
    ]
  }
)
export const ActivityAvailability = Type.Object({ available: Type.Boolean() }, { examples: [{ available: true }] })
export const DeletedCount = Type.Object({ deletedCount: Type.Integer() }, { examples: [{ deletedCount: 120 }] })
