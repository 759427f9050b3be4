import { Type } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const ApprovalState = StringEnum(['pending', 'approved', 'denied', 'expired'])

/** A call that waits, or waited, for a user's approval. */
export const ApprovalRecord = Type.Object(
  {
    id: Type.String(),
    state: ApprovalState,
    username: Type.String({
      description: 'The caller; `@` and the team for a key of a team; empty for a caller without credentials'
    }),
    server: Type.String(),
    tool: Type.String({ description: 'The tool\'s own name; for a resource its URI' }),
    kind: StringEnum(['tool', 'prompt', 'resource']),
    arguments: Type.Object(
      {}, { additionalProperties: true, description: 'Long texts are truncated, and state how much is omitted' }
    ),
    policy: Type.Object({ id: Type.String(), name: Type.String() }),
    createdAt: Type.String({ description: 'ISO 8601' }),
    expiresAt: Type.String({ description: 'ISO 8601. Until then the approval can be decided, and used by one call' }),
    decidedBy: Type.Optional(Type.String({ description: 'A username' })),
    isUsed: Type.Optional(Type.Boolean({ description: 'Whether the approved call has run: the decision is final' }))
  },
  {
    examples: [{
      id: '5b0f0f0e-6d6b-4b7e-9a57-2a3a0a9f4f11',
      state: 'pending',
      username: 'bob',
      server: 'issues',
      tool: 'delete_issue',
      kind: 'tool',
      arguments: { id: 7 },
      policy: { id: '0d3f6b0c-6a53-4b0e-9f61-3f6d8f1f2c11', name: 'Deletions need a second person' },
      createdAt: '2026-11-23T09:00:00.000Z',
      expiresAt: '2026-11-23T09:10:00.000Z'
    }]
  }
)
export const ApprovalParams = Type.Object({ id: Type.String() })
export const ApprovalQuery = Type.Object({
  state: Type.Optional(ApprovalState),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'Max entries; the newest are returned' })
  )
})
