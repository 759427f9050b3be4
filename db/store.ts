import type { BearerKey, Group, GroupMember, SystemConfig, User } from '../schemas/settings.ts'
import type { ServerConfig } from '../schemas/server.ts'

/** A configured server. `problem` says why it is kept but not connected. */
export interface Server { readonly name: string, readonly config: ServerConfig, readonly problem?: string }

/** Neither disabled nor configured in a way that cannot be used. */
export const isUsable = ({ config, problem }: Server): boolean => config.enabled !== false && problem === undefined

/** A group with its members in one form. */
export interface StoredGroup extends Omit<Group, 'servers'> { readonly members: readonly GroupMember[] }

/** All that is written down, at one moment. Immutable; a change makes another one with a higher version. */
export interface Snapshot {
  readonly version: number
  /** In the order of configuration. */
  readonly servers: ReadonlyMap<string, Server>
  readonly groups: readonly StoredGroup[]
  readonly keys: readonly BearerKey[]
  readonly users: ReadonlyMap<string, User>
  readonly system: SystemConfig
  /** What was read but cannot be used, in sentences. */
  readonly problems: readonly string[]
}

/** Where what is written down comes from. Writing comes with the next adapters. */
export interface Store {
  /** @throws Error with one clear sentence when what is there cannot be read */
  load: () => Promise<Snapshot>
}

/** The last known catalogues, a cache: one JSON text a server. Losing it costs time, never data. */
export interface CatalogueCache {
  read: (server: string) => Promise<string | undefined>
  write: (server: string, text: string) => Promise<void>
}
