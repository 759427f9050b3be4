// Queries about the recorded calls that match a filter: conditions, sums, and the values to filter by.
import { and, eq, gte, isNotNull, lt, sql, type SQL } from 'drizzle-orm'
import type { ActivityFilter, TimeIntervals } from '../../ports/activities.ts'
import type { Db } from '../connection/driver.ts'
import { activities, activityHours as hours } from '../tables.ts'
import { hourLength } from './activity-hours.ts'
import { toFilterText } from './activity-texts.ts'

/** Max number of distinct values that are listed of one column. */
const maxValues = 1_000

type EqualityFilter = Omit<ActivityFilter, 'from' | 'to'>

function equalities (table: typeof activities | typeof hours, equal: EqualityFilter): Array<SQL | undefined> {
  return (Object.entries(equal) as Array<[keyof EqualityFilter, string | undefined]>).map(([name, value]) => {
    if (value === undefined) return undefined
    // Not a parameter, since PostgreSQL uses a partial index only for a value that the planner knows.
    if (name === 'status') return sql`${table.status} = ${sql.raw(value === 'error' ? "'error'" : "'success'")}`
    return eq(table[name], toFilterText(value))
  })
}

/** Converts a filter to a condition on the table `activities`; undefined if the filter matches all calls. */
export const activityCondition = ({ from, to, ...equal }: ActivityFilter): SQL | undefined => and(
  ...equalities(activities, equal),
  from === undefined ? undefined : gte(activities.timestamp, from),
  to === undefined ? undefined : lt(activities.timestamp, to)
)

/**
 * Splits the time range of a filter into whole hours, whose sums are stored, and the partial hours at both ends, whose
 * calls must be read individually.
 * @returns `whole`: a condition on `activity_hours` that selects the sums of the whole hours; `parts`: filters that
 *   select the calls of the partial hours
 */
function splitIntoHours ({ from, to, ...equal }: ActivityFilter): { whole: SQL, parts: ActivityFilter[] } {
  const first = from === undefined ? undefined : Math.ceil(from / hourLength)
  const end = to === undefined ? undefined : Math.floor(to / hourLength)
  if (first !== undefined && end !== undefined && first > end) {
    return { whole: sql`false`, parts: [{ ...equal, from, to }] }
  }
  const whole = and(
    ...equalities(hours, equal),
    first === undefined ? undefined : gte(hours.hour, first),
    end === undefined ? undefined : lt(hours.hour, end)
  ) ?? sql`true`
  return {
    whole,
    parts: [
      ...(from === undefined || first === undefined ? [] : [{ ...equal, from, to: first * hourLength }]),
      ...(to === undefined || end === undefined ? [] : [{ ...equal, from: end * hourLength, to }])
    ]
  }
}

/**
 * The number 1, as the number of calls in a row of `activities`. Its type is that of the column `activity_hours.calls`:
 * PostgreSQL reads a union in parallel only if its parts have equal types.
 */
const oneCall = sql.raw('1::bigint')

/**
 * Returns the query that computes the number of matching calls, the number of failed ones, and the sum of all
 * durations, from the stored sums of whole hours and the calls of partial hours. Exported for the test of its query
 * plan.
 */
export function activitySumsStatement (db: Db, filter: ActivityFilter) {
  const { whole, parts } = splitIntoHours(filter)
  const rest = parts.map((part) => sql` union all
    select ${oneCall}, ${activities.status}, ${activities.duration} from ${activities}
      where ${activityCondition(part)}`)
  const summed = sql`(
    select ${hours.calls} as calls, ${hours.status} as status, ${hours.duration} as duration from ${hours}
      where ${whole}${sql.join(rest)}
  ) as summed`
  return db
    .select({
      total: sql<string>`sum(calls)`,
      errors: sql<string>`sum(calls) filter (where status = 'error')`,
      duration: sql<string>`sum(duration)`
    })
    .from(summed)
}

/** A member of activities whose values `filterValuesStatement` can list. */
export type FilterColumn = 'server' | 'tool' | 'group' | 'username' | 'keyName'

/**
 * Returns the query that lists the distinct values of a column in the matching calls, sorted. With an empty filter,
 * each value is found from the previous one in the index of the column, so that the time depends on the number of
 * values instead of the number of calls.
 */
export function filterValuesStatement (filter: ActivityFilter, name: FilterColumn): SQL {
  const [hourColumn, column] = [hours[name], activities[name]]
  if (Object.values(filter).every((value) => value === undefined)) {
    const next = (after: SQL): SQL =>
      sql`(select ${column} from ${activities} where ${column} is not null ${after} order by ${column} limit 1)`
    return sql`
      with recursive found (value) as (
        ${next(sql``)}
        union all
        select ${next(sql`and ${column} > found.value`)} from found where found.value is not null
      )
      select value from found where value is not null limit ${maxValues}`
  }
  const { whole, parts } = splitIntoHours(filter)
  const rest = parts.map((part) => sql`
    union all select ${column} from ${activities} where ${and(activityCondition(part), isNotNull(column))}`)
  return sql`
    select distinct value from (
      select ${hourColumn} as value from ${hours} where ${and(whole, isNotNull(hourColumn))}${sql.join(rest)}
    ) as found order by value limit ${maxValues}`
}

/**
 * Returns the query that counts the matching calls and the failed ones in each time span, as rows with `at` (the index
 * of the span), `total` and `errors`. Spans without calls have no row. If all spans consist of whole hours, the stored
 * sums are read. Exported for the test of its query plan.
 */
export function intervalCountsStatement (filter: ActivityFilter, { from, length, count }: TimeIntervals): SQL {
  const range = { ...filter, from: Math.max(from, filter.from ?? 0), to: from + length * count }
  const hasWholeHours = from % hourLength === 0 && length % hourLength === 0
  const { whole, parts } = hasWholeHours ? splitIntoHours(range) : { whole: sql`false`, parts: [range] }
  const spanOf = (time: SQL): SQL => sql`(${time} - ${sql.raw(String(from))}) / ${sql.raw(String(length))}`
  const rest = parts.map((part) => sql`
    union all select ${spanOf(sql`${activities.timestamp}`)}, 1,
        case when ${activities.status} = 'error' then 1 else 0 end
      from ${activities} where ${activityCondition(part)}`)
  // Integers of 4 bytes are added faster, and are large enough for the calls of an hour.
  const calls = sql`sum(${hours.calls}::int)`
  return sql`
    select at, sum(total) as total, sum(errors) as errors from (
      select ${spanOf(sql`hour * ${sql.raw(String(hourLength))}`)} as at, total, errors from (
        select ${hours.hour} as hour, ${calls} as total, ${calls} filter (where ${hours.status} = 'error') as errors
          from ${hours} where ${whole} group by ${hours.hour}
      ) as whole_hours${sql.join(rest)}
    ) as summed group by at`
}
