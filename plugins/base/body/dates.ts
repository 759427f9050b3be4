import { errors } from '../errors/index.ts'

const dayInMs = 24 * 60 * 60_000

/** A time range as a caller specifies it, in ISO 8601: dates in UTC, or dates with a time; both ends are inclusive. */
export interface DateRange { readonly startDate?: string, readonly endDate?: string }

/**
 * Converts a range to ms since the epoch: `from` inclusive, `to` exclusive. An end date without a time includes its
 * whole day.
 * @param names of the caller's parameters, for errors
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

/**
 * Checks that a change does not alter members that the gateway sets; it may repeat their values.
 * @param sent the change
 * @param record the record as returned to the caller before
 * @throws InvalidInput for a member with another value
 */
export function checkUnchanged<Record extends object> (
  sent: object, record: Record, names: ReadonlyArray<keyof Record & string>
): void {
  const given = sent as Partial<Record>
  const changed = names.find((name) => given[name] !== undefined && given[name] !== record[name])
  if (changed !== undefined) throw new errors.InvalidInput(`"${changed}" is set by the gateway, and cannot be changed`)
}
