import type { Group, GroupMember, SystemConfig } from '../schemas/settings.ts'
import type { ServerConfig } from '../schemas/server.ts'
import type { AuditTrail } from './audit-trail.ts'
import type { EntityName, EntryOf, ListEntityName, SnapshotMemberOf } from './entities.ts'
import type { Activities } from './ports/activities.ts'
import type { Approvals } from './ports/approvals.ts'
import type { OAuthClients } from './ports/clients.ts'
import type { Consents } from './ports/consents.ts'
import type { ConsoleSessions } from './ports/console-sessions.ts'
import type { OneTimeValues } from './ports/grants.ts'
import type { LoginStates, UsedRequestStates } from './ports/login-states.ts'
import type { SocialLogins } from './ports/social-logins.ts'
import type { OAuthTokens } from './ports/tokens.ts'
import type { PinStore } from './ports/pins.ts'
import type { Tasks } from './ports/tasks.ts'
import type { UpstreamTokens } from './ports/upstream-tokens.ts'
import type { UsageCounts } from './ports/usage.ts'
import type { UserValueRecords } from './ports/user-values.ts'
import type { VectorStore } from './ports/vectors.ts'
import type { EventWebhooks } from './ports/event-webhooks.ts'
import type { Records } from './records.ts'

export { StorageError } from './errors.ts'

/**
 * A configured server. `problem`: why it is not connected; its config is kept, but not used. `unprefixed`: set only for
 * providers that are not servers, such as the built-ins: on merged routes, their items have no prefix, come after those
 * of all servers, and keep their names. `separator`: the name separator of the settings, set if the server has
 * overrides of tools or prompts, whose names may have the prefixed form of merged routes, as in MCPHub. `warnings`:
 * sentences about parts of the config that have no effect.
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
export const isUsableServer = ({ config, problem }: Server): boolean =>
  config.enabled !== false && problem === undefined

/** A group whose members are all objects, where a `Group` may contain plain server names. */
export interface NormalizedGroup extends Omit<Group, 'servers'> { readonly members: readonly GroupMember[] }

/** An entry as a snapshot contains it. */
export type SnapshotEntryOf<Name extends EntityName> =
  Name extends 'mcpServers' ? Server : Name extends 'groups' ? NormalizedGroup : EntryOf<Name>

/** The entries of each entity by their keys, in the order of configuration. */
type Items = { readonly [Name in EntityName as SnapshotMemberOf<Name>]: ReadonlyMap<string, SnapshotEntryOf<Name>> }

/** The settings at one moment. Immutable; a change makes a new snapshot with a higher version. */
export interface Snapshot extends Items {
  readonly version: number
  readonly system: SystemConfig
  /** Messages about unusable entries, followed by the `warnings`. */
  readonly problems: readonly string[]
  /** Messages about members that have no effect. */
  readonly warnings?: readonly string[]
}

/**
 * A change of one entity; a `value` of undefined removes it. `rename` (servers only): the new key of the entity, which
 * keeps its position.
 */
export type Change =
  | { [Name in EntityName]: {
    entity: Name, key: string, value: EntryOf<Name> | undefined, rename?: string
  } }[EntityName]
  | { entity: 'systemConfig', value: SystemConfig }
  /** Puts the entries of a list in this order; entries whose keys are missing come last. */
  | { entity: 'order', of: ListEntityName, keys: readonly string[] }

/**
 * The storage of the settings. When the promise of a commit resolves, all its changes are on stable storage; if it
 * rejects, nothing was changed. A reader never sees part of a commit. One test suite checks this for every adapter.
 */
export interface Store {
  /** Whether other replicas may change the settings. If not, they are in a file, which may be edited by hand. */
  readonly isShared?: boolean
  /** @throws Error with one sentence when the stored settings cannot be read; they are left unchanged */
  load: () => Promise<Snapshot>
  /**
   * Writes all changes or none.
   * @param baseVersion the version of the snapshot that the changes are based on
   * @throws ConflictError when a newer snapshot exists · InvalidChangeError when an invariant would be violated ·
   *   StorageError
   */
  commit: (changes: readonly Change[], baseVersion: number) => Promise<Snapshot>
  /**
   * Registers a listener for snapshots created outside this process, by an edit on disk or by another replica.
   * @returns a function that removes the listener
   */
  onChange: (listener: (snapshot: Snapshot) => void) => () => void
  /**
   * Checks for snapshots of other replicas, and passes them to the listeners. Absent if there can be no other replica.
   */
  refresh?: () => Promise<void>
  /**
   * Returns why the store cannot be read or written now, as a sentence; undefined if it can.
   * @param readonly ignores failures to write
   */
  health: (readonly?: boolean) => string | undefined
  /**
   * Returns why the last edit on disk is ignored; undefined if none is. Unlike the text of `health`, it may contain
   * paths and is for admins only. Absent if the settings are not in a file.
   */
  editProblem?: () => string | undefined
  /** Aborts pending operations because the process ends. Absent if operations cannot take long. */
  abortPending?: () => void
  close: () => Promise<void>
}

/**
 * The error for a commit after another writer changed the settings: the changes must be recomputed from the new
 * snapshot. `isFileEdit`: the change was an edit on disk.
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
 * A cache of the last known catalogues, and of the times at which items were first listed: one text per server. If it
 * is lost, the catalogues are read again; which of two servers of equal rank gets a name that both use then depends
 * only on the order of the servers.
 */
