import type { Group, GroupMember, SystemConfig } from '../schemas/settings.ts'
import type { ServerConfig } from '../schemas/server.ts'
import type { AuditTrail } from './audit-trail.ts'
import type { EntityName, EntryOf, ListEntityName, SnapshotMemberOf } from './entities.ts'
import type { Activities } from './ports/activities.ts'
import type { OAuthClients } from './ports/clients.ts'
import type { SocialLogins } from './ports/social-logins.ts'
import type { VectorStore } from './ports/vectors.ts'
import type { createRecordPorts } from './record-ports.ts'
import type { Records } from './records.ts'

export { StorageError } from './errors.ts'

/** A configured server. */
export interface Server {
  readonly name: string
  readonly config: ServerConfig
  /** Why the server is not connected, as a clause. Its config is kept, but not used. */
  readonly problem?: string
  /**
   * Set only for providers that are not servers, such as the built-ins: on routes that merge several servers, their
   * items have no prefix, keep their names, and come after the items of all servers.
   */
  readonly unprefixed?: boolean
  /**
   * The name separator of the settings. Set only if the config has overrides of tools or prompts, whose names may have
   * the prefix of merged routes.
   */
  readonly separator?: string
  /** Clauses about parts of the config that should be corrected, such as those that have no effect. */
  readonly warnings?: readonly string[]
}

/** Whether a server is enabled and has a valid config. */
export const isUsableServer = ({ config, problem }: Server): boolean =>
  config.enabled !== false && problem === undefined

/** A group whose members are all objects, where a `Group` may contain plain server names. */
export interface NormalizedGroup extends Omit<Group, 'servers'> { readonly members: readonly GroupMember[] }

/** The form in which a snapshot contains an entry of an entity. */
export type SnapshotEntryOf<Name extends EntityName> =
  Name extends 'mcpServers' ? Server : Name extends 'groups' ? NormalizedGroup : EntryOf<Name>

/** The entries of each entity, by their keys, in the order of configuration. */
type Items = { readonly [Name in EntityName as SnapshotMemberOf<Name>]: ReadonlyMap<string, SnapshotEntryOf<Name>> }

/** The settings at one moment. Immutable: a change creates a new snapshot with a higher version. */
export interface Snapshot extends Items {
  readonly version: number
  readonly system: SystemConfig
  /** Messages about unusable entries, followed by the `warnings`. */
  readonly problems: readonly string[]
  /** Messages about members that should be corrected, such as unknown ones, which have no effect. */
  readonly warnings?: readonly string[]
}

/**
 * A change of one entry of the settings; a `value` of undefined removes the entry. `rename` (servers only): the new
 * name of the server, which keeps its position.
 */
export type Change =
  | { [Name in EntityName]: {
    entity: Name, key: string, value: EntryOf<Name> | undefined, rename?: string
  } }[EntityName]
  | { entity: 'systemConfig', value: SystemConfig }
  /** Sorts the entries of a list by the order of `keys`; entries with other keys come last. */
  | { entity: 'order', of: ListEntityName, keys: readonly string[] }

/**
 * The storage of the settings. When the promise of a commit resolves, all its changes are on stable storage. When it
 * rejects, nothing was changed, unless the message says that this is unknown. A reader never sees part of a commit.
 */
export interface Store {
  /** Set if the settings are in a database, where other replicas may change them; otherwise they are in a file. */
  readonly isShared?: boolean
  /** Reads the settings. @throws Error when the stored settings cannot be used; they are left unchanged */
  load: () => Promise<Snapshot>
  /**
   * Writes all changes or none, and returns the new snapshot.
   * @param baseVersion the version of the snapshot that the changes are based on
   * @throws ConflictError when a newer snapshot exists; InvalidChangeError when an invariant would be violated;
   *   StorageError when the storage cannot be written
   */
  commit: (changes: readonly Change[], baseVersion: number) => Promise<Snapshot>
  /**
   * Registers a listener for snapshots created outside this process, by an edit on disk or by another replica.
   * @returns a function that removes the listener
   */
  onChange: (listener: (snapshot: Snapshot) => void) => () => void
  /**
   * Reads changes that other replicas have made, and passes the new snapshot to the listeners. Absent if there can be
   * no other replica.
   */
  refresh?: () => Promise<void>
  /**
   * Returns a sentence that says why the store cannot be read or written now; undefined if it can.
   * @param readonly whether to ignore failures to write
   */
  health: (readonly?: boolean) => string | undefined
  /**
   * Returns why the last edit of the file is ignored; undefined if it is not ignored. Unlike the text of `health`, this
   * text may contain paths and is for admins only. Absent if the settings are not in a file.
   */
  editProblem?: () => string | undefined
  /** Aborts pending operations, since the process is about to end. Absent if operations cannot take long. */
  abortPending?: () => void
  close: () => Promise<void>
}

/**
 * The error for a commit based on an outdated snapshot: another writer has changed the settings, and the changes must
 * be recomputed from the new snapshot. `isFileEdit`: the other writer was a person who edited the file.
 */
export class ConflictError extends Error {
  readonly isFileEdit: boolean
  constructor (message: string, edited: boolean) {
    super(message)
    this.name = 'Conflict'
    this.isFileEdit = edited
  }
}

/** The error for changes that contradict the settings or would violate an invariant. */
export class InvalidChangeError extends Error {
  override readonly name = 'Invalid'
}

/**
 * Stores texts about each server: its last known catalogue (the items that it lists, with the times at which they were
 * first listed), the uses of its tools, and its pinned definitions. If a catalogue is lost, it is read from the server
 * again; of two servers of equal rank that use the same name, the first in the configuration then gets the name.
 */
