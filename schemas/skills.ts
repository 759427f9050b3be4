import { Type, type Static } from '@sinclair/typebox'

/** A built-in skill as it is stored. Unknown members are kept unchanged. */
export const BuiltInSkill = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  description: Type.Optional(Type.String()),
  enabled: Type.Optional(Type.Boolean()),
  /** The files of its folder, by their paths in it. The content is base64. */
  files: Type.Record(Type.String(), Type.String())
})
export type BuiltInSkill = Static<typeof BuiltInSkill>
