import type { AuditTrail } from '../../audit-trail.ts'
import type { Activities } from '../../ports/activities.ts'
import type { OAuthClients } from '../../ports/clients.ts'
import type { SocialLogins } from '../../ports/social-logins.ts'
import type { VectorStore } from '../../ports/vectors.ts'
import type { Records } from '../../records.ts'
import type { Resealing, Vault } from '../../store.ts'
import type { DatabaseDriver } from '../connection/driver.ts'
import { createQueryRunner } from '../connection/query-runner.ts'
import { PostgresActivities } from './activities.ts'
import { PostgresAuditTrail } from './audit-trail.ts'
import { PostgresClients } from './clients.ts'
import { PostgresRecords } from './records.ts'
import { PostgresResealing } from './resealing.ts'
import { PostgresSocialLogins } from './social-logins.ts'
import { PostgresVectors } from './vectors.ts'

interface Ports {
  records: Records
  clients: OAuthClients
  activities: Activities
  auditTrail: AuditTrail
  socialLogins: SocialLogins
  resealing: Resealing
  vectors: VectorStore
}

/**
 * Creates the ports on a database.
 * @param health returns the reason why the database is unavailable; undefined if it is available
 * @param resealSettings re-encrypts settings and clients, and returns the number of rows
 */
export function openPorts (
  driver: DatabaseDriver, vault: Vault, health: () => string | undefined, resealSettings: () => Promise<number>
): Ports {
  const queries = createQueryRunner(driver, health)
  return {
    records: new PostgresRecords(queries, vault),
    clients: new PostgresClients(queries),
    activities: new PostgresActivities(queries, vault),
    auditTrail: new PostgresAuditTrail(queries, vault),
    socialLogins: new PostgresSocialLogins(queries, vault),
    resealing: new PostgresResealing(queries, vault, resealSettings),
    vectors: new PostgresVectors(queries)
  }
}
