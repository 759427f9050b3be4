import type { Activities, Grants, Tokens, Vectors } from '../../ports.ts'
import type { Vault } from '../../store.ts'
import { PostgresActivities } from './activities.ts'
import { queryRunnerOf } from '../connection/query-runner.ts'
import type { Driver } from '../connection/driver.ts'
import { PostgresGrants } from './grants.ts'
import { PostgresTokens } from './tokens.ts'
import { PostgresVectors } from './vectors.ts'

/** The ports on a database. @param health why it cannot be used, as far as that is known */
export function openPorts (
  driver: Driver,
  vault: Vault,
  health: () => string | undefined
): { grants: Grants; tokens: Tokens; activities: Activities; vectors: Vectors } {
  const asks = queryRunnerOf(driver, health)
  return {
    grants: new PostgresGrants(asks, vault),
    tokens: new PostgresTokens(asks),
    activities: new PostgresActivities(asks),
    vectors: new PostgresVectors(asks)
  }
}
