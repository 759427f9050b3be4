import { entities, entityNames, type EntityNoun } from './entities.ts'

const furtherEntities = [
  'systemConfig', 'oauthClient', 'consent', 'login', 'values', 'bundle', 'activities', 'logs', 'backup', 'export',
  'view', 'definition', 'approval', 'task'
] as const
/** The kinds of things whose changes the audit log records. */
type AuditedEntity = EntityNoun | typeof furtherEntities[number]
export const auditedEntities: readonly AuditedEntity[] = [
  ...entityNames.map((name) => entities[name].noun), ...furtherEntities
]

/**
 * One change of one thing, as recorded. `before` and `after`: the thing as JSON text, without secrets; `before` is
 * missing if it was created, `after` if it was deleted.
 */
export interface AuditEntry {
  /** A UUID. */
  readonly id: string
  /** In ms since 1970. */
  readonly timestamp: number
  readonly username: string
  /** The id and the name (at that time) of the bearer key that authenticated the request; undefined if none did. */
  readonly keyId?: string
  readonly keyName?: string
  readonly action: 'create' | 'update' | 'delete'
  readonly entity: AuditedEntity
  readonly name: string
  readonly before?: string
  readonly after?: string
  /** Set if the members `before`, `after`, `keyId` and `keyName` are missing because they cannot be decrypted. */
  readonly locked?: true
}

/** Selects the entries that match all given members. `from` is inclusive, `to` exclusive, both in ms since 1970. */
export interface AuditFilter extends Partial<Pick<AuditEntry, 'username' | 'action' | 'entity' | 'name'>> {
  readonly from?: number
  readonly to?: number
}

/** The audit log, shared by all replicas. Every method throws StorageError while the storage is unavailable. */
export interface AuditTrail {
  /** Adds entries. Skips entries whose id already exists, so that a caller can repeat the call after an error. */
  append: (entries: readonly AuditEntry[]) => Promise<void>
  /**
   * Lists entries, newest first.
   * @param limit max number of entries
   * @param after the id of an entry: only older entries are listed
   * @returns undefined if no entry has the id `after`
   */
  list: (filter: AuditFilter, limit: number, after?: string) => Promise<AuditEntry[] | undefined>
  /**
   * Removes entries other than the newest `kept`, oldest first, but only a limited number per call.
   * @returns how many were removed; 0 if no more than `kept` are stored
   */
  trim: (kept: number) => Promise<number>
}
