import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

/** A quota, as it is stored. Unknown members are kept unchanged. */
export const Quota = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  enabled: Type.Optional(Type.Boolean()),
  /** Whom it counts; `*` counts each of its kind separately. A tool is a bare name and stands with its server. */
  target: Type.Object({
    user: Type.Optional(Type.String()),
    team: Type.Optional(Type.String()),
    key: Type.Optional(Type.String()),
    server: Type.Optional(Type.String()),
    tool: Type.Optional(Type.String())
  }),
  per: StringEnum(['minute', 'day']),
  calls: Type.Optional(Type.Integer({ minimum: 0 })),
  resultTokens: Type.Optional(Type.Integer({ minimum: 0 }))
})
export type Quota = Static<typeof Quota>
