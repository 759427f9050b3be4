import type { Group, GroupMember, SystemConfig } from '../schemas/settings.ts'
import type { ServerConfig } from '../schemas/server.ts'
import type { AuditTrail } from './audit-trail.ts'
import type { Entity, EntryOf, MemberOf } from './entities.ts'
import type { Activities } from './ports/activities.ts'
import type { Clients } from './ports/clients.ts'
import type { Consents } from './ports/consents.ts'
import type { ConsoleSessions } from './ports/console-sessions.ts'
import type { Grants } from './ports/grants.ts'
import type { LoginStates, UsedStates } from './ports/login-states.ts'
import type { SocialLogins } from './ports/social-logins.ts'
import type { Tokens } from './ports/tokens.ts'
import type { UpstreamTokens } from './ports/upstream-tokens.ts'
import type { Vectors } from './ports/vectors.ts'
import type { Records } from './records.ts'

/**
 * A configured server. `problem` is the reason why it is not connected: its config is kept, and cannot be used.
 * `unprefixed` is for registered providers: their items have no prefix on merged routes, stand after those of all
 * servers, and keep their names. `separator`: it has overrides, some of which may be written under names of merged
 * routes, as MCPHub writes them. `warnings`: what of the config has no effect, in sentences.
 */
export interface Server {
  readonly name: string
  readonly config: ServerConfig
  readonly problem?: string
  readonly unprefixed?: boolean
  readonly separator?: string
  readonly warnings?: readonly string[]
}

/** Whether a server is enabled and has a valid config. */
export const isUsable = ({ config, problem }: Server): boolean => config.enabled !== false && problem === undefined

/** A group with all members as objects. */
export interface StoredGroup extends Omit<Group, 'servers'> { readonly members: readonly GroupMember[] }

/** An entry as a snapshot holds it. */
export type ItemOf<Name extends Entity> =
  Name extends 'mcpServers' ? Server : Name extends 'groups' ? StoredGroup : EntryOf<Name>

/** The entries of each entity by their keys, in the order of configuration. */
type Items = { readonly [Name in Entity as MemberOf<Name>]: ReadonlyMap<string, ItemOf<Name>> }

/** The settings at one moment. Immutable; a change makes a new snapshot with a higher version. */
export interface Snapshot extends Items {
  readonly version: number
  readonly system: SystemConfig
  /** Messages about entries that were read and cannot be used, and `warnings`. */
  readonly problems: readonly string[]
  /** Messages about members that have no effect; undefined: there are none. */
  readonly warnings?: readonly string[]
}

/**
 * A change of one entity. Without a value it is removed; `rename` (servers only) gives it a new key in the same place.
 */
export type Change =
  | { [Name in Entity]: { entity: Name, key: string, value: EntryOf<Name> | undefined, rename?: string } }[Entity]
  | { entity: 'systemConfig', value: SystemConfig }

/**
 * The storage of the settings. One test suite checks this contract for every adapter: a commit that resolved is
 * completely on stable storage; one that rejected has changed nothing; a reader never sees a part of one.
 */
export interface Store {
  /** True: other replicas change it; otherwise people do, by an editor. */
  readonly isShared?: boolean
  /** @throws Error with one sentence when the stored settings cannot be read; they are then left unchanged */
  load: () => Promise<Snapshot>
  /**
   * Writes all changes, or none.
   * @param baseVersion the version of the snapshot that the changes are based on
   * @throws Conflict when a newer snapshot exists · Invalid when an invariant would be violated · StorageError
   */
  commit: (changes: readonly Change[], baseVersion: number) => Promise<Snapshot>
  /**
   * Listens for snapshots made outside this process, by an edit on disk or another replica. Returns a function that
   * stops it.
   */
  onChange: (listener: (snapshot: Snapshot) => void) => () => void
  /**
   * Looks for snapshots made outside this process now, and passes them to the listeners. Absent where there can be no
   * other replica.
   */
  refresh?: () => Promise<void>
  /** The reason why the store cannot be read and written now (`readonly`: cannot be read); undefined: it can. */
  health: (readonly?: boolean) => string | undefined
  /** Aborts pending operations, since the process ends. Absent where operations cannot take long. */
  hurry?: () => void
  close: () => Promise<void>
}

/**
 * The settings were changed by somebody else: the changes must be worked out again from the new snapshot. `edited`: by
 * an edit on disk.
 */
export class Conflict extends Error {
  readonly edited: boolean
  constructor (message: string, edited: boolean) {
    super(message)
    this.name = 'Conflict'
    this.edited = edited
  }
}

