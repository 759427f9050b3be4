import { AsyncResource } from 'node:async_hooks'
import { drizzleAdapter } from 'better-auth/adapters/drizzle'
import type { QueryRunner } from './connection/query-runner.ts'
import type { Db, Transaction } from './connection/driver.ts'
import { socialAccounts, socialSessions, socialUsers } from './social-tables.ts'

type MakeAdapter = ReturnType<typeof drizzleAdapter>
type Adapter = ReturnType<MakeAdapter>
type Method = (...args: unknown[]) => Promise<unknown>

const schema = { user: socialUsers, account: socialAccounts, session: socialSessions }

/**
 * Creates the value of better-auth's option `database`: the library's Drizzle adapter. The query runner runs each
 * method on the driver's current connections, with a concurrency limit and a timeout. If the database fails, the
 * methods throw StorageError.
 */
export function createBetterAuthAdapter (queries: QueryRunner): MakeAdapter {
  const adapters = new WeakMap<object, Adapter>()
  return (options) => {
    /** Returns the library's adapter for a connection pool or transaction. Each adapter is created only once. */
    const on = (db: Db | Transaction): Adapter => {
      let adapter = adapters.get(db)
      if (!adapter) {
        adapters.set(db, adapter = drizzleAdapter(db as never, { provider: 'pg', schema, transaction: false })(options))
      }
      return adapter
    }
    const methods: Partial<Record<keyof Adapter, unknown>> = {
      transaction: async <Result>(work: (adapter: Adapter) => Promise<Result>): Promise<Result> => {
        // The library keeps the request in an AsyncLocalStorage context, which the queue of a driver would lose.
        const bound = AsyncResource.bind(work)
        return await queries.runTransaction(async (tx) => await bound(on(tx)))
      }
    }
    // The target is an adapter without a connection, which only shows what methods there are.
    return new Proxy(on({} as Db), {
      get: (target, name: keyof Adapter) => {
        const own: unknown = target[name]
        if (typeof own !== 'function') return own
        methods[name] ??= async (...args: unknown[]) =>
          await queries.runQuick(async (db) => await (on(db)[name] as Method)(...args))
        return methods[name]
      }
    })
  }
}
