const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Converts a duration such as `500ms`, `5s` or `24h` to ms. A number without a unit is in ms; an invalid text is 0. */
export function parseDuration (text: string): number {
  const [, number = '0', unit = 'ms'] = /^([0-9]+)(ms|s|m|h|d)?$/.exec(text) ?? []
  return Number(number) * (units[unit] ?? 1)
}

/** Converts a duration to ms like `parseDuration`, but limits it to the range of a timer: 1 ms to 24.8 days. */
export const parseTimerDuration = (text: string): number => Math.min(Math.max(parseDuration(text), 1), 2 ** 31 - 1)
