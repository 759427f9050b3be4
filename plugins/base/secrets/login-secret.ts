import { StorageError } from '../../../db/store.ts'
import type { Env } from '../../../schemas/env.ts'
import { SecretFile } from './secret-file.ts'

/** What to set JWT_SECRET to, for the end of a sentence. */
export const goodSecret = 'at least 32 random bytes, for example from "openssl rand -hex 32"'

const fileIn = (dataDir: string): SecretFile => new SecretFile(dataDir, {
  name: 'login.key', noun: 'secret of logins', variable: 'JWT_SECRET', remedy: 'Delete it: a new one is then made, and logins end.'
})

/** A warning where replicas may not know each other's logins: each of them would keep a secret of its own. */
export const replicasProblem = ({ JWT_SECRET: given, DB_URL: dbUrl }: Pick<Env, 'JWT_SECRET' | 'DB_URL'>): string | undefined =>
  given !== undefined || dbUrl === undefined || dbUrl.startsWith('pglite:')
    ? undefined
    : 'JWT_SECRET is not set, so a secret in DATA_DIR signs logins: of several gateways on one database each takes its own logins only. ' +
      `Set it to ${goodSecret}`

/** Checks the file, where there is one. @throws Error with a sentence for a file that cannot be used */
export const checkLoginSecret = (dataDir: string): void => { fileIn(dataDir).read() }

/**
 * The secret that signs login tokens: JWT_SECRET, else one that is made once and kept in DATA_DIR, so that logins survive a restart.
 * @returns undefined: it cannot be kept, which was told
 * @throws Error with a sentence for a file that cannot be used
 */
export function loginSecret (
  env: Pick<Env, 'JWT_SECRET' | 'DB_URL'>, dataDir: string, warn: (sentence: string) => void
): string | undefined {
  const problem = replicasProblem(env)
  if (problem !== undefined) warn(problem)
  if (env.JWT_SECRET !== undefined) return env.JWT_SECRET
  const file = fileIn(dataDir)
  try {
    return (file.read() ?? file.create()).toString('hex')
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    warn(error.message)
    return undefined
  }
}
