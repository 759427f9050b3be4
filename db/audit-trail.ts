import { entities, entityNames, type EntityNoun } from './entities.ts'

const furtherEntities = [
  'systemConfig', 'oauthClient', 'consent', 'login', 'bundle', 'activities', 'logs', 'backup', 'export', 'view'
] as const
/** The entities whose changes the audit log records. */
type AuditedEntity = EntityNoun | typeof furtherEntities[number]
export const auditedEntities: readonly AuditedEntity[] = [
  ...entityNames.map((name) => entities[name].noun), ...furtherEntities
]

/** One change of one entity, as it is kept: without secrets, and `before` and `after` as JSON text. */
export interface AuditEntry {
  /** A UUID. */
  readonly id: string
  /** In ms since 1970. */
  readonly timestamp: number
  readonly username: string
  /** The bearer key that the request came with, as it was named then. */
  readonly keyId?: string
  readonly keyName?: string
  readonly action: 'create' | 'update' | 'delete'
  readonly entity: AuditedEntity
  readonly name: string
  readonly before?: string
  readonly after?: string
  /**
   * `before`, `after` and the bearer key are stored, and cannot be opened: the key that sealed them is not available.
   */
  readonly locked?: true
}

/** A filter for entries, which must match all given members; `from` is inclusive, `to` exclusive, in ms since 1970. */
export interface AuditFilter extends Partial<Pick<AuditEntry, 'username' | 'action' | 'entity' | 'name'>> {
  readonly from?: number
  readonly to?: number
}

/** The audit log of all replicas. Every method throws StorageError when the storage cannot be used now. */
export interface AuditTrail {
  /** Adds entries. Those that exist already, by id, are skipped: after an error the same may be added again. */
  append: (entries: readonly AuditEntry[]) => Promise<void>
  /**
   * Lists entries, the newest first.
   * @param after the id of the entry after which to begin
   * @returns undefined: there is no such entry
   */
  list: (filter: AuditFilter, limit: number, after?: string) => Promise<AuditEntry[] | undefined>
  /** Removes the oldest entries beyond a number, some at a time. @returns how many were removed */
  trim: (kept: number) => Promise<number>
}
