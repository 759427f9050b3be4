// The entities of the settings. Whatever lists entities reads this table: stores, snapshots, audit log, export,
// warnings.
import type { Static, TSchema } from '@sinclair/typebox'
import { BuiltInPrompt, BuiltInResource } from '../schemas/builtins.ts'
import { ServerConfig } from '../schemas/server.ts'
import { BearerKey, Group, User } from '../schemas/settings.ts'

interface EntityFacts {
  /** Of an entry. */
  readonly schema: TSchema
  /** The member that identifies an entry. Servers have none: their section is an object, and they are members of it. */
  readonly key?: string
  /** The member of a snapshot that holds the entries. */
  readonly member: string
  /** The name of one in the audit log and in warnings. */
  readonly noun: string
  /** The member by which people know an entry. */
  readonly label: string
  /** The table in a database. */
  readonly table: string
  /** Another member that no two entries share. Its table has it in the column `alias`. */
  readonly alias?: string
  /** The credentials: they are left out of the audit log, and of exports without secrets. */
  readonly credentials?: readonly string[]
  /** The gateway changes this member when an entry is used. It is no edit. */
  readonly usage?: string
  /** It holds texts for people, so that dots in them are no masks. */
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
  }
} as const satisfies Record<string, EntityFacts>

type Entities = typeof entities
/** An entity by the name of its section. */
export type Entity = keyof Entities
/** An entity whose section is a list. */
export type ListName = Exclude<Entity, 'mcpServers'>
export type EntityNoun = Entities[Entity]['noun']
/** An entry as it is written down. */
export type EntryOf<Name extends Entity> = Static<Entities[Name]['schema']>
/** The member of a snapshot that holds the entries. */
export type MemberOf<Name extends Entity> = Entities[Name]['member']

export const entityNames = Object.keys(entities) as Entity[]
export const listNames = entityNames.filter((name): name is ListName => name !== 'mcpServers')
export const isListName = (name: string): name is ListName => (listNames as string[]).includes(name)
/** The facts of an entity, with the optional ones. */
export const factsOf = (name: Entity): EntityFacts => entities[name]
