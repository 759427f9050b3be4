/* eslint no-template-curly-in-string: off -- configs hold them */
import { Type, type Static } from '@sinclair/typebox'
import { GroupMember } from './settings.ts'
import { StringEnum } from './string-enum.ts'

const Config = Type.Object({}, { additionalProperties: true })

const example = {
  version: '1.0',
  name: 'daily',
  createdAt: '2026-11-20T09:00:00.000Z',
  servers: {
    issues: { url: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer ${ISSUES_AUTHORIZATION}' } }
  },
  groups: [{ name: 'everyone', servers: ['issues'] }],
  requiredEnvVars: ['ISSUES_AUTHORIZATION']
}

/** A group in a template. */
export const TemplateGroup = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  description: Type.Optional(Type.String()),
  servers: Type.Array(Type.Union([Type.String({ minLength: 1 }), GroupMember]))
})
export type TemplateGroup = Static<typeof TemplateGroup>

/** An export of servers and groups without owners and secrets. Each secret is replaced by a variable `${NAME}`. */
export const Template = Type.Object(
  {
    version: Type.String(),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    createdAt: Type.Optional(Type.String()),
    servers: Type.Record(Type.String(), Config, { description: 'Configs by name' }),
    groups: Type.Array(TemplateGroup),
    requiredEnvVars: Type.Array(Type.String(), {
      description: 'Environment variables of the gateway that the servers need'
    })
  },
  { examples: [example] }
)
export type Template = Static<typeof Template>

const TemplateName = Type.String({ minLength: 1, maxLength: 256 })

export const NewTemplate = Type.Object(
  {
    name: TemplateName,
    description: Type.Optional(Type.String({ maxLength: 16 * 1024 })),
    groupIds: Type.Optional(Type.Array(Type.String(), {
      maxItems: 1_000,
      description: 'Groups by id or name; their servers are included'
    })),
    serverNames: Type.Optional(Type.Array(Type.String(), { maxItems: 1_000 }))
  },
  { examples: [{ name: 'daily' }, { name: 'daily', groupIds: ['everyone'], serverNames: ['issues'] }] }
)
export type NewTemplate = Static<typeof NewTemplate>

/**
 * A template to be imported. Each server and group is validated separately, so that a malformed one does not prevent
 * the import of the others.
 */
export const SentTemplate = Type.Object(
  {
    version: Type.String(),
    name: Type.Optional(Type.String()),
    servers: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Configs by name' })),
    groups: Type.Optional(Type.Array(Type.Unknown(), {
      description: 'Groups in the exported format: `{name, description?, servers}`'
    }))
  },
  { examples: [example] }
)
export type SentTemplate = Static<typeof SentTemplate>

export const GroupTemplateQuery = Type.Object({ name: Type.Optional(TemplateName) })

export const ImportDetail = Type.Object({
  type: StringEnum(['server', 'group']),
  name: Type.String(),
  action: StringEnum(['created', 'skipped', 'failed']),
  message: Type.Optional(Type.String())
})
export type ImportDetail = Static<typeof ImportDetail>

export const TemplateImportResult = Type.Object(
  {
    serversCreated: Type.Integer(),
    serversSkipped: Type.Integer(),
    groupsCreated: Type.Integer(),
    groupsSkipped: Type.Integer(),
    details: Type.Array(ImportDetail)
  },
  {
    examples: [
      {
        serversCreated: 1,
        serversSkipped: 0,
        groupsCreated: 1,
        groupsSkipped: 0,
        details: [
          { type: 'server', name: 'issues', action: 'created' }, { type: 'group', name: 'everyone', action: 'created' }
        ]
      }
    ]
  }
)
export type TemplateImportResult = Static<typeof TemplateImportResult>
