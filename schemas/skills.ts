import { Type, type Static } from '@sinclair/typebox'

/** The members that determine on which routes a built-in skill is served. */
const Routes = {
  global: Type.Optional(Type.Boolean({ description: 'Whether the global route serves it; default: true' })),
  groups: Type.Optional(Type.Array(Type.String({ minLength: 1 }), {
    description: 'The groups whose routes serve it, by id; names are accepted, too'
  }))
}

/** A built-in skill as it is stored. Unknown members are kept unchanged. */
export const BuiltInSkill = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  /** The frontmatter of the skill's `SKILL.md`, as JSON. */
  frontmatter: Type.Record(Type.String(), Type.Unknown()),
  /** The contents of the files in the skill's folder, as base64, by path within the folder. */
  files: Type.Record(Type.String(), Type.String()),
  ...Routes,
  enabled: Type.Optional(Type.Boolean())
})
export type BuiltInSkill = Static<typeof BuiltInSkill>

const exampleText = '---\nname: release-notes\ndescription: How release notes are written here\n---\n\nOne line each.'

/** A built-in skill as the API returns it. */
export const SkillRecord = Type.Object(
  {
    id: Type.String(),
    uri: Type.String(),
    name: Type.String(),
    description: Type.String(),
    content: Type.String({ description: 'The text of its `SKILL.md`' }),
    files: Type.Array(Type.Object({ path: Type.String(), size: Type.Integer(), digest: Type.String() })),
    global: Type.Boolean(),
    groups: Type.Array(Type.String()),
    enabled: Type.Boolean()
  },
  {
    examples: [
      {
        id: 'b3f4c0de-5a0e-4a4e-9d52-0f3c1d2e4a05',
        uri: 'skill://release-notes/SKILL.md',
        name: 'release-notes',
        description: 'How release notes are written here',
        content: exampleText,
        files: [
          {
            path: 'SKILL.md',
            size: 97,
            digest: `sha256:${'5f16fd8a'.repeat(8)}`
          }
        ],
        global: true,
        groups: [],
        enabled: true
      }
    ]
  }
)
export type SkillRecord = Static<typeof SkillRecord>

const content = {
  content: Type.String({ description: 'The text of its `SKILL.md`, which contains name and description' })
}
const others = {
  files: Type.Optional(Type.Record(Type.String(), Type.String(), {
    description: 'Its other files as base64, by their paths in the folder. They replace all existing ones'
  })),
  ...Routes,
  enabled: Type.Optional(Type.Boolean())
}
export const NewSkill = Type.Object({ ...content, ...others }, {
  examples: [
    {
      content: exampleText,
      files: { 'references/EXAMPLE.md': 'IyBFeGFtcGxl' },
      groups: ['daily']
    }
  ]
})
export type NewSkill = Static<typeof NewSkill>
export const SkillUpdate = Type.Partial(NewSkill, { examples: [{ global: false, groups: ['daily'] }] })
export type SkillUpdate = Static<typeof SkillUpdate>
