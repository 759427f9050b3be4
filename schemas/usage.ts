import { Type } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Time = Type.Optional(Type.String({
  description: 'A day, for example 2026-11-23, or a time, for example 2026-11-23T09:00:00Z'
}))

export const UsageQuery = Type.Object({
  by: StringEnum(['user', 'key', 'server', 'tool']),
  from: Time,
  to: Time
}, { additionalProperties: false })

/** The usage of one day by the user, key, server or tool that `by` selects. With `tool`, `server` is present, too. */
export const UsageRecord = Type.Object({
  day: Type.String(),
  user: Type.Optional(Type.String({
    description: '`@` and the team for keys of a team; empty for callers without credentials'
  })),
  key: Type.Optional(Type.String({ description: 'The id of a key; empty for callers without one' })),
  server: Type.Optional(Type.String()),
  tool: Type.Optional(Type.String({ description: 'Empty for prompts and resources' })),
  calls: Type.Integer(),
  errors: Type.Integer(),
  resultTokens: Type.Integer({
    description: 'Counted if a quota needs it, otherwise estimated from the length of the results'
  })
}, { examples: [{ day: '2026-11-30', user: 'ada', calls: 120, errors: 2, resultTokens: 48_000 }] })
