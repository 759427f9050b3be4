/** How long to wait before the next try, in ms: 1 s doubling to 60 s, each between half and all of it. */
export function backoff (failures: number, random: () => number = Math.random): number {
  const full = Math.min(1_000 * 2 ** Math.max(failures - 1, 0), 60_000)
  return full / 2 + random() * full / 2
}

/** A connection that lived this long (ms) counts as healthy: the next failure starts from the beginning. */
export const healthyAfter = 60_000
