import { errors } from '../errors/index.ts'

const dayInMs = 24 * 60 * 60_000

/** A time range as sent by a caller. Both ends are inclusive, and each is a day in UTC or a time, in ISO 8601. */
export interface DateRange { readonly startDate?: string, readonly endDate?: string }

/**
 * Converts a range to ms since the epoch: `from` inclusive, `to` exclusive. An end date without a time includes the
 * whole day.
 * @param names the names of the two parameters, for error messages
 * @throws InvalidInput for an invalid date
 */
export function parseDateRange (
  { startDate, endDate }: DateRange, names: readonly [string, string] = ['startDate', 'endDate']
): { from?: number, to?: number } {
  const from = startDate === undefined ? undefined : parseDate(startDate, names[0])
  const last = endDate === undefined ? undefined : parseDate(endDate, names[1])
  return { from, to: last === undefined ? undefined : last + (endDate?.includes('T') === true ? 1 : dayInMs) }
}

/**
 * Converts a day in UTC or a time, in ISO 8601, to ms since the epoch.
 * @param name the name of the member or parameter, for error messages
 * @throws InvalidInput, also for a day that does not exist, such as 30 February
 */
export function parseDate (text: string, name: string): number {
  const time = /^\d{4}-\d\d-\d\d(T.+)?$/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(time)) {
    throw new errors.InvalidInput(`"${name}" must be a date such as 2026-11-23, or 2026-11-23T09:00:00Z`)
  }
  // `Date.parse` reads 30 February as 2 March.
  const date = text.slice(0, 10)
  if (new Date(date).toISOString().slice(0, 10) !== date) {
    throw new errors.InvalidInput(`"${name}": the day ${date} does not exist`)
  }
  return time
}
