import type { StorageAdapter, Vault } from '../../store.ts'
import type { DatabaseDriver } from '../connection/driver.ts'
import { createQueryRunner } from '../connection/query-runner.ts'
import { PostgresActivities } from './activities.ts'
import { PostgresAuditTrail } from './audit-trail.ts'
import { PostgresClients } from './clients.ts'
import { PostgresRecords } from './records.ts'
import { PostgresResealing } from './resealing.ts'
import { PostgresSocialLogins } from './social-logins.ts'
import { PostgresVectors } from './vectors.ts'

/**
 * Creates the ports that store their data in a database, except the settings store and the counters.
 * @param health returns a sentence that says why the database is unavailable; undefined if it is available
 * @param resealSettings re-encrypts secrets of settings and clients with the newest key; returns the number of rows
 */
export function createPorts (
  driver: DatabaseDriver, vault: Vault, health: () => string | undefined, resealSettings: () => Promise<number>
): Omit<StorageAdapter, 'store' | 'counters'> {
  const queries = createQueryRunner(driver, health)
  return {
    records: new PostgresRecords(queries, vault),
    clients: new PostgresClients(queries),
    activities: new PostgresActivities(queries, vault),
    auditTrail: new PostgresAuditTrail(queries, vault),
    socialLogins: new PostgresSocialLogins(queries),
    resealing: new PostgresResealing(queries, vault, resealSettings),
    vectors: new PostgresVectors(queries)
  }
}
