import { entities, entityNames, type EntityNoun } from './entities.ts'

const furtherEntities = [
  'systemConfig', 'oauthClient', 'consent', 'login', 'values', 'bundle', 'activities', 'logs', 'backup', 'export',
  'view', 'definition', 'approval', 'task'
] as const
/** The entities whose changes the audit log records. */
type AuditedEntity = EntityNoun | typeof furtherEntities[number]
export const auditedEntities: readonly AuditedEntity[] = [
  ...entityNames.map((name) => entities[name].noun), ...furtherEntities
]

/** One change of one entity, as stored. `before` and `after`: the entity as JSON text, without secrets. */
export interface AuditEntry {
  /** A UUID. */
  readonly id: string
  /** In ms since 1970. */
  readonly timestamp: number
  readonly username: string
  /** The id of the bearer key that authenticated the request, and its name at that time. */
  readonly keyId?: string
  readonly keyName?: string
  readonly action: 'create' | 'update' | 'delete'
  readonly entity: AuditedEntity
  readonly name: string
  readonly before?: string
  readonly after?: string
  /** Set if `before`, `after` and the bearer key cannot be decrypted, since the encryption key is not available. */
  readonly locked?: true
}

/** A filter for entries; all members must match. `from` is inclusive, `to` exclusive, both in ms since 1970. */
export interface AuditFilter extends Partial<Pick<AuditEntry, 'username' | 'action' | 'entity' | 'name'>> {
  readonly from?: number
  readonly to?: number
}

/** The audit log, shared by all replicas. Every method throws StorageError while the storage is unavailable. */
export interface AuditTrail {
  /** Adds entries. Entries whose id exists are skipped, so that a caller can repeat the call after an error. */
  append: (entries: readonly AuditEntry[]) => Promise<void>
  /**
   * Lists entries, newest first.
   * @param limit max entries
   * @param after an id: only older entries than the one with this id are listed
   * @returns undefined if no entry has the id `after`
   */
  list: (filter: AuditFilter, limit: number, after?: string) => Promise<AuditEntry[] | undefined>
  /** Removes the oldest entries beyond the newest `kept`, a limited number per call. @returns how many were removed */
  trim: (kept: number) => Promise<number>
}
