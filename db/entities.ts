// The entities of the settings. All code that enumerates entities reads this table: stores, snapshots, audit log,
// export, warnings.
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
  /** The member that identifies an entry. Absent for servers: their section is an object with their names. */
  readonly key?: string
  /** The member of a snapshot that holds the entries. */
  readonly member: string
  /** The name of one entry, for the audit log and warnings. */
  readonly noun: string
  /** The member that identifies an entry to users. */
  readonly label: string
  /** The database table. */
  readonly table: string
  /** Another member that must be unique among entries. Its table stores it in the column `alias`. */
  readonly alias?: string
  /** The members with credentials, which are omitted from the audit log and from exports without secrets. */
  readonly credentials?: readonly string[]
  /** The member that the gateway updates when an entry is used. Such an update is not treated as an edit. */
  readonly usage?: string
  /** Set if the entity has no secrets: `••••` in its texts is then not the mask of a secret. */
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
export type EntityName = keyof Entities
export type ListEntityName = Exclude<EntityName, 'mcpServers'>
export type EntityNoun = Entities[EntityName]['noun']
/** An entry as it is stored. */
export type EntryOf<Name extends EntityName> = Static<Entities[Name]['schema']>
/** The member of a snapshot that holds the entries. */
export type SnapshotMemberOf<Name extends EntityName> = Entities[Name]['member']

export const entityNames = Object.keys(entities) as EntityName[]
export const listEntityNames = entityNames.filter((name): name is ListEntityName => name !== 'mcpServers')
export const isListEntityName = (name: string): name is ListEntityName => (listEntityNames as string[]).includes(name)
/** The properties of an entity, typed with the optional ones. */
export const entityFactsOf = (name: EntityName): EntityFacts => entities[name]
