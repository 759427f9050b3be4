import { smallMemberOf } from './json.ts'
import { capabilityOf, type ListKind } from './lists.ts'

// How long a result may be cached, and for whom (MCP 2026-07-28, "Caching").

/** For how long and for whom a result may be cached, as its server states. */
export interface Caching {
  /** The time for which the result is fresh, in ms; 0 if it is stale at once. */
  readonly ttlMs: number
  /** Whether it is the same for everybody; false: it is for one authorization context only. */
  readonly isPublic: boolean
}

/** @param result JSON text @returns undefined when the result does not state it, as before 2026-07-28 */
export function cachingOf (result: string): Caching | undefined {
  if (!result.includes('"ttlMs"') && !result.includes('"cacheScope"')) return undefined
  const ttlMs = smallMemberOf(result, 'ttlMs')
  const scope = smallMemberOf(result, 'cacheScope')
  if (ttlMs === undefined && scope === undefined) return undefined
  return {
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 && Number.isFinite(ttlMs)
      ? Math.trunc(ttlMs)
      : 0,
    isPublic: scope === 'public'
  }
}

/** The caching of a result that was made from two results. */
export const combineCaching = (a: Caching | undefined, b: Caching | undefined): Caching | undefined =>
  a && b && { ttlMs: Math.min(a.ttlMs, b.ttlMs), isPublic: a.isPublic && b.isPublic }

/** The caching of a server's lists, and the time at which they were read. */
export interface Freshness {
  /** In ms since the epoch. */
  learnedAt: number
  readonly lists: Readonly<Partial<Record<ListKind, Caching>>>
}

interface FreshnessBounds {
  /** Min time between two readings because of their age, in ms. */
  readonly least: number
  /** Max time for which any list counts as fresh, in ms. */
  readonly most: number
}

/**
 * When the first of the lists becomes stale, in ms since the epoch. A list with a TTL of 0 is stale at once, unless the
 * server announces its changes; a list without a TTL never becomes stale.
 */
export function staleAt (
  { learnedAt, lists }: Freshness,
  capabilities: Readonly<Record<string, unknown>>,
  { least, most }: FreshnessBounds
): number {
  let first = Infinity
  for (const [kind, { ttlMs }] of Object.entries(lists) as Array<[ListKind, Caching]>) {
    if (ttlMs === 0 && capabilityOf(capabilities, kind)?.listChanged === true) continue
    first = Math.min(first, learnedAt + Math.min(Math.max(ttlMs, least), most))
  }
  return first
}

/** Number of steps that a TTL is rounded to: a list is serialized anew for each, and may have megabytes. */
const ttlSteps = 10

/** How long a list remains fresh, in ms, rounded down to a step. @param now in ms since the epoch */
export function remainingFreshness (ttlMs: number, at: number, now: number, { most }: FreshnessBounds): number {
  const whole = Math.min(ttlMs, most)
  const step = Math.max(1_000, Math.trunc(whole / ttlSteps))
  const left = at + whole - now
  return left >= whole ? whole : Math.max(0, Math.trunc(left / step) * step)
}
