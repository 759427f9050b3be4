import { errors } from '../errors/index.ts'

const day = 24 * 60 * 60_000

/** A range of time as it is asked for: ISO 8601, a date in UTC or a date with time, both inclusive. */
export interface DateRange { readonly startDate?: string, readonly endDate?: string }

/**
 * The range in ms since 1970: `from` is inclusive, `to` exclusive. A date as the end includes its whole day.
 * @throws InvalidInput
 */
export function timesOf ({ startDate, endDate }: DateRange): { from?: number, to?: number } {
  const from = startDate === undefined ? undefined : timeOf(startDate, 'startDate')
  const last = endDate === undefined ? undefined : timeOf(endDate, 'endDate')
  return { from, to: last === undefined ? undefined : last + (endDate?.includes('T') === true ? 1 : day) }
}

function timeOf (text: string, name: string): number {
  const time = /^\d{4}-\d\d-\d\d(T.+)?$/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(time)) {
    throw new errors.InvalidInput(`"${name}" must be a date as 2026-11-23, or 2026-11-23T09:00:00Z`)
  }
  // `Date.parse` takes the 30th of February for the 2nd of March.
  const date = text.slice(0, 10)
  if (new Date(date).toISOString().slice(0, 10) !== date) {
    throw new errors.InvalidInput(`"${name}": there is no day ${date}`)
  }
  return time
}

/**
 * Checks members that the gateway sets, and that a change may only repeat.
 * @param sent the change
 * @param record as it was answered before
 * @throws InvalidInput for one with another value
 */
export function checkUnchanged<Record extends object> (
  sent: object, record: Record, names: ReadonlyArray<keyof Record & string>
): void {
  const given = sent as Partial<Record>
  const changed = names.find((name) => given[name] !== undefined && given[name] !== record[name])
  if (changed !== undefined) throw new errors.InvalidInput(`"${changed}" is set by the gateway, and cannot be changed`)
}
