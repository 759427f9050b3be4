import type { AuditTrail } from '../../audit-trail.ts'
import type {
  Activities, Clients, Consents, Grants, LoginStates, SocialLogins, Tokens, UpstreamTokens, UsedStates, Vectors
} from '../../ports.ts'
import type { Resealing, Vault } from '../../store.ts'
import { PostgresActivities } from './activities.ts'
import { PostgresAuditTrail } from './audit-trail.ts'
import { PostgresClients } from './clients.ts'
import { PostgresConsents } from './consents.ts'
import { createQueryRunner } from '../connection/query-runner.ts'
import type { Driver } from '../connection/driver.ts'
import { PostgresGrants } from './grants.ts'
import { PostgresLoginStates } from './login-states.ts'
import { PostgresSocialLogins } from './social-logins.ts'
import { PostgresResealing } from './resealing.ts'
import { PostgresTokens } from './tokens.ts'
import { PostgresUpstreamTokens } from './upstream-tokens.ts'
import { PostgresUsedStates } from './used-states.ts'
import { PostgresVectors } from './vectors.ts'

interface Ports {
  grants: Grants
  tokens: Tokens
  clients: Clients
  consents: Consents
  loginStates: LoginStates
  usedStates: UsedStates
  upstreamTokens: UpstreamTokens
  activities: Activities
  auditTrail: AuditTrail
  socialLogins: SocialLogins
  resealing: Resealing
  vectors: Vectors
}

/**
 * Opens the ports on a database.
 * @param health why the database is known to be unavailable
 * @param resealSettings seals anew what is sealed of settings and clients; the number of rows
 */
export function openPorts (driver: Driver, vault: Vault, health: () => string | undefined, resealSettings: () => Promise<number>): Ports {
  const queries = createQueryRunner(driver, health)
  return {
    grants: new PostgresGrants(queries, vault),
    tokens: new PostgresTokens(queries),
    clients: new PostgresClients(queries),
    consents: new PostgresConsents(queries),
    loginStates: new PostgresLoginStates(queries, vault),
    usedStates: new PostgresUsedStates(queries),
    upstreamTokens: new PostgresUpstreamTokens(queries, vault),
    activities: new PostgresActivities(queries, vault),
    auditTrail: new PostgresAuditTrail(queries, vault),
    socialLogins: new PostgresSocialLogins(queries, vault),
    resealing: new PostgresResealing(queries, vault, resealSettings),
    vectors: new PostgresVectors(queries)
  }
}
