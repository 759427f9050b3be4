import type { BearerKey, Group, GroupMember, SystemConfig, User } from '../schemas/settings.ts'
import type { ServerConfig } from '../schemas/server.ts'
import type { Activities, Grants, Tokens, Vectors } from './ports.ts'

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
  /** By id, in the order of configuration. */
  readonly groups: ReadonlyMap<string, StoredGroup>
  /** By id. */
  readonly keys: ReadonlyMap<string, BearerKey>
  readonly users: ReadonlyMap<string, User>
  readonly system: SystemConfig
  /** What was read but cannot be used, in sentences. */
  readonly problems: readonly string[]
}

/** What can be written, each under its key: a username, a server's name, a group's or key's id. */
export interface Entities { users: User, mcpServers: ServerConfig, groups: Group, bearerKeys: BearerKey }
export type Entity = keyof Entities

/** One thing to write. Without a value it is removed; `rename` (servers) also gives it another key in the same place. */
export type Change =
  | { [Name in Entity]: { entity: Name, key: string, value: Entities[Name] | undefined, rename?: string } }[Entity]
  | { entity: 'systemConfig', value: SystemConfig }

/**
 * Where what is written down is kept. One contract, held by one suite of tests for every adapter: a commit that resolved is on
 * stable storage, whole; one that rejected changed nothing; a reader never sees half of one.
 */
export interface Store {
  /** @throws Error with one clear sentence when what is there cannot be read; it is then left as it is */
  load: () => Promise<Snapshot>
  /**
   * Writes all changes, or none.
   * @param baseVersion the version of the snapshot that the changes were worked out from
   * @throws Conflict when that is not the newest any more · Invalid when an invariant would break · StorageError
   */
  commit: (changes: readonly Change[], baseVersion: number) => Promise<Snapshot>
  /** Told of each new snapshot that somebody else made: an edit on disk, another replica. Returns the function that ends it. */
  onChange: (listener: (snapshot: Snapshot) => void) => () => void
  /** Whether it can be read and written now, or only read where that is all that is wanted; the reason in words when not. */
  health: (readonly?: boolean) => string | undefined
  /** Gives up on what waits for an answer, since the process ends. Absent where nothing waits for long. */
  hurry?: () => void
  close: () => Promise<void>
}

/** Somebody else was faster: read again, and work the changes out anew. `edited`: it was an edit on disk. */
export class Conflict extends Error {
  readonly edited: boolean
  constructor (message: string, edited: boolean) {
    super(message)
    this.name = 'Conflict'
    this.edited = edited
  }
}

/** The changes would break what must always hold. */
export class Invalid extends Error {
  override readonly name = 'Invalid'
}

/** Nothing can be written now. `full`: for lack of space; `failing`: the disk reports errors. */
export class StorageError extends Error {
  readonly full: boolean
  readonly failing: boolean
  constructor (message: string, full: boolean, failing = false) {
    super(message)
    this.name = 'StorageError'
    this.full = full
    this.failing = failing
  }
}

/** The last known catalogues, a cache: one JSON text a server. Losing it costs time, never data. */
export interface CatalogueCache {
  read: (server: string) => Promise<string | undefined>
  /** @param text piece by piece; a large one is not made at once */
  write: (server: string, text: Iterable<string>) => Promise<void>
}

/** Counts that all replicas add to: what rate limits are made of. */
export interface Counters {
  /**
   * Adds one under a key.
   * @param window how long the count lives from its first hit, in ms
   * @returns the count now, and the ms until it starts anew
   */
  hit: (key: string, window: number) => Promise<{ count: number, left: number }>
  /** Forgets a count. */
  reset: (key: string) => Promise<void>
}

/** Keeps what is secret out of sight where a database keeps it: a table shows masks, and beside them one sealed text. */
export interface Vault {
  /**
   * @param value what is to be stored, plain JSON
   * @param place where it is stored, as `systemConfig` or `mcpServers/<name>`: a sealed text opens nowhere else
   * @param plain members, as `options` or `openapi.schema`, of which only what people are not shown is a secret: of all others every text
   * and number is one, and so is every address that holds more than a place. Without it only what people are not shown is.
   * @returns the value with masks where its secrets were, and the secrets sealed; null: it has none
   */
  hide: <Value>(value: Value, place: string, plain?: ReadonlySet<string>) => { value: Value, sealed: string | null }
  /** Undoes `hide`. @throws Error with a sentence when the key that sealed it is not at hand, or it was sealed elsewhere */
  reveal: <Value>(value: Value, sealed: string | null, place: string) => Value
  /** Where a value shows masks in the place of secrets, as `headers.Authorization`. Stored, they would be taken for secrets. */
  masks: (value: unknown) => string[]
  /** Whether a sealed text should be sealed anew, since another key than the newest made it. */
  outdated: (sealed: string) => boolean
}

/** All that one kind of storage keeps. */
export interface Storage {
  store: Store
  counters: Counters
  grants: Grants
  tokens: Tokens
  vectors: Vectors
  /** Kept by a database only. */
  activities?: Activities
}
