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
 * A configured server. `problem`: why it is not connected; its config is kept, but not used. `unprefixed`: for
 * registered providers; their items have no prefix on merged routes, come after those of all servers, and always keep
 * their names. `separator`: set if the server has overrides, whose names may have the prefixed form of merged routes,
 * as in MCPHub. `warnings`: sentences about parts of the config that have no effect.
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

/** A group with all members as objects. */
export interface StoredGroup extends Omit<Group, 'servers'> { readonly members: readonly GroupMember[] }

/** An entry as a snapshot contains it. */
export type ItemOf<Name extends EntityName> =
  Name extends 'mcpServers' ? Server : Name extends 'groups' ? StoredGroup : EntryOf<Name>

/** The entries of each entity by their keys, in the order of configuration. */
type Items = { readonly [Name in EntityName as SnapshotMemberOf<Name>]: ReadonlyMap<string, ItemOf<Name>> }

/** The settings at one moment. Immutable; a change makes a new snapshot with a higher version. */
export interface Snapshot extends Items {
  readonly version: number
  readonly system: SystemConfig
  /** Messages about unusable entries, and the `warnings`. */
  readonly problems: readonly string[]
  /** Messages about members without effect; undefined if there are none. */
  readonly warnings?: readonly string[]
}

/**
 * A change of one entity; without a value, the entity is removed. `rename` (servers only): a new key in the same
 * position.
 */
export type Change =
  | { [Name in EntityName]: {
    entity: Name, key: string, value: EntryOf<Name> | undefined, rename?: string
  } }[EntityName]
  | { entity: 'systemConfig', value: SystemConfig }
  /** Puts the entries of a list in this order; entries whose keys are missing come last. */
  | { entity: 'order', of: ListEntityName, keys: readonly string[] }

/**
 * The storage of the settings. One test suite checks this contract for every adapter: a commit that resolved is
 * completely on stable storage; one that rejected has changed nothing; a reader never sees part of a commit.
 */
export interface Store {
  /** Whether the settings are shared with other replicas, which may change them. If not, they may be edited by hand. */
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
   * The reason why the store cannot be read and written now or, with `readonly`, cannot be read; undefined if it can.
   */
  health: (readonly?: boolean) => string | undefined
  /** The full reason why the last edit on disk is ignored. Absent if the settings cannot be edited on disk. */
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
 * A cache of the last known catalogues, and of the times at which items were first listed: one text per server. Losing
 * it costs time, not data; but which of two servers of equal rank gets a name that both use then depends on their order
 * alone.
 */
export interface CatalogueCache {
  /** Yields the text in pieces, so that a large one is never in memory as a whole; none if nothing is cached. */
  read: (server: string) => AsyncIterable<string>
  /** @param text in pieces, so that a large one is never in memory as a whole */
  write: (server: string, text: Iterable<string>) => Promise<void>
  /** The learned use of a server's tools as text, stored beside its catalogue; empty if nothing was learned. */
  readUses: (server: string) => Promise<string>
  writeUses: (server: string, text: string) => Promise<void>
  /** A server's pinned definitions as text, stored beside its catalogue; empty if nothing is pinned. */
  readPins: (server: string) => Promise<string>
  writePins: (server: string, text: string) => Promise<void>
  removePins: (server: string) => Promise<void>
  /** Removes the stored texts of a server that no longer exists. */
  remove: (server: string) => Promise<void>
  /** Removes the catalogues of all servers but these. Absent if catalogues do not outlive the process. */
  keepOnly?: (servers: Iterable<string>) => Promise<void>
  /** Resolves when all writes that were started are on disk, or have failed. */
  waitForWrites: () => Promise<void>
}

/** The prefix of the keys of quotas' counters, which survive a restart. */
export const quotaKeyPrefix = 'quota '

/** Counters shared by all replicas, for rate limits. */
export interface Counters {
  /** Removes a counter. */
  reset: (key: string) => Promise<void>
  /**
   * Adds to the counter of a key, unless it has reached a maximum; this also holds for simultaneous callers, on any
   * replica.
   * @param window lifetime of the counter from its first use, in ms
   * @param max default: none
   * @returns `isTaken`: whether it was added; `count`: the new count; `left`: the time until the counter is reset, in
   *   ms
   */
  take: (key: string, amount: number, window: number, max?: number) =>
  Promise<{ isTaken: boolean, count: number, left: number }>
  /** Subtracts from a counter. */
  giveBack: (key: string, amount: number) => Promise<void>
  /** The counter of a key, and the time until it is reset, in ms. Both are 0 before the key is first counted. */
  read: (key: string) => Promise<{ count: number, left: number }>
}

/** Encrypts secrets: a database stores each value with masks in place of its secrets, and these as one text. */
export interface Vault {
  /**
   * Separates a value from its secrets.
   * @param value to store, plain JSON
   * @param place where it is stored, such as `systemConfig` or `mcpServers/<name>`: the encrypted text can be decrypted
   *   for that place only
   * @param plain members, such as `options` or `openapi.schema`, in which a value is a secret only if it is never shown
   *   to users. In all other members every text and number is a secret, and so is every address that is more than a
   *   location. Without this parameter, the rule for `plain` members applies to all
   * @returns the value with masks in place of its secrets, and the encrypted secrets, null if it has none
   */
  separateSecrets: <Value>(
    value: Value, place: string, plain?: ReadonlySet<string>
  ) => { value: Value, sealed: string | null }
  /** Reverses `separateSecrets`. @throws Error when the key is not available, or the text is for another place */
  restoreSecrets: <Value>(value: Value, sealed: string | null, place: string) => Value
  /** The paths of masks in a value, such as `headers.Authorization`. Stored masks would be mistaken for secrets. */
  findMasks: (value: unknown) => string[]
  /** Whether a text was encrypted with a former key, and should be re-encrypted with the newest. */
  isOutdated: (sealed: string) => boolean
  /** Whether a text was encrypted with a key that is not available. */
  isLocked: (sealed: string) => boolean
}

/** The number of stored secrets that were not encrypted with the newest key. */
export interface SealedCounts {
  /** The number of texts encrypted with a former key that is available. */
  readonly former: number
  /** Texts that cannot be decrypted, by their kind (`logins at servers`) and the id of their key. */
  readonly locked: ReadonlyArray<{ readonly what: string, readonly key: string, readonly count: number }>
}

/** Re-encrypts texts of former keys. Every method throws StorageError while the storage is unavailable. */
export interface Resealing {
  count: () => Promise<SealedCounts>
  /**
   * Processes all texts once, in small steps. A text that is being changed is skipped; an interrupted run leaves the
   * remaining texts unchanged.
   * @returns `anew`: the number of re-encrypted texts; `broken`: the number of texts that cannot be decrypted although
   *   their key is available
   */
  run: (signal: AbortSignal) => Promise<{ readonly anew: number, readonly broken: number }>
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
  /** By default, counters in memory are used. */
  counters?: Counters
  /** By default, embeddings are kept in memory. */
  vectors?: VectorStore
  /** Available with a database only. */
  activities?: Activities
  /** Available with a database only. */
  auditTrail?: AuditTrail
  /** Available with a database only. */
  socialLogins?: SocialLogins
}

/** The storage as the rest of the gateway uses it. */
export interface Storage extends Omit<StorageAdapter, 'records' | 'counters' | 'vectors'> {
  counters: Counters
  vectors: VectorStore
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
  /** Available with a database only. */
  pins?: PinStore
  usage: UsageCounts
}
