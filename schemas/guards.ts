import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

/** A guard on the content of arguments and results, as it is stored. Unknown members are kept unchanged. */
export const Guard = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  enabled: Type.Optional(Type.Boolean()),
  on: StringEnum(['arguments', 'results', 'both']),
  /** The servers that it applies to; absent: all. */
  servers: Type.Optional(Type.Array(Type.String())),
  /** The tools that it applies to, by their own names; absent: all. */
  tools: Type.Optional(Type.Array(Type.String())),
  detect: Type.Optional(Type.Array(StringEnum(['secrets', 'email', 'card', 'iban', 'phone']))),
  webhook: Type.Optional(Type.Object({
    url: Type.String(),
    secret: Type.String(),
    timeoutMs: Type.Optional(Type.Integer({ minimum: 1 })),
    whenAway: StringEnum(['allow', 'deny'])
  })),
  /** What happens where `detect` finds something. */
  action: StringEnum(['flag', 'mask', 'refuse'])
})
export type Guard = Static<typeof Guard>
