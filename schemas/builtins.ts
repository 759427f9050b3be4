import { Type, type Static } from '@sinclair/typebox'

/** An argument of a built-in prompt. */
export const PromptArgument = Type.Object({
  name: Type.String({ minLength: 1 }),
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  required: Type.Optional(Type.Boolean())
})
export type PromptArgument = Static<typeof PromptArgument>

/** A built-in prompt as it is stored. Unknown members are kept unchanged. */
export const BuiltInPrompt = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  /** The text of its one message, with `{{name}}` in the places of arguments. */
  template: Type.String(),
  arguments: Type.Optional(Type.Array(PromptArgument)),
  enabled: Type.Optional(Type.Boolean())
})
export type BuiltInPrompt = Static<typeof BuiltInPrompt>

/** A built-in resource as it is stored. Unknown members are kept unchanged. Without a name, it is listed under its URI. */
export const BuiltInResource = Type.Object({
  id: Type.String({ minLength: 1 }),
  uri: Type.String({ minLength: 1 }),
  name: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  mimeType: Type.Optional(Type.String()),
  content: Type.String(),
  enabled: Type.Optional(Type.Boolean())
})
export type BuiltInResource = Static<typeof BuiltInResource>
