/** The delay before the next attempt, in ms: 1 s, doubled with each failure up to 60 s, of which a random part between half and all. */
export function backoff (failures: number, random: () => number = Math.random): number {
  const full = Math.min(1_000 * 2 ** Math.max(failures - 1, 0), 60_000)
  return full / 2 + random() * full / 2
}

/** A connection that lasted longer than this, in ms, counts as healthy: after it, the delays begin at 1 s again. */
export const healthyAfter = 60_000
