import type { Activities, Grants, Tokens, Vectors } from '../../ports.ts'
import type { Vault } from '../../store.ts'
import { PostgresActivities } from './activities.ts'
import { createQueryRunner } from '../connection/query-runner.ts'
import type { Driver } from '../connection/driver.ts'
import { PostgresGrants } from './grants.ts'
import { PostgresTokens } from './tokens.ts'
import { PostgresVectors } from './vectors.ts'

/** Opens the ports on a database. @param health why the database is known to be unavailable */
export function openPorts (
  driver: Driver,
  vault: Vault,
  health: () => string | undefined
): { grants: Grants, tokens: Tokens, activities: Activities, vectors: Vectors } {
  const queries = createQueryRunner(driver, health)
  return {
    grants: new PostgresGrants(queries, vault),
    tokens: new PostgresTokens(queries),
    activities: new PostgresActivities(queries),
    vectors: new PostgresVectors(queries)
  }
}
