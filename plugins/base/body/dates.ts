import { errors } from '../errors/index.ts'

const dayInMs = 24 * 60 * 60_000

/** A time range as a caller sends it, in ISO 8601: days in UTC, or times; both ends are inclusive. */
export interface DateRange { readonly startDate?: string, readonly endDate?: string }

/**
 * Converts a range to ms since the epoch: `from` inclusive, `to` exclusive. An end date without a time includes that
 * whole day.
 * @param names the parameters' names, for errors
 * @throws InvalidInput
 */
export function parseDateRange (
  { startDate, endDate }: DateRange, names: readonly [string, string] = ['startDate', 'endDate']
): { from?: number, to?: number } {
  const from = startDate === undefined ? undefined : parseDate(startDate, names[0])
  const last = endDate === undefined ? undefined : parseDate(endDate, names[1])
  return { from, to: last === undefined ? undefined : last + (endDate?.includes('T') === true ? 1 : dayInMs) }
}

function parseDate (text: string, name: string): number {
  const time = /^\d{4}-\d\d-\d\d(T.+)?$/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(time)) {
    throw new errors.InvalidInput(`"${name}" must be a date such as 2026-11-23, or 2026-11-23T09:00:00Z`)
  }
  // `Date.parse` accepts 30 February as 2 March.
  const date = text.slice(0, 10)
  if (new Date(date).toISOString().slice(0, 10) !== date) {
    throw new errors.InvalidInput(`"${name}": the day ${date} does not exist`)
  }
  return time
}
