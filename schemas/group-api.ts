import { Type } from '@sinclair/typebox'
import { Closed } from './closed.ts'
import { GroupMember } from './settings.ts'
import { Unchanged } from './answers.ts'

const Members = Type.Array(Type.Union([Type.String({ minLength: 1 }), GroupMember]))
const SentMembers = Type.Array(Type.Union([Type.String({ minLength: 1 }), Closed(GroupMember)]))
export const GroupRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    servers: Members,
    owner: Type.Optional(Type.String())
  },
  {
    examples: [
      {
        id: '0b6c5f0e-6f0c-4e0e-9c57-2f8d1a7f3b11',
        name: 'daily',
        description: 'What everybody needs',
        servers: ['issues', { name: 'files', tools: ['read_file'], prompts: 'all', resources: 'all', alias: 'f' }],
        owner: 'admin'
      }
    ]
  }
)
const GroupName = Type.String({ minLength: 1, maxLength: 128 })
export const NewGroup = Closed(Type.Object(
  {
    name: GroupName,
    description: Type.Optional(Type.String()),
    servers: Type.Optional(SentMembers),
    owner: Type.Optional(Type.String({ description: 'A user; only an admin can name another one than the caller' }))
  },
  {
    examples: [
      {
        name: 'daily',
        description: 'What everybody needs',
        servers: ['issues', { name: 'files', tools: ['read_file'], prompts: 'all', resources: 'all', alias: 'f' }]
      }
    ]
  }
))
export const GroupUpdate = Closed(Type.Partial(Type.Object({ ...NewGroup.properties, id: Unchanged }), {
  examples: [{ description: 'What everybody needs, and more' }]
}))
export const GroupId = Type.Object({ id: Type.String() })

/** The members of a record that a route does not change: they may be sent back from a response, and are ignored. */
const Beside = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, Type.Optional(Type.Unknown())]))
export const GroupMembers = Closed(Type.Object(
  { servers: SentMembers, ...Beside('id', 'name', 'description', 'owner') },
  { examples: [{ servers: ['issues', { name: 'files', tools: ['read_file'] }] }] }
))
export const NewGroupMember =
  Closed(Type.Object({ serverName: Type.String({ minLength: 1 }) }, { examples: [{ serverName: 'files' }] }))
export const GroupMemberName = Type.Object({ id: Type.String(), serverName: Type.String() })
const Selection =
  Type.Union([Type.Literal('all'), Type.Array(Type.String())], { description: '`all`, or own names (resources: URIs)' })
export const ToolSelection = Closed(Type.Object(
  { tools: Selection, ...Beside('name', 'prompts', 'resources', 'alias') },
  { examples: [{ tools: ['read_file', 'list_directory'] }] }
))
export const GroupMemberConfig = Type.Object(
  {
    name: Type.String(),
    tools: Selection,
    prompts: Selection,
    resources: Selection,
    alias: Type
      .Optional(Type.String())
  },
  { examples: [{ name: 'files', tools: ['read_file'], prompts: 'all', resources: 'all', alias: 'f' }] }
)
