import type { BearerKey } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'

/** When a key expires, in ms since the epoch; Infinity: never. A date in a settings file that cannot be read counts as long past. */
export function expiryOf ({ expiresAt }: BearerKey): number {
  if (expiresAt === undefined) return Infinity
  const time = Date.parse(expiresAt)
  return Number.isNaN(time) ? 0 : time
}

/** A date as it is stored. @param text a date and time with its zone (ISO 8601) @throws InvalidInput */
export function toExpiry (text: string): string {
  const isDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
  if (!isDate) throw new errors.InvalidInput('"expiresAt" must be a date and time with its zone, such as "2030-01-31T12:00:00Z"')
  return new Date(text).toISOString()
}
