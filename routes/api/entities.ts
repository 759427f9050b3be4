import type { Static } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { GroupId, GroupRecord, GroupUpdate, NewGroup } from '../../schemas/group-api.ts'
import { KeyId, KeyRecord, KeyUpdate, NewKey } from '../../schemas/key-api.ts'
import {
  BuiltInId, NewPrompt, NewResource, PromptRecord, PromptUpdate, ResourceRecord, ResourceUpdate
} from '../../schemas/builtins.ts'
import { NewTeam, TeamName, TeamRecord, TeamUpdate } from '../../schemas/team-api.ts'
import { NewUser, UserName, UserRecord, UserUpdate } from '../../schemas/users.ts'
import type { ManagedEntity } from './entity.ts'

/** The entity of groups. Every path takes the id of a group or its name. */
export const groupEntity = ({ groups }: FastifyInstance): ManagedEntity<
  Static<typeof GroupRecord>, typeof NewGroup, typeof GroupUpdate
> => ({
  tag: 'Groups',
  path: '/groups',
  params: GroupId,
  noun: 'group',
  listedItems: 'groups that you may see',
  itemSchema: GroupRecord,
  newItemSchema: NewGroup,
  changeSchema: GroupUpdate,
  key: 'id',
  pageKey: 'name',
  descriptions: { get: ', by id or name' },
  list: (principal) => groups.list(principal),
  get: (principal, id) => groups.get(principal, id),
  mustManage: (principal, id) => { groups.mustManage(principal, id) },
  create: async (principal, input) => await groups.create(principal, input),
  update: async (principal, id, change) => await groups.update(principal, id, change),
  remove: async (principal, id) => { await groups.remove(principal, id) }
})

export const keyEntity = ({ keys }: FastifyInstance): ManagedEntity<
  Static<typeof KeyRecord>, typeof NewKey, typeof KeyUpdate
> => ({
  tag: 'Bearer keys',
  path: '/auth/keys',
  params: KeyId,
  noun: 'bearer key',
  listedItems: 'bearer keys that you may manage',
  itemSchema: KeyRecord,
  newItemSchema: NewKey,
  changeSchema: KeyUpdate,
  key: 'id',
  descriptions: {
    create: 'The token is shown in this answer and never again.',
    update: 'The name and `enabled`; as an admin also its scope. The token stays, and is not shown.'
  },
  addedMessage: 'Keep the token: it is not shown again',
  list: (principal) => keys.list(principal),
  get: (principal, id) => keys.get(principal, id),
  create: async (principal, input) => await keys.create(principal, input),
  update: async (principal, id, change) => await keys.update(principal, id, change),
  remove: async (principal, id) => { await keys.remove(principal, id) }
})

export const userEntity = ({ users }: FastifyInstance): ManagedEntity<
  Static<typeof UserRecord>, typeof NewUser, typeof UserUpdate
> => ({
  tag: 'Users',
  path: '/users',
  params: UserName,
  noun: 'user',
  listedItems: 'users',
  itemSchema: UserRecord,
  newItemSchema: NewUser,
  changeSchema: UserUpdate,
  key: 'username',
  descriptions: {
    update: 'A new password ends earlier logins; a change of `isAdmin` takes effect at once.',
    remove: 'Its servers and groups pass to `admin`, servers become private, bearer keys are removed, logins and ' +
      'sessions end.'
  },
  list: () => users.list(),
  get: (_principal, username) => users.getExisting(username),
  create: async (principal, input) => ({ data: await users.create(principal, input) }),
  update: async (principal, username, change) => ({ data: await users.update(principal, username, change) }),
  remove: async (principal, username) => { await users.remove(principal, username) }
})

/** The entity of teams. Members read theirs, admins change them. */
export const teamEntity = ({ teams }: FastifyInstance): ManagedEntity<
  Static<typeof TeamRecord>, typeof NewTeam, typeof TeamUpdate
> => ({
  tag: 'Teams',
  path: '/teams',
  params: TeamName,
  noun: 'team',
  listedItems: 'teams that you belong to; as an admin all',
  itemSchema: TeamRecord,
  newItemSchema: NewTeam,
  changeSchema: TeamUpdate,
  key: 'name',
  descriptions: {
    create: 'Servers whose `sharedWithUsers` has `@` and its name are shared with its members.',
    update: 'What is not given stays. It takes effect at once, in open sessions too.',
    remove: 'Its members lose what was shared with it at once, and its bearer keys are removed.'
  },
  list: (principal) => teams.list(principal),
  get: (principal, name) => teams.get(principal, name),
  create: async (principal, input) => await teams.create(principal, input),
  update: async (principal, name, change) => await teams.update(principal, name, change),
  remove: async (principal, name) => { await teams.remove(principal, name) }
})

export const promptEntity = (
  { builtIns: { prompts } }: FastifyInstance
): ManagedEntity<Static<typeof PromptRecord>, typeof NewPrompt, typeof PromptUpdate> => ({
  tag: 'Built-ins',
  path: '/prompts',
  params: BuiltInId,
  noun: 'built-in prompt',
  listedItems: 'built-in prompts',
  itemSchema: PromptRecord,
  newItemSchema: NewPrompt,
  changeSchema: PromptUpdate,
  key: 'id',
  pageKey: 'name',
  descriptions: {
    create: 'It is listed on the global MCP route. `{{name}}` in its template is replaced by the argument of that name.'
  },
  list: () => prompts.list(),
  get: (_principal, id) => prompts.get(id),
  create: async (principal, input) => ({ data: await prompts.create(principal, input) }),
  update: async (principal, id, change) => ({ data: await prompts.update(principal, id, change) }),
  remove: async (principal, id) => { await prompts.remove(principal, id) }
})

export const resourceEntity = (
  { builtIns: { resources } }: FastifyInstance
): ManagedEntity<Static<typeof ResourceRecord>, typeof NewResource, typeof ResourceUpdate> => ({
  tag: 'Built-ins',
  path: '/resources',
  params: BuiltInId,
  noun: 'built-in resource',
  listedItems: 'built-in resources',
  itemSchema: ResourceRecord,
  newItemSchema: NewResource,
  changeSchema: ResourceUpdate,
  key: 'id',
  pageKey: 'uri',
  descriptions: { create: 'It is listed on the global MCP route.' },
  list: () => resources.list(),
  get: (_principal, id) => resources.get(id),
  create: async (principal, input) => ({ data: await resources.create(principal, input) }),
  update: async (principal, id, change) => ({ data: await resources.update(principal, id, change) }),
  remove: async (principal, id) => { await resources.remove(principal, id) }
})
