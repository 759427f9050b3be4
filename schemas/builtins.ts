import { Type, type Static } from '@sinclair/typebox'

/** An argument of a built-in prompt. */
const PromptArgument = Type.Object({
  name: Type.String({ minLength: 1 }),
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  required: Type.Optional(Type.Boolean())
})
type PromptArgument = Static<typeof PromptArgument>

/** A built-in prompt as it is stored. Unknown members are kept unchanged. */
export const BuiltInPrompt = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  /** The text of the prompt's only message, with `{{name}}` for each argument. */
  template: Type.String(),
  arguments: Type.Optional(Type.Array(PromptArgument)),
  enabled: Type.Optional(Type.Boolean())
})
export type BuiltInPrompt = Static<typeof BuiltInPrompt>

/**
 * A built-in resource as it is stored. Unknown members are kept unchanged. If it has no name, its URI is listed as the
 * name.
 */
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

/** A built-in prompt as the API returns it. */
export const PromptRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    title: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    template: Type.String(),
    arguments: Type.Array(PromptArgument),
    enabled: Type.Boolean()
  },
  {
    examples: [
      {
        id: '6a1a9d6e-0c1f-4a39-9c51-1d1b8a1f6c02',
        name: 'review',
        description: 'Asks for a review',
        template: 'Review this {{language}} code:\n\n{{code}}',
        arguments: [{ name: 'language' }, { name: 'code', required: true }],
        enabled: true
      }
    ]
  }
)
export type PromptRecord = Static<typeof PromptRecord>

/** A built-in resource as the API returns it. */
export const ResourceRecord = Type.Object(
  {
    id: Type.String(),
    uri: Type.String(),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    mimeType: Type.Optional(Type.String()),
    content: Type.String(),
    enabled: Type.Boolean()
  },
  {
    examples: [
      {
        id: 'f2c6f3a4-7a4d-4c37-8a57-0e4f0c5e7d11',
        uri: 'note://house/rules',
        name: 'House rules',
        mimeType: 'text/markdown',
        content: '# House rules\n\nSmall files, one idea each.',
        enabled: true
      }
    ]
  }
)
export type ResourceRecord = Static<typeof ResourceRecord>

/** A text member that null removes. */
const Removable = () => Type.Optional(Type.Union([Type.String(), Type.Null()]))
const Arguments = Type.Optional(Type.Array(PromptArgument))
const Enabled = Type.Optional(Type.Boolean())

export const NewPrompt = Type.Object(
  {
    name: Type.String(),
    title: Removable(),
    description: Removable(),
    template: Type.String(),
    arguments: Arguments,
    enabled: Enabled
  },
  {
    examples: [
      {
        name: 'review',
        description: 'Asks for a review',
        template: 'Review this {{language}} code:\n\n{{code}}',
        arguments: [{ name: 'language' }, { name: 'code', required: true }]
      }
    ]
  }
)
export type NewPrompt = Static<typeof NewPrompt>
export const PromptUpdate = Type.Partial(NewPrompt, { examples: [{ enabled: false }] })

export const NewResource = Type.Object(
  {
    uri: Type.String(),
    name: Removable(),
    description: Removable(),
    mimeType: Removable(),
    content: Type.String(),
    enabled: Enabled
  },
  {
    examples: [{ uri: 'note://house/rules', name: 'House rules', mimeType: 'text/markdown', content: '# House rules' }]
  }
)
export type NewResource = Static<typeof NewResource>
export const ResourceUpdate = Type.Partial(NewResource, { examples: [{ content: '# Other rules' }] })

export const BuiltInParams = Type.Object({ id: Type.String() })
export const ResourceToRead =
  Type.Object({ uri: Type.String({ minLength: 1 }) }, { examples: [{ uri: 'note://house/rules' }] })
