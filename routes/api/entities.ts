import type { Static } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { GroupParams, GroupRecord, GroupUpdate, NewGroup } from '../../schemas/group-api.ts'
import { KeyParams, KeyRecord, KeyUpdate, NewKey } from '../../schemas/key-api.ts'
import {
  BuiltInParams, NewPrompt, NewResource, PromptRecord, PromptUpdate, ResourceRecord, ResourceUpdate
} from '../../schemas/builtins.ts'
import { NewSkill, SkillRecord, SkillUpdate } from '../../schemas/skills.ts'
import { NewTeam, TeamParams, TeamRecord, TeamUpdate } from '../../schemas/team-api.ts'
import { NewUser, UserParams, UserRecord, UserUpdate } from '../../schemas/users.ts'
import { type CrudEntity, toEntityOperations } from './entity.ts'

/** Returns the description of the routes for groups. Paths accept the id or the name of a group. */
export const groupEntity = ({ groups }: FastifyInstance): CrudEntity<
  Static<typeof GroupRecord>, typeof NewGroup, typeof GroupUpdate
> => ({
  tag: 'Groups',
  path: '/groups',
  params: GroupParams,
  noun: 'group',
  listedItems: 'groups that you may see',
  itemSchema: GroupRecord,
  newItemSchema: NewGroup,
  changeSchema: GroupUpdate,
  key: 'id',
  pageKey: 'name',
  descriptions: { get: ', by id or name' },
  items: groups
})

/** Returns the description of the routes for bearer keys. */
export const bearerKeyEntity = ({ keys }: FastifyInstance): CrudEntity<
  Static<typeof KeyRecord>, typeof NewKey, typeof KeyUpdate
> => ({
  tag: 'Bearer keys',
  path: '/auth/keys',
  params: KeyParams,
  noun: 'bearer key',
  listedItems: 'bearer keys that you may manage',
  itemSchema: KeyRecord,
  newItemSchema: NewKey,
  changeSchema: KeyUpdate,
  key: 'id',
  descriptions: {
    create: 'Only this response contains the token.',
    update: 'Changes the name and `enabled`, for admins also the scope. The token stays valid, and is not returned.'
  },
  addedMessage: 'Keep the token: it is not shown again',
  items: keys
})

/** Returns the description of the routes for users. */
export const userEntity = ({ users }: FastifyInstance): CrudEntity<
  Static<typeof UserRecord>, typeof NewUser, typeof UserUpdate
> => ({
  tag: 'Users',
  path: '/users',
  params: UserParams,
  noun: 'user',
  listedItems: 'users',
  itemSchema: UserRecord,
  newItemSchema: NewUser,
  changeSchema: UserUpdate,
  key: 'username',
  descriptions: {
    update: 'A new password revokes earlier logins; a change of `isAdmin` takes effect at once.',
    remove: 'The servers and groups of the user pass to `admin`, and the servers become private. The bearer keys are ' +
      'removed, logins and sessions end, and policies no longer name the user as an approver.'
  },
  items: {
    list: () => users.list(),
    get: (_principal, username) => users.getShown(username),
    create: async (principal, input) => ({ data: await users.create(principal, input) }),
    update: async (principal, username, change) => ({ data: await users.update(principal, username, change) }),
    remove: async (principal, username) => { await users.remove(principal, username) }
  }
})

/** Returns the description of the routes for teams. Members can read their teams; admins can read and change all. */
export const teamEntity = ({ teams }: FastifyInstance): CrudEntity<
  Static<typeof TeamRecord>, typeof NewTeam, typeof TeamUpdate
> => ({
  tag: 'Teams',
  path: '/teams',
  params: TeamParams,
  noun: 'team',
  listedItems: 'teams that you belong to; as an admin all',
  itemSchema: TeamRecord,
  newItemSchema: NewTeam,
  changeSchema: TeamUpdate,
  key: 'name',
  descriptions: {
    create: 'Servers whose `sharedWithUsers` contains `@` and the name of the team are shared with its members.',
    update: 'Absent members stay unchanged. The change takes effect at once, in open sessions too.',
    remove: 'Its members lose access to servers shared with it at once, and its bearer keys are removed.'
  },
  items: teams
})

/** Returns the description of the routes for built-in prompts. */
export const builtInPromptEntity = (
  { builtIns: { prompts } }: FastifyInstance
): CrudEntity<Static<typeof PromptRecord>, typeof NewPrompt, typeof PromptUpdate> => ({
  tag: 'Built-ins',
  path: '/prompts',
  params: BuiltInParams,
  noun: 'built-in prompt',
  listedItems: 'built-in prompts',
  itemSchema: PromptRecord,
  newItemSchema: NewPrompt,
  changeSchema: PromptUpdate,
  key: 'id',
  pageKey: 'name',
  descriptions: {
    create: 'The global MCP route lists it. `{{name}}` in its template is replaced by the argument of that name.'
  },
  items: toEntityOperations(prompts)
})

/** Returns the description of the routes for built-in resources. */
export const builtInResourceEntity = (
  { builtIns: { resources } }: FastifyInstance
): CrudEntity<Static<typeof ResourceRecord>, typeof NewResource, typeof ResourceUpdate> => ({
  tag: 'Built-ins',
  path: '/resources',
  params: BuiltInParams,
  noun: 'built-in resource',
  listedItems: 'built-in resources',
  itemSchema: ResourceRecord,
  newItemSchema: NewResource,
  changeSchema: ResourceUpdate,
  key: 'id',
  pageKey: 'uri',
  descriptions: { create: 'The global MCP route lists it.' },
  items: toEntityOperations(resources)
})

/** Returns the description of the routes for built-in skills. */
export const builtInSkillEntity = (
  { builtIns: { skills } }: FastifyInstance
): CrudEntity<SkillRecord, typeof NewSkill, typeof SkillUpdate> => ({
  tag: 'Built-ins',
  path: '/skills',
  params: BuiltInParams,
  noun: 'built-in skill',
  listedItems: 'built-in skills',
  itemSchema: SkillRecord,
  newItemSchema: NewSkill,
  changeSchema: SkillUpdate,
  key: 'id',
  pageKey: 'name',
  descriptions: {
    create: 'The global MCP route and those of its `groups` list it, to clients that support the extension ' +
      '`io.modelcontextprotocol/skills`.'
  },
  items: toEntityOperations(skills)
})
