import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

/** A rule about requests, as it is stored. Unknown members are kept unchanged. The rules apply in the stored order. */
export const Policy = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  enabled: Type.Optional(Type.Boolean()),
  /** `observe` only records what the rule would have decided. */
  mode: Type.Optional(StringEnum(['enforce', 'observe'])),
  /** A condition in the Common Expression Language (CEL). */
  when: Type.String({ minLength: 1 }),
  then: StringEnum(['allow', 'deny', 'ask', 'hide']),
  /** The usernames of those who may approve; without them, the client of the caller is asked. */
  approvers: Type.Optional(Type.Array(Type.String())),
  message: Type.Optional(Type.String())
})
export type Policy = Static<typeof Policy>