export interface CatalogueCache {
  /**
   * Yields the catalogue of a server in pieces, so that a large one is never in memory as a whole. Yields nothing if it
   * is not cached.
   */
  read: (server: string) => AsyncIterable<string>
  /** Stores the catalogue of a server. @param text the pieces of the text, which are written one after the other */
  write: (server: string, text: Iterable<string>) => Promise<void>
  /** Returns the recorded uses of a server's tools as text; empty if there are none. */
  readUses: (server: string) => Promise<string>
  writeUses: (server: string, text: string) => Promise<void>
  /** Returns a server's pinned definitions as text; empty if nothing is pinned. */
  readPins: (server: string) => Promise<string>
  writePins: (server: string, text: string) => Promise<void>
  removePins: (server: string) => Promise<void>
  /** Removes the stored texts of a server that no longer exists. */
  remove: (server: string) => Promise<void>
  /** Removes the stored texts of all servers except the given ones. Absent if the texts do not outlive the process. */
  keepOnly?: (servers: Iterable<string>) => Promise<void>
  /** Resolves when all writes in progress have ended, successfully or not. */
  waitForWrites: () => Promise<void>
}

/** The beginning of the keys of quota counters. Without a database, only these counters survive a restart. */
export const quotaKeyPrefix = 'quota '

/**
 * Counters with an expiry, for rate limits and quotas. With a database, all replicas share them; while it is
 * unavailable, each replica counts in memory. The methods never throw.
 */
export interface Counters {
  /** Removes a counter. */
  reset: (key: string) => Promise<void>
  /**
   * Adds an amount to the counter of a key, unless its count is already `max` or more. The check and the addition are
   * one step, also for simultaneous callers on several replicas.
   * @param window the lifetime of the counter from its first use, in ms
   * @param max by default, there is no maximum
   * @returns `isTaken`: whether the amount was added; `count`: the resulting count; `left`: the time until the counter
   *   is reset, in ms
   */
  take: (key: string, amount: number, window: number, max?: number) =>
  Promise<{ isTaken: boolean, count: number, left: number }>
  /** Subtracts an amount from the counter of a key, whose count does not fall below 0. */
  giveBack: (key: string, amount: number) => Promise<void>
  /** Returns the count of a key, and the time until it is reset, in ms. Both are 0 if the key has no counter. */
  read: (key: string) => Promise<{ count: number, left: number }>
}

/**
 * Encrypts the secrets in values: a value is stored with masks in place of its secrets, which become one sealed text.
 */
export interface Vault {
  /**
   * Separates a value from its secrets.
   * @param value the value to store, as plain JSON
   * @param place a text that identifies where the value is stored, such as `systemConfig` or `mcpServers/<name>`: the
   *   sealed text can be decrypted for the same place only
   * @param plain the paths of members, such as `options` or `openapi.schema`, in which only the values that API
   *   responses mask, and URLs that may contain credentials, are secrets. In all other members, each text and number is
   *   a secret, except a `url` without credentials. By default, the values that API responses mask are the secrets, in
   *   all members
   * @returns the value with masks in place of its secrets, and the encrypted secrets, null if it has none
   */
  encryptSecrets: <Value>(
    value: Value, place: string, plain?: ReadonlySet<string>
  ) => { value: Value, sealed: string | null }
  /**
   * Reverses `encryptSecrets`.
   * @throws Error when the key is not available, or the text was sealed for another place
   */
  decryptSecrets: <Value>(value: Value, sealed: string | null, place: string) => Value
  /**
   * Returns the paths at which a value has a mask in place of a secret, such as `headers.Authorization`. Such a value
   * must not be stored, since the mask would become the secret.
   */
  findMasks: (value: unknown) => string[]
  /** Whether a sealed text was encrypted with a former key, and should be re-encrypted with the newest one. */
  isSealedWithFormerKey: (sealed: string) => boolean
  /** Whether a sealed text was encrypted with a key that is not available. */
  isLocked: (sealed: string) => boolean
}

/** The numbers of encrypted texts that are not encrypted with the newest key. */
export interface OutdatedSealCounts {
  /** The number of texts encrypted with a former key that is available. */
  readonly former: number
  /**
   * The numbers of texts whose key is not available, by `what` (the kind of text, such as `logins at servers`) and the
   * id of the key.
   */
  readonly locked: ReadonlyArray<{ readonly what: string, readonly key: string, readonly count: number }>
}

/**
 * Re-encrypts with the newest key the texts that were encrypted with a former one. Each method throws StorageError
 * while the storage is unavailable.
 */
export interface Resealing {
  countOutdatedSeals: () => Promise<OutdatedSealCounts>
  /**
   * Re-encrypts all texts that need it, in small steps. Texts that are being changed, or that cannot be decrypted, are
   * skipped. An interrupted run leaves the remaining texts as they are.
   * @returns `anew`: the number of re-encrypted texts
   */
  resealAll: (signal: AbortSignal) => Promise<{ readonly anew: number }>
}

/**
 * The ports that a storage adapter (settings file or PostgreSQL) implements. Unless its description says otherwise, a
 * method throws StorageError while the storage is unavailable; it is then unknown whether a write took effect. Times
 * are in ms since 1970.
 */
export interface StorageAdapter {
  store: Store
  records: Records
  clients: OAuthClients
  resealing: Resealing
  counters: Counters
  vectors: VectorStore
  /** Available only with a database. */
  activities?: Activities
  /** Available only with a database. */
  auditTrail?: AuditTrail
  /** Available only with a database. */
  socialLogins?: SocialLogins
}

/** The ports that the rest of the gateway uses: those of an adapter, and those that store their data as records. */
export type Storage = Omit<StorageAdapter, 'records'> & ReturnType<typeof createRecordPorts>
