// The table of the settings' entities, which are the kinds of configured things: servers, groups, users and so on. Code
// that handles all of them reads this table: stores, snapshots, audit log, export, warnings.
import type { Static, TSchema } from '@sinclair/typebox'
import { BuiltInPrompt, BuiltInResource } from '../schemas/builtins.ts'
import { Guard } from '../schemas/guards.ts'
import { Policy } from '../schemas/policies.ts'
import { Quota } from '../schemas/quotas.ts'
import { ServerConfig } from '../schemas/server.ts'
import { BearerKey, Group, User } from '../schemas/settings.ts'
import { BuiltInSkill } from '../schemas/skills.ts'
import { Team } from '../schemas/teams.ts'

interface EntityFacts {
  /** The schema of an entry. */
  readonly schema: TSchema
  /** The member that identifies an entry. Absent for servers: in their section, an object, the names identify them. */
  readonly key?: string
  /** The name of the `Snapshot` member that holds the entries. */
  readonly member: string
  /** The name of one entry, for the audit log and warnings. */
  readonly noun: string
  /** The member by which messages to users name an entry. */
  readonly label: string
  /** The name of the database table. */
  readonly table: string
  /** Another member that must be unique among entries. The entity's table stores this member in the column `alias`. */
  readonly alias?: string
  /** The members with credentials, which are omitted from the audit log and from exports without secrets. */
  readonly credentials?: readonly string[]
  /** The member that the gateway itself updates when an entry is used. Its updates are not treated as edits. */
  readonly usage?: string
  /** Set if entries have no secrets: the characters `••••` in them are then ordinary text, not the mask of a secret. */
  readonly isPlainText?: true
}

export const entities = {
  mcpServers: { schema: ServerConfig, member: 'servers', noun: 'server', label: 'name', table: 'servers' },
  groups: {
    schema: Group,
    key: 'id',
    member: 'groups',
    noun: 'group',
    label: 'name',
    table: 'groups',
    alias: 'name'
  },
  users: {
    schema: User,
    key: 'username',
    member: 'users',
    noun: 'user',
    label: 'username',
    table: 'users',
    credentials: ['password']
  },
  bearerKeys: {
    schema: BearerKey,
    key: 'id',
    member: 'keys',
    noun: 'key',
    label: 'name',
    table: 'bearer_keys',
    alias: 'tokenHash',
    credentials: ['token', 'tokenHash'],
    usage: 'lastUsedAt'
  },
  prompts: {
    schema: BuiltInPrompt,
    key: 'id',
    member: 'prompts',
    noun: 'prompt',
    label: 'name',
    table: 'prompts',
    isPlainText: true
  },
  resources: {
    schema: BuiltInResource,
    key: 'id',
    member: 'resources',
    noun: 'resource',
    label: 'uri',
    table: 'resources',
    isPlainText: true
  },
  skills: {
    schema: BuiltInSkill,
    key: 'id',
    member: 'skills',
    noun: 'skill',
    label: 'name',
    table: 'skills',
    isPlainText: true
  },
  teams: { schema: Team, key: 'name', member: 'teams', noun: 'team', label: 'name', table: 'teams', isPlainText: true },
  policies: {
    schema: Policy,
    key: 'id',
    member: 'policies',
    noun: 'policy',
    label: 'name',
    table: 'policies',
    isPlainText: true
  },
  guards: {
    schema: Guard,
    key: 'id',
    member: 'guards',
    noun: 'guard',
    label: 'name',
    table: 'guards',
    credentials: ['webhook']
  },
  quotas: {
    schema: Quota,
    key: 'id',
    member: 'quotas',
    noun: 'quota',
    label: 'name',
    table: 'quotas',
    isPlainText: true
  }
} as const satisfies Record<string, EntityFacts>

type Entities = typeof entities
/** The name of an entity, which is also the name of its section in a settings document. */
export type EntityName = keyof Entities
/** The name of an entity whose section is a list of entries. */
export type ListEntityName = Exclude<EntityName, 'mcpServers'>
export type EntityNoun = Entities[EntityName]['noun']
/** An entry as the settings document contains it. */
export type EntryOf<Name extends EntityName> = Static<Entities[Name]['schema']>
/** The name of the `Snapshot` member that holds the entries of an entity. */
export type SnapshotMemberOf<Name extends EntityName> = Entities[Name]['member']

export const entityNames = Object.keys(entities) as EntityName[]
export const listEntityNames = entityNames.filter((name): name is ListEntityName => name !== 'mcpServers')
export const isListEntityName = (name: string): name is ListEntityName => (listEntityNames as string[]).includes(name)
/** Returns the facts of an entity, in a type that also has the optional facts. */
export const entityFactsOf = (name: EntityName): EntityFacts => entities[name]