export interface CatalogueCache {
  /** Yields the text in pieces, so that a large one is never in memory as a whole; none if nothing is cached. */
  read: (server: string) => AsyncIterable<string>
  /** @param text in pieces, so that a large one is never in memory as a whole */
  write: (server: string, text: Iterable<string>) => Promise<void>
  /** Returns the recorded uses of a server's tools as text, stored beside its catalogue; empty if there are none. */
  readUses: (server: string) => Promise<string>
  writeUses: (server: string, text: string) => Promise<void>
  /** Returns a server's pinned definitions as text, stored beside its catalogue; empty if nothing is pinned. */
  readPins: (server: string) => Promise<string>
  writePins: (server: string, text: string) => Promise<void>
  removePins: (server: string) => Promise<void>
  /** Removes the stored texts of a server that no longer exists. */
  remove: (server: string) => Promise<void>
  /** Removes the stored texts of all servers but these. Absent if they do not outlive the process. */
  keepOnly?: (servers: Iterable<string>) => Promise<void>
  /** Resolves when all writes that were started are on disk, or have failed. */
  waitForWrites: () => Promise<void>
}

/** The prefix of the keys of the counters for quotas. Without a database, only these counters survive a restart. */
export const quotaKeyPrefix = 'quota '

/** Counters with an expiry, for rate limits and quotas. With a database, all replicas share them. */
export interface Counters {
  /** Removes a counter. */
  reset: (key: string) => Promise<void>
  /**
   * Adds to the counter of a key, unless its count is already `max` or more; this also holds for simultaneous callers,
   * on any replica.
   * @param window lifetime of the counter from its first use, in ms
   * @param max by default, there is no maximum
   * @returns `isTaken`: whether it was added; `count`: the new count; `left`: the time until the counter is reset, in
   *   ms
   */
  take: (key: string, amount: number, window: number, max?: number) =>
  Promise<{ isTaken: boolean, count: number, left: number }>
  /** Subtracts from the counter of a key; its count stays at least 0. */
  giveBack: (key: string, amount: number) => Promise<void>
  /** Returns the count of a key, and the time until it is reset, in ms. Both are 0 if the key has no counter. */
  read: (key: string) => Promise<{ count: number, left: number }>
}

/** Encrypts the secrets in a value: the value is stored with masks in their places, and the secrets as one text. */
export interface Vault {
  /**
   * Separates a value from its secrets.
   * @param value to store, plain JSON
   * @param place where it is stored, such as `systemConfig` or `mcpServers/<name>`: the encrypted text can be decrypted
   *   for that place only
   * @param plain members, such as `options` or `openapi.schema`, in which only URLs that may contain credentials and
   *   the values that API responses mask are secrets. In all other members, every string and number is a secret, except
   *   a `url` without credentials. By default, the secrets are the values that API responses mask
   * @returns the value with masks in place of its secrets, and the encrypted secrets, null if it has none
   */
  encryptSecrets: <Value>(
    value: Value, place: string, plain?: ReadonlySet<string>
  ) => { value: Value, sealed: string | null }
  /** Reverses `encryptSecrets`. @throws Error when the key is not available, or the text is for another place */
  decryptSecrets: <Value>(value: Value, sealed: string | null, place: string) => Value
  /**
   * Returns the paths of masks in a value, such as `headers.Authorization`. A mask must never be stored as a secret.
   */
  findMasks: (value: unknown) => string[]
  /** Whether a text was encrypted with a former key, and should be re-encrypted with the newest. */
  isSealedWithFormerKey: (sealed: string) => boolean
  /** Whether a text was encrypted with a key that is not available. */
  isLocked: (sealed: string) => boolean
}

/** The numbers of encrypted texts that are not encrypted with the newest key. */
export interface OutdatedTextCounts {
  /** The number of texts encrypted with a former key that is available. */
  readonly former: number
  /** Texts that cannot be decrypted, by their kind (`logins at servers`) and the id of their key. */
  readonly locked: ReadonlyArray<{ readonly what: string, readonly key: string, readonly count: number }>
}

/**
 * Re-encrypts texts that a former encryption key has encrypted. Every method throws StorageError while the storage is
 * unavailable.
 */
export interface Resealing {
  countOutdatedTexts: () => Promise<OutdatedTextCounts>
  /**
   * Processes all texts once, in small steps. A text that is being changed, or that cannot be decrypted, is skipped; an
   * interrupted run leaves the remaining texts unchanged.
   * @returns `anew`: the number of re-encrypted texts
   */
  resealAll: (signal: AbortSignal) => Promise<{ readonly anew: number }>
}

/**
 * The ports of a storage adapter. Every method throws StorageError while the storage is unavailable; it is then unknown
 * whether a write took effect. Times are in ms since 1970.
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

/** The ports that the rest of the gateway uses. */
export interface Storage extends Omit<StorageAdapter, 'records'> {
  grants: OneTimeValues
  tokens: OAuthTokens
  consents: Consents
  loginStates: LoginStates
  consoleSessions: ConsoleSessions
  usedStates: UsedRequestStates
  upstreamTokens: UpstreamTokens
  eventWebhooks: EventWebhooks
  tasks: Tasks
  userValues: UserValueRecords
  approvals: Approvals
  /** Available only with a database. */
  pins?: PinStore
  usage: UsageCounts
}
