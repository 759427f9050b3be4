import { Type } from '@sinclair/typebox'
import { ClosedObject } from './closed.ts'
import { GroupMember } from './settings.ts'
import { ReadOnlyMember } from './answers.ts'

const Members = Type.Array(Type.Union([Type.String({ minLength: 1 }), GroupMember]))
const SentMembers = Type.Array(Type.Union([Type.String({ minLength: 1 }), ClosedObject(GroupMember)]))
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
export const NewGroup = ClosedObject(Type.Object(
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
export const GroupUpdate = ClosedObject(Type.Partial(Type.Object({ ...NewGroup.properties, id: ReadOnlyMember }), {
  examples: [{ description: 'What everybody needs, and more' }]
}))
export const GroupParams = Type.Object({ id: Type.String() })

/** Creates optional members for a request that the route ignores, so that a record from a response is accepted. */
const IgnoredMembers = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, Type.Optional(Type.Unknown())]))
export const GroupMembersUpdate = ClosedObject(Type.Object(
  { servers: SentMembers, ...IgnoredMembers('id', 'name', 'description', 'owner') },
  { examples: [{ servers: ['issues', { name: 'files', tools: ['read_file'] }] }] }
))
export const NewGroupMember =
  ClosedObject(Type.Object({ serverName: Type.String({ minLength: 1 }) }, { examples: [{ serverName: 'files' }] }))
export const GroupMemberParams = Type.Object({ id: Type.String(), serverName: Type.String() })
const ItemSelector =
  Type.Union([Type.Literal('all'), Type.Array(Type.String())], {
    description: '`all`, or own names (resources and skills: URIs)'
  })
export const ToolSelection = ClosedObject(Type.Object(
  { tools: ItemSelector, ...IgnoredMembers('name', 'prompts', 'resources', 'skills', 'alias') },
  { examples: [{ tools: ['read_file', 'list_directory'] }] }
))
export const GroupMemberConfig = Type.Object(
  {
    name: Type.String(),
    tools: ItemSelector,
    prompts: ItemSelector,
    resources: ItemSelector,
    skills: Type.Optional(ItemSelector),
    alias: Type.Optional(Type.String())
  },
  { examples: [{ name: 'files', tools: ['read_file'], prompts: 'all', resources: 'all', alias: 'f' }] }
)
