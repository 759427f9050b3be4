import type { BearerKey } from '../../../schemas/settings.ts'
import { parseDate } from '../../base/body/index.ts'
import { errors } from '../../base/errors/index.ts'

/**
 * Returns the time at which a key expires, in ms since the epoch; Infinity if it never expires. An invalid date in a
 * settings file makes the key expired.
 */
export function keyExpiryOf ({ expiresAt }: BearerKey): number {
  if (expiresAt === undefined) return Infinity
  const time = Date.parse(expiresAt)
  return Number.isNaN(time) ? 0 : time
}

/** Converts an expiry to its stored form, in UTC. @param text an ISO 8601 time with a time zone @throws InvalidInput */
export function parseKeyExpiry (text: string): string {
  const hasForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  if (!hasForm || Number.isNaN(Date.parse(text))) {
    throw new errors.InvalidInput(
      '"expiresAt" must be a date and time with a time zone, such as "2030-01-31T12:00:00Z"'
    )
  }
  return new Date(parseDate(text, 'expiresAt')).toISOString()
}