/** The changes would violate an invariant. */
export class Invalid extends Error {
  override readonly name = 'Invalid'
}

/** The storage cannot be used now. `full`: it has no space left; `failing`: the disk reports errors. */
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

/**
 * A cache of the last known catalogues, and of when items were first listed: one text per server. Losing it costs time,
 * never data; which of two servers of one rank has a name is then decided by their order alone.
 */
export interface CatalogueCache {
  /** The text in pieces, so that a large one is never in memory as a whole; none where nothing is cached. */
  read: (server: string) => AsyncIterable<string>
  /** @param text in pieces, for the same reason */
  write: (server: string, text: Iterable<string>) => Promise<void>
  /** Removes the catalogue of a server that is no more. */
  remove: (server: string) => Promise<void>
  /** Removes the catalogues of all other servers. Absent where none outlive the process. */
  keepOnly?: (servers: Iterable<string>) => Promise<void>
  /** Resolves when all that was begun is on disk, or has failed. */
  settled: () => Promise<void>
}

/** Counters shared by all replicas, for rate limits. */
export interface Counters {
  /**
   * Increments the counter of a key.
   * @param window lifetime of the counter from its first hit, in ms
   * @returns the new count, and `left`: the ms until it starts again at 0
   */
  hit: (key: string, window: number) => Promise<{ count: number, left: number }>
  /** Removes a counter. */
  reset: (key: string) => Promise<void>
}

/**
 * Seals secrets for a database: a table stores values with masks in place of their secrets, and one sealed text beside
 * each value.
 */
export interface Vault {
  /**
   * Separates a value from its secrets.
   * @param value to store, plain JSON
   * @param place where it is stored, such as `systemConfig` or `mcpServers/<name>`: a sealed text can be opened for
   *   that place only
   * @param plain members, such as `options` or `openapi.schema`, in which a value is a secret only if it is never shown
   *   to people. In all other members every text and number is a secret, and so is every address with more than a
   *   location. Without this parameter, the first rule holds for all members.
   * @returns the value with masks in place of its secrets, and the sealed secrets; null: it has none
   */
  hide: <Value>(value: Value, place: string, plain?: ReadonlySet<string>) => { value: Value, sealed: string | null }
  /**
   * Reverses `hide`.
   * @throws Error when the key that sealed the text is not available, or the text was sealed for another place
   */
  reveal: <Value>(value: Value, sealed: string | null, place: string) => Value
  /**
   * The paths of masks in a value, such as `headers.Authorization`. If they were stored, they would be taken for
   * secrets.
   */
  masks: (value: unknown) => string[]
  /** Whether a text was sealed with a former key, and should be sealed again with the newest. */
  outdated: (sealed: string) => boolean
  /** Whether a text was sealed with a key that is not available. */
  locked: (sealed: string) => boolean
}

/** How many of the stored secrets were not encrypted with the newest key. */
export interface SealedCounts {
  /** The number of texts that a former key has sealed, which is available. */
  readonly former: number
  /** Texts that cannot be opened, by what they are (`logins at servers`) and the id of their key. */
  readonly locked: ReadonlyArray<{ readonly what: string, readonly key: string, readonly count: number }>
}

/** Seals anew what a former key has sealed. Every method throws StorageError when the storage cannot be used now. */
export interface Resealing {
  count: () => Promise<SealedCounts>
  /**
   * Goes through all texts once, in small steps. What somebody else changes at that moment is left out, and what was
   * interrupted is left as it is.
   * @returns the number of texts that were sealed anew, and of those that do not open though their key is there
   */
  run: (signal: AbortSignal) => Promise<{ readonly anew: number, readonly broken: number }>
}

/**
 * The ports of a storage adapter. Every method throws StorageError when the storage cannot be used now; whether a write
 * was made is then unknown. Times are in ms since 1970.
 */
export interface Adapter {
  store: Store
  records: Records
  clients: Clients
  resealing: Resealing
  /** undefined: those of this process. */
  counters?: Counters
  /** undefined: those of this process. */
  vectors?: Vectors
  /** Available with a database only. */
  activities?: Activities
  /** Available with a database only. */
  auditTrail?: AuditTrail
  /** Available with a database only. */
  socialLogins?: SocialLogins
}

/** The storage as the rest of the gateway uses it. */
export interface Storage extends Omit<Adapter, 'records' | 'counters' | 'vectors'> {
  counters: Counters
  vectors: Vectors
  grants: Grants
  tokens: Tokens
  consents: Consents
  loginStates: LoginStates
  consoleSessions: ConsoleSessions
  usedStates: UsedStates
  upstreamTokens: UpstreamTokens
}
