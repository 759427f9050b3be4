// The statements that add and remove recorded calls, and update the sums of each hour (`activity_hours`) with them.
import { sql, type SQL } from 'drizzle-orm'
import type { Activity } from '../../ports/activities.ts'
import { selectRows, type Transaction } from '../connection/driver.ts'
import type { SealedText } from '../sealed-text.ts'
import { activities, activityHours as hours, oauthClients } from '../tables.ts'

type EncryptedMember = 'input' | 'output' | 'errorMessage' | 'policy' | 'guards' | 'refused'

/** A call as it is stored, with some members encrypted. `sealedBy`: the id of the encryption key. */
export type CallRow = Omit<Activity, EncryptedMember | 'clientName' | 'locked'> &
  Partial<SealedText> & { readonly sealedBy?: string }

/** The length of an hour, in ms. */
export const hourLength = 60 * 60_000
/** Max number of calls that one statement removes. */
const maxRemoved = 1_000
/** The key of the advisory lock that a replica holds while it removes calls. */
const removalLock = 0x746f6f6d

const columns = sql.raw(
  'id, "timestamp", server, tool, duration, status, "group", username, key_id, key_name, source_ip, client_id, ' +
  'client_name, data, sealed, sealed_by'
)
const filterColumns = sql.raw('server, tool, status, "group", username, key_id, key_name')
/** The RETURNING clause with the columns that `sumByHour` needs. */
const returningClause = sql`returning "timestamp", ${filterColumns}, duration`

/**
 * Returns the query that groups calls by hour and filter columns, and computes their number and the sum of their
 * durations for each group.
 * @param from the FROM item that provides the calls
 */
const sumByHour = (from: SQL): SQL => sql`
  select hour, encode(sha256(convert_to(json_build_array(${filterColumns})::text, 'UTF8')), 'hex') as hash,
    ${filterColumns}, count(*) as calls, sum(duration) as duration
  from (select "timestamp" / ${sql.raw(String(hourLength))} as hour, * from ${from}) as calls_of_hours
  group by hour, ${filterColumns}`

/**
 * Stores the calls whose ids do not exist yet, and adds them to the sums of their hours. The rows are passed as one
 * parameter, since each parameter costs CPU time in this process. The sums are locked in a fixed order, so that two
 * replicas cannot deadlock.
 */
export async function appendCalls (tx: Transaction, rows: readonly CallRow[]): Promise<void> {
  if (rows.length === 0) return
  await tx.execute(sql`
    with added as (
      insert into ${activities} (${columns})
        select id, "timestamp", server, tool, duration, status, "group", username, "keyId",
          "keyName", "sourceIp", "clientId",
          (select clients.data::json ->> 'name' from ${oauthClients} as clients where clients.key = "clientId"),
          data, sealed, "sealedBy"
        from json_to_recordset(${JSON.stringify(rows)}::text::json) as given (
          id uuid, "timestamp" bigint, server text, tool text, duration double precision, status text,
          "group" text, username text,
          "keyId" text, "keyName" text, "sourceIp" text, "clientId" text, data jsonb, sealed text, "sealedBy" text
        )
        on conflict (id) do nothing ${returningClause}
    )
    insert into ${hours} (hour, hash, server, tool, status, "group", username, key_id, key_name, calls, duration)
      select * from (${sumByHour(sql`added`)}) as hours_of_added order by hour, hash
      on conflict (hour, hash) do update
        set calls = ${hours.calls} + excluded.calls, duration = ${hours.duration} + excluded.duration`)
}

/**
 * Removes the oldest calls before a time, at most `maxRemoved`, and subtracts them from the sums of their hours. Only
 * one replica at a time does so.
 * @param before the time, in ms since 1970
 * @param ifBusy what to do if another replica is removing calls: wait, or remove none
 * @returns how many calls were removed
 */
export async function removeOldCalls (tx: Transaction, before: number, ifBusy: 'wait' | 'skip'): Promise<number> {
  if (ifBusy === 'wait') await tx.execute(sql`select pg_advisory_xact_lock(${removalLock})`)
  else {
    const [lock] =
      await selectRows<{ held: boolean }>(tx, sql`select pg_try_advisory_xact_lock(${removalLock}) as held`)
    if (lock?.held !== true) return 0
  }
  const removed = await selectRows<{ count: string }>(tx, sql`
    with gone as (
      delete from ${activities} where id in (
        select id from ${activities} where "timestamp" < ${before} order by "timestamp", id
          limit ${sql.raw(String(maxRemoved))}
      ) ${returningClause}
    ), sums as (${sumByHour(sql`gone`)}), lowered as (
      update ${hours} set calls = ${hours.calls} - sums.calls, duration = ${hours.duration} - sums.duration
        from sums where ${hours.hour} = sums.hour and ${hours.hash} = sums.hash
    )
    select count(*) as count from gone`)
  const count = Number(removed[0]?.count ?? 0)
  if (count > 0) {
    await tx.execute(sql`delete from ${hours} where hour <= ${Math.floor(before / hourLength)} and calls <= 0`)
  }
  return count
}
